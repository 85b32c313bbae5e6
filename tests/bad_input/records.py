"""Invalid records: bad timestamps, arrival times and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.bad_input.cases import Case
from tests.bad_input.scene import FEED, Bench, hour
from tests.ingest.local_engine import HOUR, T0
from tests.refusals import containing

YEAR_9999 = 253_370_764_800_000
NOW = T0 + 2 * HOUR


def bad(**values: Any) -> Callable[[Bench], None]:
    """Add a record with these values to the feed's source, in a separate file."""
    return lambda bench: bench.rows("h2-bad", [{"user": "ann", "t": NOW, "got": NOW + 1, "x": 1, **values}])


def other(policy: str = "fail", **values: Any) -> Callable[[Bench], None]:
    """Create another feed with its own policy, whose second record has these values."""

    def given(bench: Bench) -> None:
        bad(user="bob", **values)(bench)
        policed = FEED.replace("got}", f"got, invalid_timestamp: {policy}}}")
        bench.write("conf/feeds/other.yaml", policed.replace("feed: activity", "feed: other"))

    return given


def _extractor(body: str, policy: str = "fail") -> Callable[[Bench], None]:
    """Create another feed with timestamps from a function."""

    def given(bench: Bench) -> None:
        bench.write("bench_times.py", f"def read(record, partition_time):\n    {body}\n")
        other(policy)(bench)
        bench.edit("conf/feeds/other.yaml", "timestamp: t,", "timestamp: bench_times:read,")

    return given


def _all_bad(bench: Bench) -> None:
    """Create another feed with all records in the far future."""
    for name in ("h0", "h1", "h2"):
        bench.rows(name, [{**row, "t": YEAR_9999} for row in hour(int(name[1]))])
    bench.write("conf/feeds/other.yaml", FEED.replace("feed: activity", "feed: other"))


def _fails(name: str, says: str, **values: Any) -> Case:
    return Case(name, "land activity", "rows-without-valid-time", {"rows": containing(says)}, bad(**values))


def _gives(name: str, body: str, says: str) -> Case:
    return Case(f"an extractor {name}", "land other", "record-invalid", {"reason": containing(says)}, _extractor(body))


CASES = [
    _fails("a record without a timestamp", "no timestamp", t=None),
    _fails("a negative timestamp", "negative timestamp (-5)", t=-5),
    _fails("seconds for milliseconds", "seconds", t=NOW // 1000),
    _fails("nanoseconds for milliseconds", "nanoseconds", t=NOW * 1_000_000),
    _fails("no arrival", "arrived_at", got=None),
    Case("nothing but the far future", "land other", "log-all-quarantined", {"records": "all 36 records"}, _all_bad),
    _gives("that raises", "raise KeyError('t')", "KeyError"),
    _gives("that returns None", "return None", "None"),
    _gives("that returns True", "return True", "epoch milliseconds"),
    _gives("that goes beyond all time", "return 2**70", "epoch milliseconds"),
    _gives("that goes below zero", "return -1", "negative timestamp (-1)"),
]
QUARANTINED = {
    "no timestamp": (other("skip", t=None), 1),
    "a negative timestamp (-5)": (other("skip", t=-5), 1),
    "it has no arrived_at": (other("skip", got=None), 1),
    "too far ahead (`max_ahead`)": (other("partition_time", t=YEAR_9999), 1),
}
"""The reason in the quarantine, after `land other`."""
