"""`explain` promises the execution that `run` uses, and both name the setting that needs record execution."""

from __future__ import annotations

import json

import pytest

from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import TARGET, Bench


@pytest.fixture
def bench(bench: Bench) -> Bench:
    """The next landing waits for a run."""
    assert bench.run("land", "activity").code == 0
    return bench


def explained(bench: Bench) -> str:
    (part,) = json.loads(bench.run("explain", "counts", "--json").out)["sub_topologies"]
    how: str = part["execution"]
    return how


def was_vectorized(bench: Bench) -> bool:
    tables = DeltaTables(str(bench.warehouse))
    head = tables.state("counts").branch("main").head
    assert head is not None
    return any(report.is_vectorized for report in tables.reports(head))


def test_without_such_settings_the_job_is_vectorized(bench: Bench) -> None:
    assert explained(bench).startswith("vectorized execution")
    assert bench.run("run", "counts").code == 0
    assert was_vectorized(bench)


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("on_error: {scores: retry 3}", "node scores has `on_error: retry 3`"),
        ("on_error: {scores: quarantine}", "node scores has `on_error: quarantine`"),
        ("dropped: quarantine", "the job has `dropped: quarantine`"),
    ],
)
def test_explain_and_the_refusal_name_the_setting(bench: Bench, setting: str, why: str) -> None:
    bench.edit("conf/jobs/counts.yaml", "on_code_change: accept\n", f"on_code_change: accept\n{setting}\n")
    assert explained(bench) == f"record execution (Python, record by record): {why}"
    bench.write("conf/targets/local.yaml", f"{TARGET}execution: vectorized\n")
    refused = bench.run("run", "counts")
    assert refused.code == 78
    assert f"sub-topology 0 of job 'counts' cannot use vectorized execution: {why}. Set execution: auto" in refused.err
    assert explained(bench).endswith(why)
    bench.write("conf/targets/local.yaml", TARGET)
    assert bench.run("run", "counts").code == 0
    assert not was_vectorized(bench)
