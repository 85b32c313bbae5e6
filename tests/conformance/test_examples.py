"""Each example in differences.md: Kafka's rows are the recorded ones, ours are those of the code that the page shows."""

from __future__ import annotations

import pytest

from tests.conformance import claims, drive, verdict
from tests.conformance.examples import VECTORS, Example, examples, text
from tests.conformance.scenario import read

EXAMPLES = [pytest.param(one, id=one.scenario) for one in examples()]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_deviates_by_exactly_its_decision(example: Example) -> None:
    judged = verdict.judge(example.case(), cut=False)
    assert (judged.status, judged.number) == (verdict.DEVIATING, example.number), judged.reason


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_code_on_the_page_gives_the_rows_on_the_page(example: Example) -> None:
    assert example.rows() == drive.play(example.case().scenario, cut=False).steps


@pytest.mark.parametrize("number", ["D10", "D12", "D13", "D21"])
def test_each_decision_that_changes_rows_has_an_example(number: str) -> None:
    assert f"### {number}: " in text()


@pytest.mark.parametrize("number", ["D10", "D12", "D13"])
def test_kafkas_rows_break_what_the_decision_promises(number: str) -> None:
    cases = [one.case() for one in examples() if one.number == number]
    assert [case.name for case in cases if claims.broken(case.scenario, case.steps, number)]


def test_a_deviation_that_breaks_its_own_promise_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the twin says: here it agrees with the engine."""
    monkeypatch.setitem(claims.CLAIMS, "D12", lambda _scenario, _steps: iter(["step 1: wrong"]))
    judged = verdict.judge(next(one.case() for one in examples() if one.number == "D12"), cut=False)
    assert (judged.status, judged.reason) == (
        verdict.FAILED,
        "D12 explains it, but rewindow breaks its promise: step 1: wrong",
    )


def test_kafka_with_a_task_for_each_sub_topology_sends_the_rows_of_rewindow() -> None:
    case = next(case for case in read(VECTORS) if case.name == "d21_the_same_as_separate_tasks")
    assert verdict.judge(case, cut=False).status == verdict.PASSED
