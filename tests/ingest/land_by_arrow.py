"""Land with Arrow alone: a test fails where Spark would be asked."""

from __future__ import annotations

from typing import Any

from rewindow.control.ingest.land import land
from rewindow.engine.worker.landing.engine import ArrowLandingEngine
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import T0, log_rows, one_log


class Unused:
    """Fails the test if Arrow leaves a source to Spark."""

    def __getattr__(self, name):
        raise AssertionError(name)


def land_by_arrow(root, zone="UTC", **log):
    """Land the sources of one log, in this process, and return all rows of the log."""
    feed = one_log(**log).model_copy(update={"zone": zone})
    unused: Any = Unused()
    engine = ArrowLandingEngine(Unused, unused, project_root=str(root), most_rows=10**9)
    tables = DeltaFeedTables(f"{root}/w")
    land(feed, tables, engine, now_ms=T0)
    return log_rows(tables)
