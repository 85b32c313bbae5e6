"""A feed with `watermark: interval_end` whose source lags: rows that are not there yet are not late once they are."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rewindow.app.open_project import OpenProject
from rewindow.contracts.instants import instant
from tests.bad_input.own_csv import FEED, own
from tests.bad_input.scene import Bench, hour
from tests.bad_input.statuses import status
from tests.ingest.local_engine import HOUR, T0, write_rows
from tests.refusals import Refusal

ONE = """\
feed: late
partitions: 2
landing: {every: 1h, watermark: interval_end}
logs:
  events: {source: {path: raw, format: parquet}, key: user, timestamp: t, arrived_at: got}
"""
TWO = f"{ONE}  others: {{source: {{path: others/raw, format: parquet}}, key: user, timestamp: t, arrived_at: got}}\n"


@pytest.fixture
def lagging(tmp_path: Path, in_process: None) -> Bench:
    """A project whose source has the files of three hours, although years have passed."""
    bench = Bench(tmp_path)
    bench.write("conf/targets/local.yaml", "target: local\nwarehouse: warehouse\n")
    bench.write("conf/feeds/late.yaml", ONE)
    for number in range(3):
        bench.rows(f"h{number}", hour(number))
    return bench


def until(hours: int) -> str:
    """Return `--until` with a time some hours after the first row."""
    return f"--until {instant(T0 + hours * HOUR).replace(' ', 'T')}"


def intervals(bench: Bench) -> list[tuple[int, int, int]]:
    """Return the landings: the number of the hour, of rows, and of rows that became visible after their hour was landed."""
    landed = OpenProject.open(bench.root).tables.feed("late").landings
    return [((of.interval[0] - T0) // HOUR, of.counts["rows"], of.counts["behind"]) for of in landed]  # type: ignore[index]


def test_an_hour_is_landed_once_a_later_row_is_there_and_no_row_is_late(lagging: Bench) -> None:
    report = lagging.land("late")
    assert report.waiting is not None
    Refusal("intervals-not-followed", {"begin": "2023-11-15 00:00 UTC"}).check(report.waiting)
    assert "--until" in lagging.done("land late").out
    assert intervals(lagging) == [(0, 12, 0), (1, 12, 0)]
    lagging.rows("h2-late", hour(2, rows=6))
    lagging.rows("h4", hour(4))
    lagging.done("land late")
    assert intervals(lagging)[2:] == [(2, 18, 0), (3, 0, 0)]


def test_a_caller_who_knows_closes_the_last_hours_too(lagging: Bench) -> None:
    assert lagging.done(f"land late {until(5)}").out.count("--until") == 0
    assert intervals(lagging) == [(number, 12 if number < 3 else 0, 0) for number in range(5)]


def test_nothing_is_landed_while_nothing_follows(lagging: Bench) -> None:
    lagging.done(f"land late {until(3)}")
    lagging.rows("h3", hour(3))
    assert lagging.land("late").waiting.code == "intervals-not-followed"  # type: ignore[union-attr]
    assert len(intervals(lagging)) == 3


def test_the_log_that_lags_decides_and_one_that_never_delivered_does_not(lagging: Bench) -> None:
    lagging.write("conf/feeds/late.yaml", TWO)
    write_rows(lagging.root / "others", "h0", hour(0))
    assert lagging.land("late").landings == ()
    write_rows(lagging.root / "others", "h1", hour(1))
    lagging.done("land late")
    assert intervals(lagging) == [(0, 24, 0)]


def test_a_new_generation_lands_what_was_declared_complete_before(lagging: Bench) -> None:
    lagging.done(f"land late {until(5)}", "land late --new-generation")
    assert intervals(lagging) == [(number, 12 if number < 3 else 0, 0) for number in range(5)]


def test_files_of_landed_hours_are_found(lagging: Bench) -> None:
    lagging.done(f"land late {until(5)}")
    assert [finding.about for finding in lagging.findings("late")] == ["interval"]
    lagging.rows("h3", hour(3))
    behind = next(finding for finding in lagging.findings("late") if finding.about == "behind")
    Refusal("new-files-behind", {"topic": "events"}).check(behind.message)
    assert behind.level == "alert"


@pytest.mark.parametrize(("day", "abouts"), [("2026-01-06", {"interval", "behind"}), ("2026-01-10", {"interval"})])
def test_csv_files_of_landed_days_are_found(new_shop: Bench, day: str, abouts: set[str]) -> None:
    new_shop.edit(FEED, "landing: {every: 1d}", "landing: {every: 1d, watermark: interval_end}")
    new_shop.done("land orders --until 2026-01-09T00:00:00")
    own(new_shop, 20, at=f"{day}T08:15:00Z", got=f"{day}T08:16:00Z")
    assert {finding.about for finding in new_shop.findings("orders")} == abouts


def test_a_csv_file_of_a_day_that_is_not_over_is_not_due(new_shop: Bench) -> None:
    new_shop.done("land orders")
    now = instant(time.time_ns() // 1_000_000).replace(" ", "T")
    own(new_shop, 20, at=now, got=now)
    assert new_shop.findings("orders") == []
    assert status(new_shop)[0]["orders"]["due"] is False


def test_files_that_arrive_late_within_the_current_hour_are_found(
    lagging: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = T0 + 5 * HOUR + 60_000
    for module in ("listing", "open_project"):
        monkeypatch.setattr(f"rewindow.app.{module}.time", SimpleNamespace(time=lambda: now_ms / 1000))
    lagging.done(f"land late {until(5)}")
    assert lagging.findings("late") == []
    lagging.rows("h3", hour(3))
    (finding,) = lagging.findings("late")
    assert (finding.level, finding.about) == ("alert", "behind")
    assert lagging.run("status", "late").code == 1
