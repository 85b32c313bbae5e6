"""Execute the console blocks of a page in a folder, and compare what the commands print with the page.

In the page, ``...`` in a line stands for any text, and a line ``...`` for any lines. Spaces at the ends of lines do not count.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rewindow.app.new_project import Example, create_project
from tests.docs.blocks import Block, blocks_of

NOISE = ("starting Spark",)
"""Progress on stderr, which a page does not show."""


class Command(NamedTuple):
    """A command of a page, the lines that the page shows below it, and the exit code that it says."""

    words: list[str]
    shown: str
    code: int


def commands_of(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block."""
    calls = [part.partition("\n") for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]]
    for number, (line, _, shown) in enumerate(calls, 1):
        code = int(block.markers.get("exit", "0")) if number == len(calls) else 0
        yield Command(shlex.split(line, comments=True), shown, code)


def play(page: str, folder: Path) -> None:
    """Do what a page says, block by block: write its files, execute its commands."""
    here = folder
    blocks = blocks_of(page)
    if any(block.markers.get("given") == "project" for block in blocks):
        create_project(here, Example.WINDOWS)
    for block in blocks:
        if "file" in block.markers:
            path = here / block.markers["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding=block.markers.get("encoding", "utf-8"))
        for command in commands_of(block) if block.language == "console" else ():
            if command.words[0] == "cd":
                here = here / command.words[1]
            else:
                _execute(page, command, here)


def _execute(page: str, command: Command, here: Path) -> None:
    program, *arguments = command.words
    assert program == "rewindow", f"{page}: only rewindow is executed here, not {program}"
    path = Path(sys.executable).parent / program
    done = subprocess.run([path, *arguments], cwd=here, capture_output=True, text=True, check=False)
    said = done.stdout + "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith(NOISE))
    where = f"{page}: $ {shlex.join(command.words)}"
    assert done.returncode == command.code, f"{where} ended with {done.returncode}:\n{said}"
    assert matches(command.shown, said), f"{where} printed:\n{said}\nThe page shows:\n{command.shown}"


def matches(shown: str, said: str) -> bool:
    """Return whether a command printed what the page shows. A page may show nothing of it."""
    if not shown.strip():
        return True
    lines = [line.rstrip() for line in shown.rstrip().splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else _line(line) for line in lines)
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in said.rstrip().splitlines())) is not None


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
