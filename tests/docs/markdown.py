"""Markdown from values: tables, and texts of docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

GENERATED = "`python -m tests.docs` writes this page from the code.\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a bar in a text does not end its column."""
    lines = [head, ["---"] * len(head), *([text.replace("|", "\\|") for text in row] for row in rows)]
    return "".join(
        f"| {' | '.join(' '.join(text.split()) for text in line)} |\n".replace("|  |", "| |") for line in lines
    )


def text_of(docstring: str | None) -> str:
    """Return a docstring as Markdown: literals in single backticks, sections of Google's style as sentences."""
    text = inspect.cleandoc(docstring or "").replace("``", "`")
    text = re.sub(r"^(Args|Returns|Raises|Yields|Attributes):$", r"*\1*:", text, flags=re.MULTILINE)
    return re.sub(r"^ +(\w+): ", r"* `\1`: ", text, flags=re.MULTILINE)


def in_one_line(docstring: str | None) -> str:
    """Return a docstring without line breaks."""
    return " ".join(text_of(docstring).split())
