"""A chain of jobs with windows: what the first holds back is not late in the second (ADR-133, ADR-134, ADR-137)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from tests.bad_input.scene import FEED, TARGET, USERS, Bench, without_spark
from tests.ingest.local_engine import HOUR, T0
from tests.refusals import containing, told

HOURS = 18
WATERMARK = "semantics: {stream_time_from: watermark}\non_code_change: accept\n"
FIRST = (
    f"job: counts\ntopology: shop_job:hours\nfeed: activity\noutputs: {{totals: {{table: shop.totals}}}}\n{WATERMARK}"
)
SECOND = f"job: days\ntopology: shop_job:days\nfeed: totals\noutputs: {{seen: {{table: shop.seen}}}}\n{WATERMARK}"
TOTALS = """\
feed: totals
partitions: 2
logs:
  totals: {source: {job: counts, output: totals}, key: user, timestamp: _timestamp}
"""
MODULE = """\
from rewindow import StreamsBuilder, TimeWindows, until_window_closes


def hours():
    builder = StreamsBuilder()
    windows = TimeWindows.of("1h", grace="90m")
    counts = builder.stream("events").group_by_key().windowed_by(windows).count(store="hours")
    counts.suppress(until_window_closes()).to_stream().to("totals")
    return builder.build()


def days():
    builder = StreamsBuilder()
    windows = TimeWindows.of("6h", grace="0s")
    counts = builder.stream("totals").group_by_key().windowed_by(windows).count(store="days")
    counts.suppress(until_window_closes()).to_stream().to("seen")
    return builder.build()
"""

ONE_HOUR, SIX_HOURS = 'TimeWindows.of("1h", grace="90m")', 'TimeWindows.of("6h", grace="0s")'
BY_KEY = 'stream("totals").group_by_key()'


def records() -> list[dict[str, Any]]:
    """Return records of each hour; every fifth is up to 80 minutes late."""
    made = []
    for number in range(HOURS * 6):
        at = T0 + number * HOUR // 6
        late = (number % 4) * 20 * 60_000 if number % 5 == 0 else 0
        made.append({"user": USERS[number % 3], "t": max(at - late, T0), "got": at + 1, "x": number})
    return made


def expected(rows: list[dict[str, Any]]) -> dict[tuple[str, int], int]:
    """Return in how many hours of each six a user had records."""
    hours = {(row["user"], row["t"] // HOUR) for row in rows}
    return dict(Counter((user, hour // 6 * 6 * HOUR) for user, hour in hours))


def project(root: Path, totals: str = TOTALS) -> Bench:
    """Create the project of both jobs."""
    bench = Bench(root)
    bench.write("conf/feeds/activity.yaml", FEED)
    bench.write("conf/feeds/totals.yaml", totals)
    bench.write("conf/jobs/counts.yaml", FIRST)
    bench.write("conf/jobs/days.yaml", SECOND)
    bench.write("conf/targets/local.yaml", TARGET)
    bench.write("shop_job.py", MODULE)
    return bench


def in_windows(found: list[dict[str, Any]], key: str = "user") -> dict[tuple[Any, int], int]:
    """Return the results of the second job by key and window."""
    assert len({(row[key], row["window_start"]) for row in found}) == len(found)
    return {(row[key], row["window_start"]): row["value"] for row in found}


@pytest.mark.parametrize(("landings", "partitions", "each"), [(4, 2, True), (3, 1, False), (1, 3, True)])
def test_final_results_of_one_job_are_in_the_windows_of_the_next(
    tmp_path: Path, landings: int, partitions: int, *, each: bool
) -> None:
    bench = project(tmp_path, TOTALS.replace("partitions: 2", f"partitions: {partitions}"))
    assert in_windows(replay(bench, records(), landings, each=each)) == expected(records())


def test_a_feed_with_another_key_makes_nothing_late(tmp_path: Path) -> None:
    bench = project(tmp_path, TOTALS.replace("key: user", "key: value"))
    found = replay(bench, records(), 3, each=True)
    counts = Counter((row["user"], row["t"] // HOUR) for row in records())
    per_window = Counter((count, hour // 6 * 6 * HOUR) for (_, hour), count in counts.items())
    assert in_windows(found, "key_value") == per_window


@pytest.mark.parametrize(("partitions", "landings", "hours"), [(1, 3, 1), (3, 1, 6)])
def test_windows_that_close_together_are_not_late_in_shorter_ones(
    tmp_path: Path, partitions: int, landings: int, hours: int
) -> None:
    """Six hours of every user close at once, and the second job counts all users together, in shorter windows or equal ones."""
    bench = project(tmp_path, TOTALS.replace("partitions: 2", f"partitions: {partitions}"))
    module = MODULE.replace(ONE_HOUR, 'TimeWindows.of("6h", grace="6h")').replace(
        SIX_HOURS, SIX_HOURS.replace("6h", f"{hours}h")
    )
    bench.write("shop_job.py", module.replace(BY_KEY, 'stream("totals").group_by(lambda key, value: "all", key=str)'))
    start = T0 // HOUR // 6 * 6
    made = [
        {"user": user, "t": (at := (start + window * 6 + hour) * HOUR), "got": at + 1, "x": 1}
        for window in range(HOURS // 6)
        for hour, user in zip((0, 2, 4), sorted(USERS[:3], reverse=True), strict=True)
    ]
    found = replay(bench, made, landings, each=True)
    size = hours * HOUR
    assert {row["window_start"]: row["value"] for row in found} == Counter(row["t"] // size * size for row in made)


def replay(bench: Bench, rows: list[dict[str, Any]], landings: int, *, each: bool) -> list[dict[str, Any]]:
    """Land rows in some landings, replay both jobs after each or at the end, and return what the second one wrote."""
    share = len(rows) // landings
    second = ("land totals", "run days")
    with without_spark():
        for number in range(landings):
            bench.rows(f"h{number:02}", rows[number * share : (number + 1) * share if number < landings - 1 else None])
            bench.done("land activity", "run counts", *(second if each or number == landings - 1 else ()))
        bench.done("run counts --final", "land totals", "run days --final")
    return read_rows(table_path(str(bench.warehouse), "shop/seen")).to_pylist()


def test_every_command_knows_by_how_much_the_watermark_is_below_that_of_the_first_job(tmp_path: Path) -> None:
    bench = project(tmp_path)
    bench.rows("h0", records())
    with without_spark():
        whole_ms = bench.json("land activity")["watermark_ms"]
        bench.done("run counts")
        report = bench.json("land totals")
        assert (report["held_ms"], report["watermark_ms"]) == (150 * 60_000, whole_ms - 150 * 60_000)
        bench.done("run days")
        below = "2h30m below that of the job that makes its records"
        (row,) = bench.json("report days")["open_windows"]["shown"][:1]
        assert (row["cause"], below in row["why"]) == ("upstream_job", True)
        told(bench.why(f"shop.seen {USERS[0]}"), "result-waits-for-clock", reason=containing(below))
        bench.done("run counts --final")
        assert bench.json("land totals")["watermark_ms"] == whole_ms
