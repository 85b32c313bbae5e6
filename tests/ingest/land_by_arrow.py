"""Land with Arrow alone: a test fails where Spark would be asked."""

from __future__ import annotations

from rewindow.control.ingest.land import land
from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import T0, log_rows, one_log


class Unused:
    """Fails the test if Arrow leaves a source to Spark."""

    def __getattr__(self, name):
        raise AssertionError(name)

    def __call__(self, write, source):
        raise AssertionError("a landing on Spark's workers")


def arrow_at(root):
    """Return an engine that lands everything in this process."""
    return ArrowLandingEngine(Unused, Unused(), project_root=str(root), most_rows=10**9)


def land_by_arrow(root, zone="UTC", **log):
    """Land the sources of one log, in this process, and return all rows of the log."""
    feed = one_log(**log).model_copy(update={"zone": zone})
    tables = DeltaFeedTables(f"{root}/w")
    land(feed, tables, arrow_at(root), now_ms=T0)
    return log_rows(tables)
