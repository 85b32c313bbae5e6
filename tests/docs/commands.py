"""The page of all commands, from the command line's own help."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from inspect import isclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer

from rewindow.app.cli.entry import app
from tests.docs.markdown import GENERATED, in_one_line, table

HEAD = f"""\
# Commands

`rewindow COMMAND --help` prints the same text. `rewindow --version` shows the versions. The [exit code](exit-codes.md) of a
command says what to do next. `JOB` is the name of a job, and of its file `conf/jobs/JOB.yaml`.

* All commands except `setup` accept `--json`. Its keys are in snake case, and null means unknown. A key that ends with `_ms` has
  a time in epoch milliseconds.
* Commands that use tables accept `--target NAME` (default `local`), `--project FOLDER` and `--debug`.
* A command works on a project. It looks for a folder with `conf/` in the working folder (or `--project FOLDER`) and then in the
  folders above. A command runs the project's code. So if it finds the project in a folder above, this folder must belong to you
  or to root, and must not be writable for everyone (77).
* With `--log-format json` (or `text`) each step and task writes a line to stderr, with job, branch, run, sub-topology and
  partition.
* If standard output cannot be written, for example because a disk is full, a command still does its work, and then ends with 71
  or 74 (`stdout-not-written`). A closed stream or pipe is no error. Control characters of a terminal are shown as escapes
  (`\\x1b`).
* On a terminal, `run` and `land` show their progress and the remaining time. `run` ends with a summary of records, rows and drops
  by reason (`summary` in `--json`).
* `run --branch NAME` replays into separate tables (`<table>__NAME`) and changes nothing that is published.
* Commands that publish first publish what an interrupted command had committed. In the `--json` output of `run`, `publish`,
  `promote`, `rewind` and `republish`, `lagged` names the targets to which these rows went, such as `output/totals`.
* `rewindow --install-completion` makes bash, zsh or fish complete commands, options and names. `rewindow --show-completion`
  prints the script instead.

{GENERATED}
"""
COMMON = ("--target", "--project", "--json", "--debug", "--help")
"""Options of most commands, which the head explains."""
JOB = "Name of the job (conf/jobs/JOB.yaml)."
"""The help of an argument of most commands, which the head explains."""
_WORDS = 4
"""The number of words that a definition may define."""


def page() -> str:
    """Return the text of the page."""
    found = sorted(commands(typer.main.get_command(app), ("rewindow",)))
    overview = [(f"[`{' '.join(path)}`](#{'-'.join(path)})", first_sentence(command.help)) for path, command in found]
    parts = [HEAD, table(("command", "what it does"), overview)]
    return "".join([*parts, *(section(path, command) for path, command in found)]).rstrip() + "\n"


def commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each command below a group with the words that call it."""
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    for name in command.list_commands(None):
        yield from commands(command.get_command(None, name), (*path, name))


def first_sentence(text: str) -> str:
    """Return the first sentence of a command's help; its section has all of it."""
    return in_one_line(text).partition(". ")[0].rstrip(".") + "."


def section(path: tuple[str, ...], command: Any) -> str:
    """Return the section of one command: how it is called, its arguments, its options."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.opts[0] not in COMMON]
    words = [*path, *(shown(one) for one in arguments), *(["[OPTIONS]"] if options else [])]
    rows = [(f"`{one.metavar}`", "", in_one_line(one.help)) for one in arguments if one.help != JOB]
    rows += [
        (f"`{', '.join(one.opts)}`{metavar(one, command.callback)}", default(one), in_one_line(one.help))
        for one in options
    ]
    shown_rows = table(("argument or option", "default", "meaning"), rows) if rows else ""
    return f"\n## {' '.join(path)}\n\n{described(command.help)}\n\n```text\n{' '.join(words)}\n```\n\n{shown_rows}"


def described(text: str) -> str:
    """Return a command's help: paragraphs that define a word (``fresh: ...``) as a list, after the others as one paragraph."""
    paragraphs = [in_one_line(one) for one in text.split("\n\n")]
    prose = " ".join(one for one in paragraphs if not _is_definition(one))
    items = "\n".join(f"* {one}" for one in paragraphs if _is_definition(one))
    return "\n\n".join(filter(None, (prose, items)))


def _is_definition(paragraph: str) -> bool:
    word, colon, _ = paragraph.partition(": ")
    return bool(colon) and word.islower() and len(word.split()) <= _WORDS


def shown(argument: Any) -> str:
    """Return an argument as a usage line shows it."""
    name = str(argument.metavar)
    return name if argument.required or name.startswith("[") else f"[{name}]"


def metavar(option: Any, callback: Any) -> str:
    """Return what follows an option: nothing for a switch, otherwise its placeholder or its choices."""
    if option.is_flag:
        return ""
    kind = get_type_hints(callback)[option.name]
    kinds = (kind, *get_args(kind))
    choices = [one.value for word in kinds if isclass(word) and issubclass(word, Enum) for one in word]
    choices += [one for word in kinds if get_origin(word) is Literal for one in get_args(word)]
    return f" `{'|'.join(choices) or option.metavar}`"


def default(option: Any) -> str:
    """Return an option's default; empty for a switch that is off, and for none."""
    value = option.default.value if isinstance(option.default, Enum) else option.default
    if option.required:
        return "required"
    return "" if value in (None, False, (), []) or callable(value) else f"`{'on' if value is True else value}`"
