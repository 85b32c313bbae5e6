"""The commands that repair and clean up: republish, resume, reset and gc."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.exceptions import Abort

from rewindow.app.cli.completing import names
from rewindow.app.cli.options import Branch, Debug, Folder, Job, Json, Takeover, Target
from rewindow.app.cli.printing_runs import RunPrinter, describe_result, end_on_hold
from rewindow.app.maintenance import FeedMaintenance, JobMaintenance, Resumed
from rewindow.app.open_project import OpenProject
from rewindow.app.result_lines import outdated_lines, reset_line, reset_question
from rewindow.app.run_references import unknown_name
from rewindow.config.load import names_of
from rewindow.control.drift_repair import Republished
from rewindow.control.garbage_collection import Collected, Tidied
from rewindow.control.health.holds import Hold
from rewindow.control.plan.spec import MAIN
from rewindow.errors import ConfigError, UsageError, visible
from rewindow.streams.duration import to_ms


class Kind(StrEnum):
    """What `gc` cleans up."""

    JOB = "job"
    FEED = "feed"


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (republish, resume, reset, gc):
        app.command()(command)


def republish(
    job: Job,
    output: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Republish this output even if it is intact. Can be repeated."),
    ] = None,
    all_tables: Annotated[bool, typer.Option("--all", help="Republish all tables even if they are intact.")] = False,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find and repair what other programs changed in a job's tables: RESTORE, DELETE, a dropped table, missing files."""
    printer = RunPrinter(as_json=as_json)
    maintenance = JobMaintenance(OpenProject.open(folder, target, debug=debug), job)
    with printer.progress() as on_step:
        done = maintenance.republish(branch, output or [], all_tables=all_tables, on_step=on_step)
    left_out = {target: list(runs) for target, runs in done.left_out.items()}
    lists = {
        "republished": list(done.republished),
        "repeated": list(done.repeated),
        "lagged": list(done.lagged),
        "emptied": list(done.emptied),
    }
    printer.result({"drift": dict(done.drift), **lists, "left_out": left_out}, _republished_lines(job, done))


