"""`why` of a key that a repartition makes: its dropped records are named from the quarantine."""

from __future__ import annotations

import pytest

from rewindow.contracts.instants import instant
from rewindow.errors import ReasonMessage
from tests.bad_input.newcomer import JOB, ROWS_FEED, daily_project
from tests.bad_input.scene import HOUR, T0, Bench
from tests.refusals import containing, told

DAY = 24 * HOUR
MOVED = '.select_key(lambda key, row: "all", key=str)\n        .where("x > 0")'


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, in_process: None) -> Bench:
    bench = daily_project(tmp_path_factory.mktemp("moved") / "project")
    bench.write("conf/jobs/daily_orders.yaml", f"{JOB}dropped: quarantine\n")
    bench.edit("shop_job.py", '.where("x > 0")', MOVED)
    for name, days in (("first", [0, 1, 2, 5]), ("late", [1, 6]), ("later", [1, 3, 7])):
        rows = [{"user": "ann", "t": T0 + day * DAY, "got": T0 + day * DAY + 1, "x": day + 1} for day in days]
        bench.rows(name, rows)
        bench.done("land orders", "run daily_orders")
    return bench


def notes(bench: Bench, words: str) -> list[ReasonMessage]:
    found = bench.said(f"why daily_orders all {words}")
    return [*found.get("notes", ()), *found.get("reasons", ())]


def test_dropped_records_of_the_windows_row_are_counted(bench: Bench) -> None:
    told(notes(bench, f"--window {day(1)}"), "key-in-quarantine", records="2 records", reason="window-closed")
    assert "key-in-quarantine" not in [note.code for note in notes(bench, f"--window {day(2)}")]


def test_a_window_without_a_row_names_what_was_dropped_of_it(bench: Bench) -> None:
    told(notes(bench, f"--window {day(3)} --missing"), "key-in-quarantine", records="1 record", reason="window-closed")


def test_a_lag_that_holds_the_window_open_is_named_behind_a_repartition(bench: Bench) -> None:
    bench.write("conf/feeds/orders.yaml", f"{ROWS_FEED}lag: 2d\n")
    bench.done("land orders --new-generation", "run daily_orders --branch lags")
    told(
        notes(bench, f"--window {day(6)} --missing --branch lags"),
        "result-waits-for-clock",
        reason=containing("lag: 2d"),
    )


def day(number: int) -> str:
    return instant((T0 + number * DAY) // DAY * DAY).replace(" ", "T")
