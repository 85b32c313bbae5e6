"""Code that was edited between two runs is named and needs an explicit decision; nothing mixes two versions silently."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bad_input.scene import Bench, without_spark
from tests.end_to_end.flights import write_sources

pytestmark = pytest.mark.slow

JOB = "quiet_carriers"
CHANGED = "to_alert in jobs/quiet_carriers.py changed"


@pytest.fixture
def bench(project: Path) -> Iterator[Bench]:
    write_sources(project, flights=600)
    bench = Bench(project)
    with without_spark():
        bench.done("land flights", f"run {JOB} --through 1")
        yield bench


def call(bench: Bench, *words: str, code: int = 0) -> dict[str, Any]:
    """Return what a command prints, with the code imported anew, as in a process of its own."""
    answer = bench.run(*words, "--json")
    assert answer.code == code, answer
    return answer.values


def edit(root: Path) -> None:
    """Edit the job so that every alert counts one departure too many."""
    file = root / "jobs/quiet_carriers.py"
    text = file.read_text()
    assert "hour.window.end_ms, departures)" in text
    file.write_text(text.replace("hour.window.end_ms, departures)", "hour.window.end_ms, departures + 1)"))


def test_an_edited_function_is_refused_until_somebody_decides(bench: Bench) -> None:
    before = call(bench, "show", JOB, "--hashes")
    (bench.root / "jobs/quiet_carriers.py").write_text(
        (bench.root / "jobs/quiet_carriers.py").read_text().replace('"""Turn', '# A comment.\n    """Turn')
    )
    assert call(bench, "plan", JOB)["run"] is not None

    edit(bench.root)
    for asked in ("plan", "run"):
        refused = call(bench, asked, JOB, code=76)["error"]
        assert CHANGED in refused
        assert "--accept-changes" in refused
        assert "rewindow backfill quiet_carriers" in refused
    assert call(bench, "show", JOB, "--hashes")["tables"] == before["tables"]
    verified = call(bench, "verify", JOB, "main/1", code=76)["error"]
    assert CHANGED in verified

    call(bench, "run", JOB, "--accept-changes")
    first, second = call(bench, "show", JOB)["runs"]
    assert first["code"] != second["code"]
    assert all(len(run["code"]) == 8 for run in (first, second))


def test_a_job_may_accept_changed_code_and_a_branch_recomputes_with_it(bench: Bench) -> None:
    edit(bench.root)
    call(bench, "backfill", JOB, "--from", "1", "--branch", "fixed")
    call(bench, "diff", JOB, "main", "fixed", code=1)
    with (bench.root / "conf/jobs/quiet_carriers.yaml").open("a") as file:
        file.write("on_code_change: accept\n")
    call(bench, "run", JOB)
    assert len(call(bench, "show", JOB)["runs"]) == 2
