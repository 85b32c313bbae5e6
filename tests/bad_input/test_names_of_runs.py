"""A run's name means one run, whatever is rewound and promoted. None of it needs Spark."""

from __future__ import annotations

from tests.bad_input.scene import Bench


def test_the_name_of_a_rewound_run_is_never_given_to_another_run(sample: Bench) -> None:
    sample.done("rewind daily_orders --to 0", "run daily_orders --through 1")
    assert sample.json("run daily_orders")["run"] == "main/3"
    sample.done("rewind daily_orders --to main/2")
    assert sample.json("run daily_orders")["run"] == "main/4"
    sample.refuses("report daily_orders --run main/3", "run-not-on-branch", run="main/3")
    sample.done("backfill daily_orders --from 1 --branch fix", "promote daily_orders fix", "rewind daily_orders --to 0")
    assert sample.json("run daily_orders")["run"] == "main/5"
