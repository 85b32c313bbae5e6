"""The commands of recovery and upkeep: republish, resume and gc."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from rewindow.app.cli.options import Branch, Debug, Folder, Json, Target
from rewindow.app.cli.printing_maintenance import RecoveryPrinter
from rewindow.app.maintenance import FeedRecovery, Recovery
from rewindow.app.project import Project
from rewindow.config.load import names_of
from rewindow.control.gc import Collected
from rewindow.control.gc_feed import FeedCollected
from rewindow.control.plan.spec import MAIN
from rewindow.errors import ConfigError, UsageError
from rewindow.streams.duration import to_ms


class Kind(StrEnum):
    """What `gc` is asked to keep small."""

    JOB = "job"
    FEED = "feed"


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (republish, resume, gc):
        app.command()(command)


def republish(
    job: str,
    output: Annotated[list[str] | None, typer.Option(help="Publish this output anew, whatever is found.")] = None,
    all_tables: Annotated[bool, typer.Option("--all", help="Publish all tables anew, whatever is found.")] = False,
    branch: Branch = MAIN,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find what another hand did to a job's tables (RESTORE, DELETE, a drop, files gone) and fix it."""
    printer = RecoveryPrinter(as_json=as_json)
    recovery = Recovery(Project.open(project, target, debug=debug), job)
    with printer.progress() as on_step:
        done = recovery.republish(branch, output or [], all_tables=all_tables, on_step=on_step)
    printer.republished(job, done)


def resume(
    job: str,
    replan: Annotated[bool, typer.Option(help="Plan anew instead: all that the feed has by now.")] = False,
    takeover: Annotated[bool, typer.Option(help="Fence an attempt that still lives.")] = False,
    branch: Branch = MAIN,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Take up the run of an attempt that died: its own epochs, parent and clock."""
    printer = RecoveryPrinter(as_json=as_json)
    recovery = Recovery(Project.open(project, target, debug=debug), job)
    with printer.progress() as on_step:
        done = recovery.resume(branch, replan=replan, take_over=takeover, on_step=on_step)
    printer.resumed(job, done)


def gc(
    name: Annotated[str | None, typer.Argument(help="A job or a feed (default: all).")] = None,
    kind: Annotated[Kind | None, typer.Option(help="Which of the two, where both are called so.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")] = False,
    keep: Annotated[str, typer.Option(help="How long what nothing needs is kept, such as 12h or 30d.")] = "30d",
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Keep jobs and feeds small: snapshots for long changelogs, large files for small ones, nothing that nothing needs."""
    opened, keep_ms = Project.open(project, target, debug=debug), _duration(keep)
    jobs, feeds = _meant(opened, name, kind)
    printer = RecoveryPrinter(as_json=as_json)
    done: dict[str, Collected | FeedCollected] = {}
    with printer.progress() as on_step:
        for feed in feeds:
            upkeep = FeedRecovery(opened, feed)
            shown = f"{feed} (feed)" if feed in jobs else feed
            done[shown] = upkeep.would_collect(keep_ms) if dry_run else upkeep.collect(keep_ms, on_step=on_step)
        for job in jobs:
            recovery = Recovery(opened, job)
            done[job] = recovery.would_collect(keep_ms) if dry_run else recovery.collect(keep_ms, on_step=on_step)
    printer.collected(done, dry_run=dry_run)


def _meant(project: Project, name: str | None, kind: Kind | None) -> tuple[list[str], list[str]]:
    """Return the jobs and feeds that are meant. Raises `UsageError` (2) for a name that is both, or neither."""
    jobs, feeds = names_of(project.root, "jobs"), names_of(project.root, "feeds")
    jobs = [] if kind is Kind.FEED else jobs
    feeds = [] if kind is Kind.JOB else [feed for feed in feeds if name or project.feed_tables.rows(feed)]
    if name is None:
        return jobs, feeds
    if name in jobs and name in feeds:
        message = f"{name} is a job and a feed: say which with --kind job or --kind feed"
        raise UsageError(message)
    if name not in jobs and name not in feeds:
        message = f"{name} is no job and no feed: jobs are {', '.join(jobs) or '-'}, feeds {', '.join(feeds) or '-'}"
        raise UsageError(message)
    return [one for one in jobs if one == name], [one for one in feeds if one == name]


def _duration(said: str) -> int:
    try:
        found = to_ms(said)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    if found < 0:
        message = f"--keep {said}: a time to keep is not negative"
        raise UsageError(message)
    return found
