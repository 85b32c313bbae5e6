"""Requests for a report that cannot be made say why, with the documented exit codes, and write nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("nobody", 78, "no conf/jobs/nobody.yaml in"),
        ("counts --branch fix", 2, "job 'counts' has no runs on branch 'fix' yet (branches with runs: main)"),
        ("counts --run 9", 2, "run '9' does not exist. The last runs of branch 'main' are main/1,"),
        ("counts --run 0", 2, "run '0' does not exist. The last runs of branch 'main' are"),
        ("counts --since fix/1", 2, "run 'fix/1' does not exist"),
        ("counts --since 2999-01-01", 2, "no run of branch 'main' was committed since 2999-01-01"),
        ("counts --since yesterday", 2, "'yesterday' is not a valid time"),
        ("counts --run 1 --since 2", 2, "--run and --since cannot be used together: choose one"),
        ("counts --diff fix", 2, "job 'counts' has no runs on branch 'fix' (branches: main)"),
        ("counts --out {folder}", 2, "is a folder: name a file in it"),
    ],
)
def test_a_report_that_cannot_be_made(project: Bench, tmp_path: Path, words: str, code: int, says: str) -> None:
    before = project.files()
    asked = words.format(folder=tmp_path).split()
    out = [] if "--out" in asked else ["--out", str(tmp_path / "r.html")]
    answer = project.run("report", *asked, *out)
    assert (answer.code, says in answer.err) == (code, True), answer.err
    assert list(tmp_path.iterdir()) == []
    assert project.files() == before


def test_a_job_that_never_ran_is_told_to_run(project: Bench, tmp_path: Path) -> None:
    bench = copy_of(project, tmp_path / "fresh")
    bench.write("conf/jobs/other.yaml", (bench.root / "conf/jobs/counts.yaml").read_text().replace("counts", "other"))
    answer = bench.run("report", "other")
    assert answer.code == 2
    assert "[branch-not-run-yet]" in answer.err


def test_a_report_changes_nothing_in_the_warehouse(project: Bench, tmp_path: Path) -> None:
    before = project.files()
    assert project.run("report", "counts", "--out", str(tmp_path / "r.html")).code == 0
    assert project.files() == before
