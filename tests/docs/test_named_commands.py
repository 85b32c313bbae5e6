"""A command that a message names can be called as it stands, but for the words in capitals."""

from __future__ import annotations

from typer.main import get_command

from rewindow.app.cli.entry import app
from tests.docs.commands import commands
from tests.docs.messages import PAGE, examples
from tests.refusals import fixes


def test_each_command_in_a_message_has_its_arguments() -> None:
    known = {" ".join(path): command for path, command in commands(get_command(app), ())}
    wrong = []
    for code, example in examples(PAGE.read_text(encoding="utf-8")).items():
        for line in fixes(example):
            name = max((name for name in known if f"{line} ".startswith(f"{name} ")), key=len, default=None)
            if name is None:
                wrong.append(f"{code}: `rewindow {line}`: no such command")
                continue
            try:
                known[name].make_context(name, line.removeprefix(name).split())
            except Exception as error:  # noqa: BLE001 - Typer has its own copy of click's errors
                wrong.append(f"{code}: `rewindow {line}`: {error!r}")
    assert not wrong, "\n".join(wrong)
