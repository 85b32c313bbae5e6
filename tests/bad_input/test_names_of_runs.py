"""A run's name means one run, whatever is rewound and promoted. None of it needs Spark."""

from __future__ import annotations

from pathlib import Path

from tests.bad_input.scene import Say


def test_the_name_of_a_rewound_run_is_never_given_to_another_run(say: Say, shop: Path) -> None:
    assert say("land", "orders")[0] == 0
    assert say("run", "daily_orders", "--through", "1")[0] == 0
    assert "Run main/2 of" in say("run", "daily_orders")[1]
    assert say("rewind", "daily_orders", "--to", "1")[0] == 0
    assert "Run main/3 of daily_orders: epochs 2 to 3" in say("run", "daily_orders")[1]
    code, text = say("report", "daily_orders", "--run", "main/2")
    assert (code, "run 'main/2' was rewound" in text) == (2, True)
    assert say("backfill", "daily_orders", "--from", "1", "--branch", "fix")[0] == 0
    assert say("promote", "daily_orders", "fix")[0] == 0
    assert say("rewind", "daily_orders", "--to", "0")[0] == 0
    assert "Run main/4 of daily_orders: epochs 1 to 3" in say("run", "daily_orders")[1]
