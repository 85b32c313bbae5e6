"""A number that several runs of a chain have is refused, and runs after a promotion have numbers of their own. Without Spark."""

from __future__ import annotations

import pytest

from rewindow.control.plan.job_state import Branch
from rewindow.control.plan.spec import MAIN
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import SCORE, Answer, Bench, hour

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
