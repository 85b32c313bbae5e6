"""Names of runs and branches: each means one, whatever is rewound and promoted. Without Spark."""

from __future__ import annotations

import pytest

from rewindow.control.plan.job_state import Branch
from rewindow.control.plan.spec import MAIN
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import SCORE, Answer, Bench, hour


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
    ("report", "counts", "--run", "{}"),
    ("report", "counts", "--since", "{}"),
    ("state", "list", "counts", "--at", "{}"),
    ("state", "diff", "counts", "sums", "{}", "main/4"),
    ("why", "counts", "ann", "--run", "{}"),
    ("publish", "counts", "--accept", "--run", "{}"),
    ("verify", "counts", "{}"),
    ("rewind", "counts", "--to", "{}"),
)


def test_a_run_after_a_promotion_has_a_number_above_those_of_the_chain(bench: Bench) -> None:
    assert _chain_after_a_promotion(bench) == ["fix/3", "main/4", "main/5"]
    _done(bench, "rewind", "counts", "--to", "3")
    assert _chain(bench) == ["fix/3"]
    _done(bench, "run", "counts")
    assert _chain(bench) == ["fix/3", "main/6"]


def test_a_number_that_two_runs_of_a_chain_have_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        before = property(lambda branch: max(len(branch.runs), branch.last_number) + 1)
        earlier.setattr(Branch, "next_number", before)
        assert _chain_after_a_promotion(bench) == ["fix/3", "main/3", "main/4"]
    for command in TAKES_A_RUN:
        _with(bench, command, "3").refused("run-number-ambiguous", count=2, number="3")
    assert _chain(bench) == ["fix/3", "main/3", "main/4"]
    _done(bench, "rewind", "counts", "--to", "main/3")
    assert _chain(bench) == ["fix/3", "main/3"]
    _done(bench, "run", "counts")
    assert _chain(bench) == ["fix/3", "main/3", "main/5"]


def _chain_after_a_promotion(bench: Bench) -> list[str]:
    """Promote a branch that has started over twice, run twice, and return the names of the chain of `main`."""
    for factor in (2, 3, 4):
        bench.code(SCORE.replace("* 2", f"* {factor}"))
        _done(bench, "backfill", "counts", "--from", "1", "--branch", "fix")
    _done(bench, "promote", "counts", "fix")
    for number in (2, 3):
        bench.rows(f"h{number}", hour(number))
        _done(bench, "land", "activity")
        _done(bench, "run", "counts")
    return _chain(bench)


def _with(bench: Bench, command: tuple[str, ...], run: str) -> Answer:
    return bench.run(*(word.format(run) for word in command))


def _done(bench: Bench, *words: str) -> None:
    answer = bench.run(*words)
    assert answer.code == 0, (words, answer)


def _chain(bench: Bench) -> list[str]:
    return [run.spec.name for run in DeltaTables(str(bench.warehouse)).state("counts").branch(MAIN).runs]
