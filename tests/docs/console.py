"""Execute the console blocks of a page in a folder, and compare what the commands print with the page.

In the page, ``...`` in a line stands for any text, and a line ``...`` for any lines. Spaces at the ends of lines do not count.
The first command of a page is the installed program. The others are executed in this process, which has loaded them.
"""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from rewindow.app.cli.entry import run_command
from rewindow.app.new_project import Example, create_project
from tests.bad_input.scene import Bench, without_spark
from tests.docs.blocks import Block, blocks_of

Execute = Callable[[Sequence[str], Path], tuple[int, str]]
"""Executes a command line in a folder. Returns its exit code, and what it printed."""


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
    execute: Execute = _in_a_process
    for block in blocks:
        if "file" in block.markers:
            path = here / block.markers["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding=block.markers.get("encoding", "utf-8"))
        for command in commands_of(block) if block.language == "console" else ():
            program, *arguments = command.words
            if program == "cd":
                here = here / arguments[0]
                continue
            assert program == "rewindow", f"{page}: only rewindow is executed here, not {program}"
            code, said = execute(arguments, here)
            where = f"{page}: $ {shlex.join(command.words)}"
            assert code == command.code, f"{where} ended with {code}:\n{said}"
            assert matches(command.shown, said), f"{where} printed:\n{said}\nThe page shows:\n{command.shown}"
            execute = _here


def _in_a_process(arguments: Sequence[str], folder: Path) -> tuple[int, str]:
    program = Path(sys.executable).parent / "rewindow"
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def _here(arguments: Sequence[str], folder: Path) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err), Bench(folder).code_is_imported(), without_spark():
        code = run_command([*arguments])
    return code, out.getvalue() + err.getvalue()


def matches(shown: str, said: str) -> bool:
    """Return whether a command printed what the page shows. A page may show nothing of it."""
    if not shown.strip():
        return True
    lines = [line.rstrip() for line in shown.rstrip().splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else _line(line) for line in lines)
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in said.rstrip().splitlines())) is not None


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
