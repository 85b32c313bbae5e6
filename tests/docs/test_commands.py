"""The commands of the pages do what the pages show."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks_of, pages
from tests.docs.console import Command, commands_of, matches, play

PLAYED = (
    "docs/tutorial.md",
    "docs/guides/expectations.md",
    "docs/guides/feeds.md",
    "docs/guides/runbook.md",
    "docs/guides/testing.md",
    "docs/guides/why.md",
)
"""Pages whose commands are executed here, in order, in a folder of their own."""
README = "README.md"
"""Its commands are the first of the tutorial."""
ELSEWHERE = {
    "docs/guides/backfill.md": "tests/end_to_end/test_history.py",
    "docs/guides/failures.md": "tests/end_to_end/test_history.py",
    "docs/guides/gc.md": "tests/end_to_end/test_history.py",
    "docs/deployment/airflow.md": "tests/airflow/test_scheduler.py",
}
"""Pages whose commands another test executes: on the demo's tables, in a real Airflow."""


@pytest.mark.slow
@pytest.mark.parametrize("page", PLAYED)
def test_the_commands_of_a_page_print_what_it_shows(page: str, tmp_path: Path) -> None:
    play(page, tmp_path)


def test_every_page_with_commands_is_executed() -> None:
    found = [page for page in pages() if any(block.language == "console" for block in blocks_of(page))]
    assert sorted(found) == sorted({README, *PLAYED, *ELSEWHERE})


def test_the_readme_shows_what_the_tutorial_shows() -> None:
    shown = {shlex.join(command.words): command.shown for command in all_commands("docs/tutorial.md", reverse=True)}
    for command in all_commands(README):
        assert command.shown.strip() in ("...", shown[shlex.join(command.words)].strip())


def all_commands(page: str, *, reverse: bool = False) -> list[Command]:
    found = [one for block in blocks_of(page) if block.language == "console" for one in commands_of(block)]
    return found[::-1] if reverse else found


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_a_page_that_is_executed_elsewhere_is_read_there(page: str, test: str) -> None:
    assert page in (ROOT / test).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("shown", "said", "is_same"),
    [
        ("", "anything\n", True),
        ("a ...\n...\nz\n", "a 12 \nb\nc\nz\n", True),
        ("a\n...\n", "a\n", True),
        ("a\n", "a\nb\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_dots_stand_for_any_text_and_any_lines(shown: str, said: str, *, is_same: bool) -> None:
    assert matches(shown, said) is is_same
