"""Requests for a report that cannot be made say why, with the documented exit codes, and write nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of
from tests.refusals import fixes


@pytest.mark.parametrize(
    ("words", "exit_code", "code", "says"),
    [
        ("nobody", 78, "config-file-missing", "no conf/jobs/nobody.yaml in"),
        ("counts --branch fix", 2, "branch-not-run-yet", "'fix' yet (branches with runs: main)"),
        ("counts --run 9", 2, "run-unknown", "'9' does not exist. The last runs of branch 'main' are main/1,"),
        ("counts --run 0", 2, "run-unknown", "'0' does not exist. The last runs of branch 'main' are"),
        ("counts --since fix/1", 2, "run-unknown", "'fix/1'"),
        ("counts --since 2999-01-01", 2, "runs-since-missing", "branch 'main' was committed since 2999-01-01"),
        ("counts --since yesterday", 2, "time-invalid", "'yesterday'"),
        ("counts --run 1 --since 2", 2, "run-with-since", "choose one"),
        ("counts --diff fix", 2, "branch-not-run-yet", "'fix' yet (branches with runs: main)"),
        ("counts --out {folder}", 2, "written-file-is-folder", "is a folder: name a file in it"),
    ],
)
def test_a_report_that_cannot_be_made(
    project: Bench, tmp_path: Path, words: str, exit_code: int, code: str, says: str
) -> None:
    before = project.files()
    asked = words.format(folder=tmp_path).split()
    out = [] if "--out" in asked else ["--out", str(tmp_path / "r.html")]
    answer = project.run("report", *asked, *out)
    assert answer.code == exit_code
    assert f"[{code}]" in answer.err
    assert says in answer.err
    assert list(tmp_path.iterdir()) == []
    assert project.files() == before


def test_a_job_that_never_ran_is_told_to_run(project: Bench, tmp_path: Path) -> None:
    bench = copy_of(project, tmp_path / "fresh")
    bench.write("conf/jobs/other.yaml", (bench.root / "conf/jobs/counts.yaml").read_text().replace("counts", "other"))
    assert fixes(bench.refuses("report other", "branch-not-run-yet", job="other", branch="main")) == ["run other"]


def test_a_report_changes_nothing_in_the_warehouse(project: Bench, tmp_path: Path) -> None:
    before = project.files()
    assert project.run("report", "counts", "--out", str(tmp_path / "r.html")).code == 0
    assert project.files() == before
