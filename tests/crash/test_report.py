"""The page says of each suite whether it ended for the current code, and never shows older figures as current ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crash import finished, report
from tests.crash.__main__ import main
from tests.crash.matrix import Outcome
from tests.crash.results import Results
from tests.crash.settings import Figures
from tests.crash.suites import SUITES

LABEL = "| Commits with a lost, refused, made-up, repeated or delayed answer | every commit |"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "RESULTS.md"


def row(folder: Path, page: Path) -> str:
    report.write(folder, list(SUITES), page)
    (line,) = (line for line in page.read_text().splitlines() if line.startswith(LABEL))
    return line.removeprefix(LABEL)


def test_a_suite_that_was_stopped_is_incomplete(tmp_path: Path, page: Path) -> None:
    assert row(tmp_path, page) == " not run | - | - |"
    Results.of("answers", tmp_path).add(Outcome("run", 0, "plan", "ok"))
    assert row(tmp_path, page) == " 1 (incomplete) | 0 | - |"


def test_figures_of_older_code_are_named_so(tmp_path: Path, page: Path) -> None:
    kept = page.with_name("finished.json")
    finished.keep(Figures("answers", cases=389, lost=2), kept)
    commit = finished.load(kept)["answers"].commit
    assert row(tmp_path, page) == f" 389 | 2 lost | {commit} |"
    stored = json.loads(kept.read_text())
    stored["answers"]["digest"] = "of other code"
    kept.write_text(json.dumps(stored))
    assert row(tmp_path, page) == f" 389 (older code) | 2 lost | {commit} |"
    assert "* answers: older code." in page.read_text()


def test_a_finished_suite_is_not_repeated_if_only_the_unfinished_ones_are_asked_for(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished.keep(Figures("answers", cases=389), page.with_name("finished.json"))
    assert main(["--suites", "answers", "--unfinished", "--page", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["suites"] == {}
