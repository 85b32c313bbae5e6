"""Which outputs of a branch cannot be compared with those of main, because their keys have other columns."""

from __future__ import annotations

from dataclasses import replace

from rewindow.control.plan.compatibility import other_keys
from rewindow.control.plan.job_fold import fold
from rewindow.control.plan.spec import RunSpec
from tests.control.ledgers import BINDING, commit_row, plan, plan_row

TOTALS = "output/totals"


def main_of(keys):
    """Return main after a run whose binding has some keys."""
    binding = replace(BINDING, keys=keys)
    spec = plan([], "a", binding=binding)
    assert isinstance(spec, RunSpec)
    rows = [plan_row(spec)]
    return fold([*rows, commit_row(rows, spec)]).branch("main")


def test_other_key_columns_are_named():
    now = replace(BINDING, keys={**BINDING.keys, TOTALS: ("value",)})
    assert other_keys(main_of({**BINDING.keys, TOTALS: ("user",)}), now) == ["totals"]
    assert other_keys(main_of({**BINDING.keys, TOTALS: ("value",)}), now) == []


def test_runs_of_earlier_code_did_not_tell_their_keys():
    now = replace(BINDING, keys={**BINDING.keys, TOTALS: ("value",)})
    assert other_keys(main_of(BINDING.keys), now) == []
