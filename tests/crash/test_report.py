"""The page shows suites that ended, each with its commit, and the command names those that did not end for the current code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crash import finished, report
from tests.crash.__main__ import main
from tests.crash.matrix import Outcome
from tests.crash.results import Results, executed
from tests.crash.settings import Figures
from tests.crash.suites import SUITES

LABEL = "| Commits with a lost, refused, made-up, repeated or delayed answer | every commit |"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "RESULTS.md"


def row(page: Path) -> str:
    report.write(SUITES, page)
    (line,) = (line for line in page.read_text().splitlines() if line.startswith(LABEL))
    return line.removeprefix(LABEL)


def state(folder: Path, page: Path) -> list[str]:
    return [line for line in report.unfinished(folder, SUITES, page) if line.startswith("answers:")]


def test_a_suite_that_was_stopped_is_named_and_not_on_the_page(tmp_path: Path, page: Path) -> None:
    Results.of("answers", tmp_path).add(Outcome("run", 0, "plan", "ok"))
    assert row(page) == " not run | - | - |"
    assert "* answers: not run." in page.read_text()
    (line,) = state(tmp_path, page)
    assert "did not end" in line
    assert "1 case" in line


def test_a_suite_that_ended_on_older_code_is_named(tmp_path: Path, page: Path) -> None:
    kept = page.with_name("finished.json")
    finished.keep(Figures("answers", cases=389, lost=2), kept)
    ended = finished.load(kept)["answers"]
    assert row(page) == f" 389 | 2 lost | {ended.commit}, {ended.date} |"
    assert state(tmp_path, page) == []
    stored = json.loads(kept.read_text())
    stored["answers"]["digest"] = "of other code"
    kept.write_text(json.dumps(stored))
    (line,) = state(tmp_path, page)
    assert ended.commit in line


def test_a_finished_suite_is_not_repeated_if_only_the_unfinished_ones_are_asked_for(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished.keep(Figures("answers", cases=389), page.with_name("finished.json"))
    assert main(["--suites", "answers", "--unfinished", "--page", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["suites"] == {}


@pytest.mark.parametrize(
    ("text", "is_current"),
    [
        ('def f(a):\n    """Other words."""\n\n    return a + 1  # because\n', True),
        ('def f(a):\n    """Add."""\n    return a + 2\n', False),
        ('def f(a):\n    return a + "1"\n', False),
    ],
)
def test_other_words_leave_results_valid_and_other_code_does_not(
    tmp_path: Path, text: str, *, is_current: bool
) -> None:
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    old.write_text('def f(a):\n    """Add."""\n    return a + 1\n')
    new.write_text(text)
    assert (executed(old) == executed(new)) is is_current
