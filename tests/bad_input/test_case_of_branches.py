"""Branches whose names differ only in case would share a table on a disk that ignores case. Without Spark."""

from __future__ import annotations

import pytest

from tests.bad_input.scene import Bench


@pytest.mark.parametrize("command", ["run counts --branch", "backfill counts --from 1 --branch"])
def test_a_branch_that_differs_only_in_case_from_another_is_refused(bench: Bench, command: str) -> None:
    assert bench.run(*command.split(), "Fix").code == 0
    _refused(bench, command, "fix", "Fix")
    assert bench.run("branch", "drop", "counts", "Fix").code == 0
    _refused(bench, command, "FIX", "Fix")
    _refused(bench, command, "Main", "main")
    assert bench.run(*command.split(), "fix2").code == 0


def _refused(bench: Bench, command: str, name: str, other: str) -> None:
    decided = bench.decided()
    answer = bench.run(*command.split(), name)
    assert answer.code == 78, answer
    assert f"branch name '{name}' differs only in case from '{other}'" in answer.err
    assert bench.decided() == decided
    assert not [*bench.warehouse.glob(f"alerts/totals__{name}")]
