"""`why` of a key that a repartition makes: its dropped records are named from the quarantine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewindow.contracts.instants import instant
from tests.bad_input.newcomer import JOB, ROWS_FEED, daily_project
from tests.bad_input.scene import HOUR, T0, Bench, without_spark

DAY = 24 * HOUR
MOVED = '.select_key(lambda key, row: "all", key=str)\n        .where("x > 0")'


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with without_spark():
        bench = daily_project(tmp_path / "project")
        bench.write("conf/jobs/daily_orders.yaml", f"{JOB}dropped: quarantine\n")
        bench.edit("shop_job.py", '.where("x > 0")', MOVED)
        for name, days in (("first", [0, 1, 2, 5]), ("late", [1, 6]), ("later", [1, 3, 7])):
            rows = [{"user": "ann", "t": T0 + day * DAY, "got": T0 + day * DAY + 1, "x": day + 1} for day in days]
            bench.rows(name, rows)
            for command in (("land", "orders"), ("run", "daily_orders")):
                answer = bench.run(*command)
                assert answer.code == 0, answer
        yield bench


def notes(bench: Bench, *words: str) -> list[str]:
    answer = bench.run("why", "daily_orders", "all", *words, "--json")
    assert answer.code == 0, answer
    found: dict[str, Any] = json.loads(answer.out)
    return [*found.get("notes", ()), *found.get("reasons", ())]


def test_dropped_records_of_the_windows_row_are_counted(bench: Bench) -> None:
    said = notes(bench, "--window", day(1))
    assert "2 records with this key were dropped, the last one because of: window-closed (`rewindow head" in " ".join(
        said
    )
    assert "dropped," not in " ".join(notes(bench, "--window", day(2)))


def test_a_window_without_a_row_names_what_was_dropped_of_it(bench: Bench) -> None:
    said = notes(bench, "--window", day(3), "--missing")
    assert said[0].startswith("1 record with this key was dropped, because of: window-closed")


def test_a_lag_that_holds_the_window_open_is_named_behind_a_repartition(bench: Bench) -> None:
    bench.write("conf/feeds/orders.yaml", f"{ROWS_FEED}lag: 2d\n")
    assert bench.run("land", "orders", "--new-generation").code == 0
    assert bench.run("run", "daily_orders", "--branch", "lags").code == 0
    said = notes(bench, "--window", day(6), "--missing", "--branch", "lags")
    assert "The feed's watermark is `lag: 2d` behind its newest record" in " ".join(said)


def day(number: int) -> str:
    return instant((T0 + number * DAY) // DAY * DAY)
