"""`explain` promises the execution that `run` uses, and both name the setting that needs record execution."""

from __future__ import annotations

import pytest

from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import TARGET, Bench


@pytest.fixture
def bench(bench: Bench) -> Bench:
    """The next landing waits for a run."""
    bench.done("land activity")
    return bench


def explained(bench: Bench) -> str:
    (part,) = bench.json("explain counts")["sub_topologies"]
    how: str = part["execution"]
    return how


def was_vectorized(bench: Bench) -> bool:
    tables = DeltaTables(str(bench.warehouse))
    head = tables.state("counts").branch("main").head
    assert head is not None
    return any(report.is_vectorized for report in tables.reports(head))


def test_without_such_settings_the_job_is_vectorized(bench: Bench) -> None:
    assert explained(bench).startswith("vectorized execution")
    bench.done("run counts")
    assert was_vectorized(bench)


@pytest.mark.parametrize("setting", ["on_error: {scores: retry 3}", "dropped: quarantine"])
def test_explain_and_the_refusal_name_the_setting(bench: Bench, setting: str) -> None:
    bench.edit("conf/jobs/counts.yaml", "on_code_change: accept\n", f"on_code_change: accept\n{setting}\n")
    how, _, why = explained(bench).partition(": ")
    assert how.startswith("record execution")
    bench.write("conf/targets/local.yaml", f"{TARGET}execution: vectorized\n")
    bench.refuses("run counts", "vectorized-execution-unsupported", reason=why, job="counts")
    bench.write("conf/targets/local.yaml", TARGET)
    bench.done("run counts")
    assert not was_vectorized(bench)
