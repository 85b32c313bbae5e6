"""Run `land` once, in a process that tests kill: ``python -m tests.ingest.land_once ROOT WAREHOUSE NOW_MS``."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from rewindow.control.heartbeat import is_alive, this_attempt
from rewindow.errors import NotNowError
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import land_locally
from tests.ingest.test_protocol import FEED

if __name__ == "__main__":
    root, warehouse, now_ms = sys.argv[1:]
    try:
        land_locally(
            FEED,
            DeltaFeedTables(warehouse),
            Path(root),
            int(now_ms),
            attempt=this_attempt(),
            alive=partial(is_alive, warehouse),
            on_step=lambda step: print(step, flush=True),
        )
    except NotNowError as error:
        sys.exit(error.exit_code)
