"""Sections that benchmarks write into pages, each between two comments that name it."""

from __future__ import annotations

import re
from pathlib import Path


def write_section(page: Path, name: str, command: str, text: str) -> None:
    """Write a section into a page, in place of an earlier one of the same name, else at the end."""
    begin, end = f"<!-- {name}: written by {command} -->", f"<!-- end of {name} -->"
    section = f"{begin}\n\n{text.strip()}\n\n{end}"
    old = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    known = page.read_text(encoding="utf-8")
    made = old.sub(lambda _: section, known) if old.search(known) else f"{known.rstrip()}\n\n{section}\n"
    page.write_text(made, encoding="utf-8")
