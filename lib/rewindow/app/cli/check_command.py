"""The command that checks user code for non-determinism without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewindow.app.cli.completing import names
from rewindow.app.cli.options import Debug, Folder, Json
from rewindow.app.cli.printing import Printer
from rewindow.app.lint import ALLOW, lint
from rewindow.config.load import find_project, load_feed, load_job
from rewindow.control.health.phrases import counted
from rewindow.control.project_source import module_file
from rewindow.errors import ConfigError

FOUND = 1


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(check)


def check(
    what: Annotated[
        str, typer.Argument(metavar="JOB|FILE", help="A job, or a Python file.", autocompletion=names("jobs"))
    ],
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> int:
    """Find wall clocks, randomness and state outside stores in a job's code. Exits with 1 if there are findings."""
    del debug
    root = find_project(Path(folder).absolute())
    files = [Path(what).absolute()] if what.endswith(".py") else _files_of(root, what)
    for file in files:
        if not file.is_file():
            raise ConfigError("checked-file-missing", "there is no file {file}: name a job or a Python file", file=file)
    findings = lint(root, files)
    printer = Printer(as_json=as_json)
    if as_json:
        printer.json({"findings": [finding._asdict() for finding in findings]})
    else:
        for finding in findings:
            printer.say(str(finding))
        accept = f"{counted(len(findings), 'finding')}. To accept a line, end it with `{ALLOW}`."
        printer.say(accept if findings else "No findings.")
    return FOUND if findings else 0


def _files_of(root: Path, job: str) -> list[Path]:
    """Return the files that define a job's topology and its feed's timestamp functions."""
    config = load_job(root, job)
    logs = load_feed(root, config.feed).logs.values()
    functions = [config.topology, *(log.timestamp for log in logs if ":" in log.timestamp)]
    files = []
    for function in functions:
        module = function.partition(":")[0]
        file = module_file(root, module)
        if file is None:
            raise ConfigError(
                "checked-module-missing",
                "job {job!r}: there is no module {module} below {project}: fix `topology:` or `timestamp:`",
                job=job,
                module=module,
                project=root,
            )
        files.append(file)
    return files
