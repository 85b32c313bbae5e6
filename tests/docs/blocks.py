"""The fenced blocks of the site's pages, with the marker comments before them.

A marker is an HTML comment in the line before a block: ``file: PATH`` (the block is that file of the reader's project),
``exit: N`` (its last command ends with N instead of 0), ``after: PAGE`` (its Python continues that of another page) and
``given: project`` (the page's commands run in the project that `rewindow init` creates). ``encoding: NAME`` is that of a file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(
    r"(?P<markers>(?:^<!-- \w+: .*? -->\n+)*)^(?P<fence>```+)(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_MARKER = re.compile(r"<!-- (\w+): (.*?) -->")


class Block(NamedTuple):
    """A fenced block: its language, its text, and its markers by name."""

    language: str
    text: str
    markers: dict[str, str]


def pages() -> list[str]:
    """Return the paths of README and of the site's pages, from the root."""
    return ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))]


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(found["language"], found["text"], dict(_MARKER.findall(found["markers"])))
        for found in _BLOCK.finditer(text)
    ]


def python_of(page: str) -> list[Block]:
    """Return the Python blocks of a page that are executed: those that are not a file of the project."""
    return [one for one in blocks_of(page) if one.language == "python" and "file" not in one.markers]
