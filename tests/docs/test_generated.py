"""The generated pages of the reference are those of the code."""

from __future__ import annotations

import re

import pytest

import rewindow
from tests.docs.generated import DOCS, PAGES, table_errors


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_that_of_the_code(name: str) -> None:
    is_current = (DOCS / name).read_text(encoding="utf-8") == PAGES[name]()
    assert is_current, f"docs/{name} is not that of the code: python -m tests.docs"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_the_rows_of_a_table_have_as_many_columns_as_its_head(page: object) -> None:
    assert not table_errors(page.read_text(encoding="utf-8"))


def test_every_public_name_is_in_what_to_import() -> None:
    table = (DOCS / "reference/names.md").read_text(encoding="utf-8")
    assert [name for name in rewindow.__all__ if f"`{name}" not in table] == [], "name it in docs/reference/names.md"


def test_the_runbook_has_every_exit_code() -> None:
    runbook = (DOCS / "guides/runbook.md").read_text(encoding="utf-8")
    listed = re.findall(r"runbook.md#exit-code-(\d+)", PAGES["reference/exit-codes.md"]())
    assert re.findall(r"^### Exit code (\d+)$", runbook, re.MULTILINE) == listed
