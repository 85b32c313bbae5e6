"""The command that checks feeds and jobs for alerting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewindow.app.cli.completing import names
from rewindow.app.cli.options import Branch, Debug, Folder, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.open_project import OpenProject
from rewindow.contracts.exit_codes import DIFFERENT
from rewindow.contracts.instants import instant
from rewindow.control.health.phrases import counted
from rewindow.control.plan.spec import MAIN
from rewindow.report.text import span
from rewindow.streams.metrics import DROPS

if TYPE_CHECKING:
    from rewindow.app.overview import Overview
    from rewindow.control.health.findings import Subject


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(status)


def status(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="JOB|FEED", help="Jobs and feeds to check. Default: all.", autocompletion=names("jobs", "feeds")
        ),
    ] = None,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check feeds and jobs for alerting. Changes nothing, and exits with 1 if something is wrong.

    Starts Spark only for tables that a catalog governs (`commit: spark`). These are the levels of findings:

    `broken`: the next command would be refused, an attempt did not finish, tables lack commits of the ledger, or a check
    failed.

    `alert`: a limit under `alerts:` in the job's file is exceeded, a scheduled run is missing, or an interval of the feed was
    not landed in time.

    `note`: results wait for a partition without new records, all records of the last landing were quarantined, or landed files
    have rows with a future arrival time. Also, for tables in a catalog: an attempt may still run on another host, or a limit on
    files is not checked.

    `ok`: nothing to do except what the next scheduled command does.
    """
    from rewindow.app.overview import overview

    project = OpenProject.open(folder, target, debug=debug)
    checked = overview(project, names or (), branch)
    printer = Printer(as_json=as_json)
    if as_json:
        printer.json(_as_json(checked, target, branch))
    else:
        _show(printer, checked)
        if checked.is_empty:
            catalog = project.target.catalog
            where = f"the schema {catalog}" if catalog else f"the warehouse {project.warehouse}"
            printer.say(
                f"Nothing was landed in {where} yet. If that is not the one you mean, correct "
                f"`{'catalog' if catalog else 'warehouse'}:` in conf/targets/{target}.yaml."
            )
    if not checked.is_well:
        raise typer.Exit(DIFFERENT)


def _show(printer: Printer, checked: Overview) -> None:
    """Print one line per feed and job, the findings, and the verdict."""
    if not checked.subjects:
        printer.say("There are no feeds and jobs yet: add conf/feeds/FEED.yaml and conf/jobs/JOB.yaml.")
        return
    printer.table("", [_row(subject) for subject in checked.subjects])
    for subject in checked.subjects:
        for finding in subject.findings:
            more = f". {finding.advice}." if finding.advice else ""
            # If the message of an error already names a command, the finding's command is left out, because it could contradict
            # it.
            helps = finding.command if "`rewindow " not in finding.message else None
            command = f": `{helps}`" if helps else ""
            printer.message(f"{finding.level}: {subject.kind} {subject.name}: {finding.message}{command}{more}")
    wrong = sum(not subject.level.is_well for subject in checked.subjects)
    notes = sum(bool(subject.findings) for subject in checked.subjects)
    well = f"all is well, with {counted(notes, 'note')}" if notes else "all is well"
    all_of_them = f"{counted(len(checked.feeds), 'feed')} and {counted(len(checked.jobs), 'job')}"
    printer.say(f"{all_of_them}: {f'{wrong} need attention' if wrong > 1 else '1 needs attention' if wrong else well}.")


def _row(subject: Subject) -> dict[str, Any]:
    figures, watermark_ms = subject.figures, subject.entry.watermark_ms
    age = figures.get("age_ms")
    return {
        "": subject.level.value,
        "what": subject.kind,
        "name": subject.name,
        "status": subject.entry.status.value.replace("_", " "),
        "complete through": None if watermark_ms is None else instant(watermark_ms),
        "age": None if age is None else span(age),
        "landings": subject.entry.epoch,
        "waiting": figures.get("waiting"),
        "dropped": ", ".join(_dropped(subject)),
        "findings": len(subject.findings) or None,
    }


def _dropped(subject: Subject) -> Iterator[str]:
    for kind in DROPS.values():
        if count := subject.figures.get(kind):
            yield f"{count:,} {kind}"


def _as_json(checked: Overview, target: str, branch: str) -> dict[str, Any]:
    return {
        "target": target,
        "branch": branch,
        "as_of_ms": checked.as_of_ms,
        "well": checked.is_well,
        "feeds": [{"feed": subject.name, **_values(subject)} for subject in checked.feeds],
        "jobs": [{"job": subject.name, "feed": subject.entry.feed, **_values(subject)} for subject in checked.jobs],
    }


def _values(subject: Subject) -> dict[str, Any]:
    findings = [
        {
            "level": each.level.value,
            "about": each.about,
            "code": each.message.code,
            "message": each.message,
            "command": each.command,
            "advice": each.advice,
        }
        for each in subject.findings
    ]
    entry = subject.entry
    return {
        "level": subject.level.value,
        "status": entry.status.value,
        "detail": entry.detail,
        "detail_codes": entry.detail_codes,
        "exit_code": entry.exit_code,
        **subject.figures,
        "findings": findings,
    }
