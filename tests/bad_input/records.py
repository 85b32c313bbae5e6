"""Invalid records: bad timestamps, arrival times and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.bad_input.cases import Case
from tests.bad_input.scene import FEED, Bench
from tests.ingest.local_engine import HOUR, T0
from tests.refusals import containing

YEAR_9999 = 253_370_764_800_000
NOW = T0 + 2 * HOUR


def bad(*rows: dict[str, Any]) -> Callable[[Bench], None]:
    """Add records with these values to the feed's source, in a separate file."""
    usual = {"user": "ann", "t": NOW, "got": NOW + 1, "x": 1}
    return lambda bench: bench.rows("h2-bad", [{**usual, **values} for values in rows])


def other(bench: Bench, policy: str) -> None:
    """Create another feed with its own policy for invalid timestamps."""
    policed = FEED.replace("got}", f"got, invalid_timestamp: {policy}}}")
    bench.write("conf/feeds/other.yaml", policed.replace("feed: activity", "feed: other"))


def _raises(bench: Bench) -> None:
    """Create another feed with timestamps from a function that fails."""
    bench.write("bench_times.py", "def read(record, partition_time):\n    raise KeyError('t')\n")
    other(bench, "fail")
    bench.edit("conf/feeds/other.yaml", "timestamp: t,", "timestamp: bench_times:read,")


TIMELESS: list[tuple[str, str, dict[str, Any]]] = [
    ("a record without a timestamp", "no timestamp", {"t": None}),
    ("a negative timestamp", "negative timestamp (-5)", {"t": -5}),
    ("no arrival", "arrived_at", {"got": None}),
]
CASES = [
    Case(name, "land activity", "rows-without-valid-time", {"rows": containing(says)}, bad(values))
    for name, says, values in TIMELESS
]
CASES += [Case("an extractor that raises", "land other", "record-invalid", {"reason": containing("KeyError")}, _raises)]
QUARANTINED = {
    "no timestamp": {"t": None},
    "a negative timestamp (-5)": {"t": -5},
    "it has no arrived_at": {"got": None},
    "too far ahead (`max_ahead`)": {"t": YEAR_9999},
}
"""A record by its reason in the quarantine, if the feed skips it."""
