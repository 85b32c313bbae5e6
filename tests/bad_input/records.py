"""Invalid records: bad timestamps, arrival times and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.bad_input.cases import Case
from tests.bad_input.scene import FEED, Bench, hour
from tests.ingest.local_engine import HOUR, T0

YEAR_9999 = 253_370_764_800_000
NOW = T0 + 2 * HOUR
DAY = 24 * HOUR


def _bad(**values: Any) -> Callable[[Bench], None]:
    """Add a record with these values to the feed's source, in a separate file."""
    return lambda bench: bench.rows("h2-bad", [{"user": "ann", "t": NOW, "got": NOW + 1, "x": 1, **values}])


def _other(policy: str = "fail", **values: Any) -> Callable[[Bench], None]:
    """Create another feed with its own policy, whose second record has these values."""

    def given(bench: Bench) -> None:
        _bad(user="bob", **values)(bench)
        policed = FEED.replace("got}", f"got, invalid_timestamp: {policy}}}")
        bench.write("conf/feeds/other.yaml", policed.replace("feed: activity", "feed: other"))

    return given


def _extractor(body: str, policy: str = "fail") -> Callable[[Bench], None]:
    """Create another feed with timestamps from a function."""

    def given(bench: Bench) -> None:
        bench.write("bench_times.py", f"def read(record, partition_time):\n    {body}\n")
        _other(policy)(bench)
        bench.edit("conf/feeds/other.yaml", "timestamp: t,", "timestamp: bench_times:read,")

    return given


def _all_bad(bench: Bench) -> None:
    """Create another feed with all records in the far future."""
    for name in ("h0", "h1", "h2"):
        bench.rows(name, [{**row, "t": YEAR_9999} for row in hour(int(name[1]))])
    bench.write("conf/feeds/other.yaml", FEED.replace("feed: activity", "feed: other"))


def _fails(name: str, says: str, **values: Any) -> Case:
    return Case(name, "land activity", 65, (says, "invalid_timestamp: skip"), _bad(**values))


def _far(name: str, time_ms: int) -> Case:
    """A record in the far future is quarantined and closes no window (D19), so the next run gives the clean result."""
    return Case(name, "land activity", 0, "1 quarantined", _bad(t=time_ms), refused=("too far ahead (`max_ahead`)",))


def _unit(name: str, unit: str, time: int) -> Case:
    return Case(name, "land activity", 65, (f"is in {unit}, not milliseconds", "units: {t: "), _bad(t=time))


def _skipped(name: str, reason: str, **values: Any) -> Case:
    given = _other("skip", **values)
    return Case(name, "land other", 0, "1 quarantined", given, goes_on=False, refused=(reason,))


def _gives(name: str, body: str, says: str) -> Case:
    return Case(f"an extractor {name}", "land other", 65, (says, "invalid_timestamp"), _extractor(body))


CASES = [
    _fails("a record without a timestamp", "no timestamp", t=None),
    _fails("a negative timestamp", "negative timestamp (-5)", t=-5),
    _fails("the smallest timestamp", "negative timestamp", t=-(2**63)),
    _far("the year 9999", YEAR_9999),
    _far("the end of time", 2**63 - 1),
    _far("a day and a millisecond ahead", NOW + 1 + DAY + 1),
    _unit("seconds for milliseconds", "seconds", NOW // 1000),
    _unit("microseconds for milliseconds", "microseconds", NOW * 1000),
    _unit("nanoseconds for milliseconds", "nanoseconds", NOW * 1_000_000),
    _skipped("no timestamp, skipped", "no timestamp", t=None),
    _skipped("a negative timestamp, skipped", "a negative timestamp (-5)", t=-5),
    _skipped("the far future, skipped", "too far ahead (`max_ahead`)", t=YEAR_9999),
    Case(
        "the far future, replaced",
        "land other",
        0,
        "1 quarantined",
        _other("partition_time", t=YEAR_9999),
        goes_on=False,
        refused=("too far ahead (`max_ahead`)",),
    ),
    Case("no timestamp, replaced", "land other", 0, "37 records", _other("partition_time", t=None), goes_on=False),
    Case("no key", "land activity", 0, "13 records", _bad(user=None), goes_on=False),
    Case("an empty key", "land activity", 0, "13 records", _bad(user=""), goes_on=False),
    Case("a key of 100,000 letters", "land activity", 0, "13 records", _bad(user="x" * 100_000), goes_on=False),
    _fails("no arrival", "it has no arrived_at", got=None),
    _skipped("no arrival, skipped", "it has no arrived_at", got=None),
    Case("nothing but the far future", "land other", 65, ("all 36 records", "fix `timestamp:`"), _all_bad),
    _gives("that raises", "raise KeyError('t')", "the timestamp extractor raised KeyError"),
    _gives("that divides by zero", "return record.value.x / 0", "raised ZeroDivisionError"),
    _gives("that returns a string", "return 'now'", "is not epoch milliseconds"),
    _gives("that returns None", "return None", "the timestamp extractor returned None"),
    _gives("that returns True", "return True", "is not epoch milliseconds"),
    _gives("that returns a fraction", "return 0.5", "is not epoch milliseconds"),
    _gives("that goes beyond all time", "return 2**70", "is not epoch milliseconds"),
    _gives("that goes below zero", "return -1", "a negative timestamp (-1)"),
    Case(
        "an unknown extractor",
        "land other",
        78,
        ("bench_none:read", "that the project's root can import"),
        lambda bench: (
            _other()(bench),
            bench.edit("conf/feeds/other.yaml", "timestamp: t", "timestamp: bench_none:read"),  # type: ignore[func-returns-value]
        )[0],
    ),
]
