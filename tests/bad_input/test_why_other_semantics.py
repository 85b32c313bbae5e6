"""`rewindow why` after a job's `semantics` changed: each run is replayed as time passed in it."""

from __future__ import annotations

import pytest

from rewindow.contracts.instants import instant
from tests.bad_input.scene import Bench

pytestmark = pytest.mark.usefixtures("in_process")

WATERMARK = "feed: activity\nsemantics: {stream_time_from: watermark}\n"


@pytest.fixture
def changed(bench: Bench) -> Bench:
    """A job with two runs in which the records move time, and one in which the watermark does.

    A partition without the last record of an hour closes its last windows in another run, depending on that.
    """
    bench.done("rewind counts --to 0")
    bench.edit("bench_job.py", 'TimeWindows.of("30m", grace="5m")', 'TimeWindows.of("5m", grace="0ms")')
    bench.done("run counts --through 1", "run counts --through 2")
    bench.edit("conf/jobs/counts.yaml", "feed: activity\n", WATERMARK)
    bench.done("land activity", "run counts --accept-changes")
    return bench


@pytest.mark.parametrize("user", ["ann", "bob", "cyd"])
def test_every_row_is_explained_whichever_semantics_its_run_had(changed: Bench, user: str) -> None:
    (table,) = changed.json("head totals --limit 100")["tables"]
    mine = {row["window_start"]: row["_run"] for row in table["rows"] if row["user"] == user}
    assert {*mine.values()} == {"main/3", "main/4", "main/5"}
    for start_ms in sorted(mine)[3::4]:
        shown = changed.json(f"why totals user={user} --window {instant(start_ms).replace(' ', 'T')}")
        assert shown["is_reproduced"]
