"""The pages of the reference that are generated from code and committed, by their path in docs/."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.docs import commands, configuration, exit_codes, messages, metrics, notebook, stored_tables

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES: Mapping[str, Callable[[], str]] = {
    "notebook.md": notebook.page,
    "reference/configuration.md": configuration.page,
    "reference/commands.md": commands.page,
    "reference/metrics.md": metrics.page,
    "reference/tables.md": stored_tables.page,
    "reference/exit-codes.md": exit_codes.page,
    "reference/messages.md": messages.page,
}


def table_errors(text: str) -> list[str]:
    """Return the rows of a page's tables that have another number of columns than their head."""
    wrong, columns = [], 0
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = 0
            continue
        here = line.replace("\\|", "").count("|")
        if columns and here != columns:
            wrong.append(line)
        columns = columns or here
    return wrong