def resume(
    job: Job,
    replan: Annotated[
        bool, typer.Option(help="Discard the plan and plan a new run over everything landed so far.")
    ] = False,
    takeover: Takeover = False,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Finish the run of an unfinished attempt exactly as planned: same epochs, parent and clock."""
    printer = RunPrinter(as_json=as_json)
    maintenance = JobMaintenance(OpenProject.open(folder, target, debug=debug), job)
    with printer.progress() as on_step:
        done = maintenance.resume(branch, replan=replan, take_over=takeover, on_step=on_step)
    holds = maintenance.on_hold(branch)
    _print_resumed(printer, job, done, holds)
    end_on_hold(holds)


def reset(
    job: Job,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Start a job over: forget its runs and branches, and empty its tables. Landed logs stay."""
    printer = RunPrinter(as_json=as_json)
    maintenance = JobMaintenance(OpenProject.open(folder, target, debug=debug), job)
    tables = maintenance.would_reset()
    if tables and not yes:
        question = reset_question(job, tables)
        if as_json or not _is_confirmed(question):
            raise UsageError(
                "reset-not-confirmed",
                "the reset of {job!r} was not confirmed, so nothing was changed: answer y, or confirm it with "
                "`rewindow reset {job} --yes`",
                job=job,
            )
    with printer.progress() as on_step:
        done = maintenance.reset(on_step=on_step)
    outdated = maintenance.outdated() if done else []
    beginning = f"{job} is at its beginning: there is nothing to forget."
    lines = [reset_line(job, done), *outdated_lines(outdated, is_emptied=True)] if done else [beginning]
    printer.result({"job": job, "emptied": list(done), "outdated": list(outdated)}, lines)


def _is_confirmed(question: str) -> bool:
    """Ask the user to confirm. If no user can answer, for example under a scheduler, the answer is no."""
    try:
        return typer.confirm(visible(question), err=True)
    except Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        typer.echo(err=True)
        return False


def gc(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="JOB|FEED", help="Job or feed to clean up. Default: all.", autocompletion=names("jobs", "feeds")
        ),
    ] = None,
    kind: Annotated[Kind | None, typer.Option(help="Clean up only jobs, or only feeds.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted. Change nothing.")] = False,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Retention of unneeded state and files, such as 12h. Default: `keep` of the target, 30d if it has none.",
        ),
    ] = None,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write snapshots of long changelogs, merge small files, and delete state and files that nothing needs."""
    given_ms = None if keep is None else _duration(keep)
    project = OpenProject.open(folder, target, debug=debug)
    keep_ms = project.target.keep_ms if given_ms is None else given_ms
    jobs, feeds = _selected(project, name, kind)
    printer = RunPrinter(as_json=as_json)
    done: dict[str, Tidied] = {}
    with printer.progress() as on_step:
        for feed in feeds:
            of_feed = FeedMaintenance(project, feed)
            shown = f"{feed} (feed)" if feed in jobs else feed
            done[shown] = of_feed.would_collect(keep_ms) if dry_run else of_feed.collect(keep_ms, on_step=on_step)
        for job in jobs:
            of_job = JobMaintenance(project, job)
            done[job] = of_job.would_collect(keep_ms) if dry_run else of_job.collect(keep_ms, on_step=on_step)
    if as_json:
        printer.json({name: _as_json(collected) for name, collected in done.items()})
        return
    for kind_of in ("job", "feed"):
        of_kind = [named for named in done.items() if isinstance(named[1], Collected) == (kind_of == "job")]
        if rows := [_row(kind_of, *named, dry_run=dry_run) for named in of_kind]:
            printer.table("", rows)


def _selected(project: OpenProject, name: str | None, kind: Kind | None) -> tuple[list[str], list[str]]:
    """Return the selected jobs and the selected feeds.

    Raises `UsageError` (2) if both a job and a feed have the name, or neither.
    """
    jobs, feeds = names_of(project.root, "jobs"), names_of(project.root, "feeds")
    jobs = [] if kind is Kind.FEED else jobs
    feeds = [] if kind is Kind.JOB else [feed for feed in feeds if name or project.feed_tables.state(feed)]
    if name is None:
        return jobs, feeds
    if name in jobs and name in feeds:
        raise UsageError(
            "name-ambiguous", "{name} is both a job and a feed: choose one with --kind job or --kind feed", name=name
        )
    if name not in jobs and name not in feeds:
        raise unknown_name(project.root, name)
    return [job for job in jobs if job == name], [feed for feed in feeds if feed == name]


def _duration(text: str) -> int:
    try:
        duration_ms = to_ms(text)
    except ConfigError as error:
        raise UsageError.restored(error.code, error.message, error.facts) from error
    if duration_ms < 0:
        raise UsageError("retention-negative", "--keep {given}: a retention cannot be negative", given=text)
    return duration_ms


def _republished_lines(job: str, done: Republished) -> Iterator[str]:
    """Yield sentences about the drift that was found and how it was repaired."""
    yield from (f"{target} {drift}." for target, drift in done.drift.items())
    yield from (f"Run {run} of {job} was replayed and gave the same rows." for run in done.repeated)
    yield from (f"{target} was republished." for target in done.republished)
    for target, runs in done.left_out.items():
        yield f"{target} no longer has rows of {', '.join(runs)}: their files were gone, and no branch needs the runs."
    yield from (f"{path} had rows from before `reset`, and is empty again." for path in done.emptied)
    if done.lagged:
        yield f"Published what {', '.join(done.lagged)} lacked."
    if not (done.drift or done.republished or done.repeated or done.lagged or done.emptied):
        yield f"The tables of {job} are intact."


def _print_resumed(printer: RunPrinter, job: str, done: Resumed, holds: Sequence[Hold]) -> None:
    if printer.as_json:
        more = {} if done.result is None else describe_result(done.result)
        printer.json({"resumed": done.run, "attempt": done.attempt, "on_hold": list(holds)} | more)
        return
    if done.result is None:
        printer.say(f"Nothing to resume: {job} has no unfinished run.")
    else:
        printer.say(f"Run {done.run} of {job} was planned by attempt {done.attempt}, which died.")
    printer.ran([] if done.result is None else [done.result], holds=holds)


def _row(kind: str, name: str, collected: Tidied, *, dry_run: bool) -> dict[str, Any]:
    """Return the table row of a job or feed: what `gc` wrote, forgot and deleted.

    With ``dry_run``, the headings say "would be".
    """
    would, of_job = "would be " if dry_run else "", {}
    if isinstance(collected, Collected):
        of_job = {
            f"snapshots {would}written": ", ".join(collected.snapshots),
            f"runs {would}forgotten": collected.forgotten,
        }
    return {
        kind: name,
        **of_job,
        f"files {would}merged": collected.merged,
        **({} if dry_run else {"into": collected.into}),
        f"files {would}deleted": len(collected.deleted),
        "bytes": collected.bytes,
    }


def _as_json(collected: Tidied) -> dict[str, Any]:
    files = [{"path": f"{file.folder}/{file.path}", "bytes": file.bytes, "why": file.why} for file in collected.deleted]
    merged = {"merged": collected.merged, "into": collected.into, "deleted": files}
    if not isinstance(collected, Collected):
        return merged
    of_job = {"snapshots": list(collected.snapshots), "forgotten": collected.forgotten, "reports": collected.reports}
    return {**of_job, **merged}
