"""Names of runs and branches: each means one, whatever is rewound and promoted. Without Spark."""

from __future__ import annotations

import pytest

from rewindow.control.plan.job_state import Branch
from rewindow.control.plan.spec import MAIN
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import SCORE, Bench, hour


def test_the_name_of_a_rewound_run_is_never_given_to_another_run(sample: Bench) -> None:
    sample.done("rewind daily_orders --to 0", "run daily_orders --through 1")
    assert sample.json("run daily_orders")["run"] == "main/3"
    sample.done("rewind daily_orders --to main/2")
    assert sample.json("run daily_orders")["run"] == "main/4"
    sample.refuses("report daily_orders --run main/3", "run-not-on-branch", run="main/3")
    sample.done("backfill daily_orders --from 1 --branch fix", "promote daily_orders fix", "rewind daily_orders --to 0")
    assert sample.json("run daily_orders")["run"] == "main/5"


def test_a_branch_that_differs_only_in_case_from_another_is_refused(bench: Bench) -> None:
    bench.done("run counts --branch Fix")
    _refused(bench, "run counts --branch fix", "Fix")
    bench.done("branch drop counts Fix")
    _refused(bench, "backfill counts --from 1 --branch FIX", "Fix")
    _refused(bench, "run counts --branch Main", "main")
    bench.done("run counts --branch fix2")


def _refused(bench: Bench, line: str, other: str) -> None:
    decided = bench.decided()
    bench.refuses(line, "branch-name-differs-in-case", other=other)
    assert bench.decided() == decided
    assert not [*bench.warehouse.glob(f"alerts/totals__{line.rsplit(maxsplit=1)[-1]}")]


TAKES_A_RUN = (
    *("report counts --run 3", "report counts --since 3", "why counts ann --run 3", "verify counts 3"),
    *("state list counts --at 3", "state diff counts sums 3 main/4"),
    *("publish counts --accept --run 3", "rewind counts --to 3"),
)


def test_a_run_after_a_promotion_has_a_number_above_those_of_the_chain(bench: Bench) -> None:
    assert _chain_after_a_promotion(bench) == ["fix/3", "main/4", "main/5"]
    bench.done("rewind counts --to 3")
    assert _chain(bench) == ["fix/3"]
    bench.done("run counts")
    assert _chain(bench) == ["fix/3", "main/6"]


def test_a_number_that_two_runs_of_a_chain_have_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        before = property(lambda branch: max(len(branch.runs), branch.last_number) + 1)
        earlier.setattr(Branch, "next_number", before)
        assert _chain_after_a_promotion(bench) == ["fix/3", "main/3", "main/4"]
    for line in TAKES_A_RUN:
        bench.refuses(line, "run-number-ambiguous", count=2, number="3")
    assert _chain(bench) == ["fix/3", "main/3", "main/4"]
    bench.done("rewind counts --to main/3")
    assert _chain(bench) == ["fix/3", "main/3"]
    bench.done("run counts")
    assert _chain(bench) == ["fix/3", "main/3", "main/5"]


def _chain_after_a_promotion(bench: Bench) -> list[str]:
    """Promote a branch that has started over twice, run twice, and return the names of the chain of `main`."""
    for factor in (2, 3, 4):
        bench.code(SCORE.replace("* 2", f"* {factor}"))
        bench.done("backfill counts --from 1 --branch fix")
    bench.done("promote counts fix")
    for number in (2, 3):
        bench.rows(f"h{number}", hour(number))
        bench.done("land activity", "run counts")
    return _chain(bench)


def _chain(bench: Bench) -> list[str]:
    return [run.spec.name for run in DeltaTables(str(bench.warehouse)).state("counts").branch(MAIN).runs]
