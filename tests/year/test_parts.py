"""The parts of a year in fast motion: its events, its lines, its counts. The year itself is `test_year.py`."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from tests.year.charts import chart
from tests.year.events import Year
from tests.year.fit import fit
from tests.year.judge import YEAR_RUNS, judged
from tests.year.requests import Requests
from tests.year.series import CPU, FILES, TWICE, Bound, Series


def test_a_year_has_every_event_and_ends_each_day_with_gc() -> None:
    year = Year()
    hours = [year.of(hour) for hour in range(year.hours)]
    after = [what for hour in hours for what in hour.after]
    assert after.count("gc") == 365
    assert after.count("rewind") == 12
    assert (after.count("upgrade"), after.count("branch")) == (1, 1)
    assert 3 <= after.count("kill gc") <= 100
    assert 30 <= sum(len(hour.killed) for hour in hours) <= 100
    assert 30 <= sum(hour.is_doubled for hour in hours) <= 100
    assert sum(hour.is_sample for hour in hours) == 3 * year.samples
    assert hours[0:3] == [year.of(hour) for hour in range(3)], "an interrupted year has the same events"


def test_the_upgrade_follows_the_hours_of_the_older_version() -> None:
    for year in (Year(), Year(120, 4)):
        upgraded = next(hour for hour in range(year.hours) if "upgrade" in year.of(hour).after)
        assert upgraded + 1 == year.upgraded
        assert year.of(upgraded).is_old
        assert not year.of(upgraded + 1).is_old


@pytest.mark.parametrize("seed", range(20))
def test_the_interval_of_a_fit_has_the_slope_of_points_around_a_line(seed: int) -> None:
    rng = random.Random(seed)
    points = [(x, 5 + 0.01 * x + rng.gauss(0, 0.5)) for x in range(0, 1_000, 20)]
    line = fit(points)
    assert abs(line.slope - 0.01) <= 2 * line.error, seed
    assert line.at(0) == pytest.approx(5, abs=1)
    assert line.least(1_000) < 1_000 * line.slope


def test_two_points_have_no_interval() -> None:
    with pytest.raises(ValueError, match="2 points"):
        fit([(1, 1), (2, 2)])


def test_only_growth_beyond_its_bound_is_reported() -> None:
    rng = random.Random(1)
    flat = [(run, 1 + rng.gauss(0, 0.1)) for run in range(1, 400, 10)]
    steep = [(run, 1 + 0.0023 * run + rng.gauss(0, 0.1)) for run in range(1, 400, 10)]
    series = [
        Series(CPU, "flat", flat, TWICE),
        Series(CPU, "steep", steep, TWICE),
        Series(FILES, "allowed", steep, Bound(each_run=0.01)),
        Series(FILES, "shown", steep, Bound(why="rows")),
    ]
    found = judged(series, [])
    assert [one.series.name for one in found if one.grows] == ["steep"]
    assert found[1].at_year == pytest.approx(1 + 0.0023 * YEAR_RUNS, rel=0.1)
    assert chart("CPU", found).count("<circle") == 160


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux counts")
def test_opened_files_and_listed_folders_are_counted_also_in_new_folders(tmp_path: Path) -> None:
    with Requests(tmp_path) as requests:
        for name in "ab":
            (tmp_path / name).write_text(name)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
        (tmp_path / "a").read_text()
    assert (requests.files, requests.folders) == (3, 1)
