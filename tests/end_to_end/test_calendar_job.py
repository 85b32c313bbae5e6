"""A job with windows in local time on real tables: whole and cut, with a new edition of the time zone database, and explained."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rewindow.storage.zone_data import read_zone
from rewindow.streams.windows.zone_table import ZoneTable
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from tests.bad_input.scene import Bench, project_of, topology, without_spark

pytestmark = pytest.mark.slow

BERLIN = ZoneInfo("Europe/Berlin")
AUTUMN = int(datetime(2026, 10, 25, 1, tzinfo=UTC).timestamp() * 1000)
FEED = """\
feed: shop
partitions: 2
logs:
  orders:
    source: {format: csv, path: data, schema: "user STRING, t TIMESTAMP", options: {header: "true"}}
    key: user
    value: [t]
    timestamp: t
"""
CODE = topology(
    'windows = CalendarWindows.of("1d", zone="Europe/Berlin", grace="2h")',
    'counts = builder.stream("orders").group_by_key().windowed_by(windows).count(store="per-day")',
    'counts.suppress(until_window_closes()).to_stream().to("days")',
)
DAYS = range(24, 29)
"""October 2026. Clocks change on the 25th, which has 25 hours."""


def times(day: int) -> list[datetime]:
    """Return the times of a day's records: one in each hour of UTC, so that some belong to the next local day."""
    start = datetime(2026, 10, day, tzinfo=UTC)
    return [start + timedelta(minutes=60 * hour + 7) for hour in range(24)]


def write(bench: Bench, day: int) -> None:
    rows = [f"{user},{time.isoformat()}" for time in times(day) for user in ("ann", "bob", "cyd")]
    bench.write(f"data/{day}.csv", "\n".join(["user,t", *rows, ""]))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = project_of(tmp_path, FEED, CODE, "days", more="semantics: {stream_time_from: watermark}\n")
    with without_spark():
        yield bench


def landed(bench: Bench, *days: int) -> None:
    for day in days:
        write(bench, day)
        bench.done("land shop", "run counts")


def rows(bench: Bench, table: str = "shop/days") -> list[tuple[Any, ...]]:
    found = read_rows(table_path(str(bench.warehouse), table)).to_pylist()
    return sorted((row["user"], row["window_start"], row["window_end"], row["value"]) for row in found)


def expected(users: tuple[str, ...] = ("ann", "bob", "cyd")) -> list[tuple[Any, ...]]:
    """Return the rows of all days that are over, counted naively."""
    counts: dict[Any, int] = {}
    every = [time for day in DAYS for time in times(day)]
    for time in every:
        date = time.astimezone(BERLIN).date()
        counts[date] = counts.get(date, 0) + 1
    ends = {date: datetime(date.year, date.month, date.day, tzinfo=BERLIN) for date in counts}
    bounds = {
        date: (start, datetime.fromordinal(date.toordinal() + 1).replace(tzinfo=BERLIN)) for date, start in ends.items()
    }
    return sorted(
        (user, *(int(bound.timestamp() * 1000) for bound in bounds[date]), count)
        for date, count in counts.items()
        for user in users
        if bounds[date][1] + timedelta(hours=2) <= every[-1]
    )


def forgets_autumn(clock: ZoneTable) -> ZoneTable:
    """Return the clock without the change of October 2026 and the one after it."""
    at = clock.changes_ms.index(AUTUMN)
    changes, offsets = clock.changes_ms, clock.offsets_ms
    return ZoneTable(clock.zone, (*changes[:at], *changes[at + 2 :]), (*offsets[:at], *offsets[at + 2 :]), "2026z")


@pytest.fixture
def new_edition(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = forgets_autumn(read_zone("Europe/Berlin"))
    monkeypatch.setattr("rewindow.storage.zone_data.read_zones", lambda zones: dict.fromkeys(zones, clock))


def test_one_run_and_many_give_the_days_of_the_local_calendar(bench: Bench, tmp_path: Path) -> None:
    landed(bench, *DAYS)
    assert rows(bench) == expected()
    assert {end - start for _, start, end, _ in rows(bench)} == {24 * 3_600_000, 25 * 3_600_000}
    whole = project_of(tmp_path / "whole", FEED, CODE, "days", more="semantics: {stream_time_from: watermark}\n")
    for day in DAYS:
        write(whole, day)
        whole.done("land shop")
    whole.done("run counts")
    assert rows(whole) == rows(bench)


def test_a_new_edition_that_changes_only_the_future_is_accepted_and_noted(
    bench: Bench, request: pytest.FixtureRequest
) -> None:
    landed(bench, 23)
    request.getfixturevalue("new_edition")
    landed(bench, 24)
    assert len(bench.json("show counts")["runs"]) == 2
    bench.done(f"report counts --out {bench.root}/report.html")
    assert "clock of Europe/Berlin" in Path(bench.root, "report.html").read_text()


def test_a_new_edition_that_changes_the_past_is_refused_until_it_is_accepted(
    bench: Bench, request: pytest.FixtureRequest
) -> None:
    landed(bench, 24, 25, 26)
    before = rows(bench)
    request.getfixturevalue("new_edition")
    write(bench, 27)
    bench.done("land shop")
    bench.refuses("run counts", "job-changed-since-checkpoint")
    bench.refuses("plan counts", "job-changed-since-checkpoint")
    bench.done("run counts --accept-changes")
    # Rows of before stay, and the open window keeps the end with which it was stored.
    assert set(before) < set(rows(bench))
    ends = sorted({end for _, _, end, _ in rows(bench)})
    assert all(later - earlier in {24 * 3_600_000, 25 * 3_600_000} for earlier, later in pairwise(ends))
    # Runs of before are replayed with their own clock.
    bench.done("verify counts main/1")
    start = datetime(2026, 10, 25, tzinfo=BERLIN).isoformat()
    assert bench.json(f"why shop.days ann --window {start}")["is_reproduced"]


def test_an_unknown_zone_is_refused_with_the_line_of_the_job(bench: Bench) -> None:
    bench.edit("bench_job.py", "Europe/Berlin", "Europe/Berlim")
    write(bench, 24)
    bench.done("land shop")
    bench.refuses("run counts", "time-zone-unknown", zone="Europe/Berlim")


def test_the_ledger_has_edition_and_hash_of_the_clock(bench: Bench) -> None:
    landed(bench, 24)
    runs = read_rows(table_path(str(bench.warehouse), "rewindow/runs")).to_pylist()
    clock = read_zone("Europe/Berlin")
    plan = next(str(row) for row in runs if "PLAN" in str(row))
    assert clock.digest() in plan
    assert clock.version in plan


def test_why_names_the_true_end_of_an_open_day(bench: Bench) -> None:
    landed(bench, 24, 25)
    start = datetime(2026, 10, 25, tzinfo=BERLIN)
    closes = bench.json(f"why shop.days ann --missing --window {start.isoformat()}")
    assert (start + timedelta(days=1, hours=2)).timestamp() * 1000 in closes.values(), closes
