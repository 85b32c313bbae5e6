"""Check one branch of a job: its next run, its attempts, its tables, its schedule and the bounds in its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rewindow.app.command_line import Command
from rewindow.app.listing import Entry, Looks, Status, branch_entry, missing_feed, removed_runs, with_feed_trouble
from rewindow.app.project import Project
from rewindow.app.silent import rules_of
from rewindow.app.status.bounds import Upkeep, exceeded
from rewindow.app.status.feeds import landed_at
from rewindow.app.status.figures import (
    dropped_figures,
    growth_figures,
    lag_figures,
    progress_figures,
    silent_figures,
)
from rewindow.app.status.findings import Finding, Level, Subject, attempted, refused
from rewindow.app.status.schedule import last_due
from rewindow.app.unfinished import MEMORY_ADVICE, known_end, process_of
from rewindow.config.job import JobConfig
from rewindow.config.load import load_feed, load_job
from rewindow.control.heartbeat import was_killed
from rewindow.control.plan.branches import Branch, JobState
from rewindow.control.plan.ledger_state import PLAN
from rewindow.errors import RewindowError, StorageError
from rewindow.report.material import Material
from rewindow.report.text import counted, to_the_second
from rewindow.streams.duration import in_words
from rewindow.streams.settings import StreamTimeFrom
from rewindow.tables.delta.check_state import check_state
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.warehouse import find_feed


def check_job(project: Project, name: str, branch: str, looks: Looks) -> Subject:
    """Return the line of a job's branch."""
    entry, command = branch_entry(project, name, branch, looks), Command(name, project.target.target, branch)
    findings = [*_refused(entry, command), *_without_feed(project, entry, command)]
    figures = progress_figures(entry, None, looks.now_ms)
    try:
        config, state = load_job(project.root, name), looks.job(name)
    except RewindowError:  # the entry says so
        return Subject("job", name, entry, figures, findings)
    known = state.branch(branch)
    has_files = project.target.catalog is None
    figures = progress_figures(entry, known, looks.now_ms) | growth_figures(state, known, has_files=has_files)

    def add_lag_and_drops() -> Sequence[Finding]:
        figures.update(_from_reports(project, config, known, looks))
        return [*_silent(figures, config.alerts.silent_ms, command)]

    if known.head is not None:
        findings += attempted(add_lag_and_drops, "figures", command("report"))
    findings += _held(state, known, command)
    is_refused, is_running = entry.status is Status.BROKEN, entry.status is Status.RUNNING
    if not (known.is_sealed or is_refused or is_running):
        findings += attempted(partial(_altered, project, name, state, known, command), "altered", command("plan"))
    behind = [
        *attempted(partial(_unfinished, project, known, name, command), "unfinished", command("plan")),
        *attempted(partial(_lagging, project, entry, state, known, figures, command), "lagging", command("plan")),
    ]
    findings += attempted(partial(_replayed, project, entry), "replayed", command("plan"))
    findings += [replace(one, command=None) for one in behind] if is_refused else behind
    if not known.is_sealed:
        if not is_running:
            findings += attempted(partial(_missed, project, config, entry, looks, command), "schedule", command("plan"))
        findings += exceeded(config.alerts, figures, command, Upkeep(state, known.head, looks.now_ms, has_files))
    return Subject("job", name, with_feed_trouble(project, entry), figures, findings)


def _refused(entry: Entry, command: Command) -> Iterator[Finding]:
    if entry.status is Status.BROKEN:
        yield refused(entry, "run", command("plan"))


def _without_feed(project: Project, entry: Entry, command: Command) -> Iterator[Finding]:
    """Yield a finding if the feed that a job names has no file, so that nothing is landed for it any more."""
    if missing := missing_feed(project, entry):
        yield Finding(Level.BROKEN, "refused", missing, f"{command('run')} --land")


def _replayed(project: Project, entry: Entry) -> Sequence[Finding]:
    """Return a finding if the branch has replayed rows of another job's runs that are gone."""
    told, land = removed_runs(project, entry), Command(entry.feed or "", project.target.target)("land")
    return [Finding(Level.BROKEN, "replayed", told, land, "It says how to land them again")] if told else []


def _silent(figures: Mapping[str, Any], bound_ms: int | None, command: Command) -> Iterator[Finding]:
    """Yield a finding for each node with results that wait for a silent partition. It is an alert if there is a bound."""
    for one in figures["silent"]:
        level, what = Level.NOTE, one["what"]
        if bound_ms is not None and one["behind_ms"] > bound_ms:
            level = Level.ALERT
            what += f": {in_words(one['behind_ms'])} behind the feed, at most {in_words(bound_ms)} are allowed"
        yield Finding(level, "silent", what, command("report"), one["fix"])


def _held(state: JobState, branch: Branch, command: Command) -> Iterator[Finding]:
    """Yield a finding if readers do not see runs, because one is on hold."""
    held = state.on_hold(branch.name)
    if not held:
        return
    unmet = "; ".join(one.told for one in held[0].commit.held_by)
    behind = len(branch.unpublished) - 1
    more = f", and {counted(behind, 'run')} behind it" if behind > 0 else ""
    message = f"run {held[0].spec.name} is on hold and not published{more}: {unmet}"
    yield Finding(Level.BROKEN, "on_hold", message, f"{command('publish')} --accept --run {held[0].spec.name}")


def _from_reports(project: Project, config: JobConfig, branch: Branch, looks: Looks) -> dict[str, Any]:
    """Return what waits, and what the last runs dropped."""
    feed = find_feed(config.feed, looks.rows(config.feed), project.tables.home)
    runs = branch.runs[-config.alerts.runs :]
    rules = rules_of(project.root, config.feed)
    found = Material.of_reports(branch, feed, runs, project.tables.reports, rules=rules)
    will_follow = config.semantics.stream_time_from == StreamTimeFrom.WATERMARK.value
    return lag_figures(found) | dropped_figures(found) | silent_figures(found, will_follow=will_follow)


def _altered(project: Project, job: str, state: JobState, branch: Branch, command: Command) -> Sequence[Finding]:
    """Return a finding if a file is gone that a table names, or that the next run needs.

    Of the files in a bucket, `run` and `plan` ask only for the last ones. All are looked for here.
    """
    tables = project.tables
    if not isinstance(tables, DeltaTables):
        return []
    try:
        tables.check_published(job, state, branch.name, early=True)
        if branch.head is not None and state.has_state(branch.head.spec.run):
            check_state(tables.warehouse, state, branch.head, tables.state, tables.reports)
    except StorageError as error:
        return [Finding(Level.BROKEN, "altered", str(error), command("republish"))]
    return []


def _unfinished(project: Project, branch: Branch, job: str, command: Command) -> Sequence[Finding]:
    """Return a finding if the branch has a plan whose attempt has ended without a commit."""
    pending = branch.pending
    if pending is None or project.is_alive(pending.attempt):
        return []
    planned = next(
        (row for row in reversed(project.tables.ledger_rows(job)) if row.kind == PLAN and row.seq == pending.run), None
    )
    since = f" since {to_the_second(planned.recorded_at)}" if planned else ""
    in_catalog = project.target.catalog is not None
    has_ended, known = known_end(project.warehouse, pending.attempt, in_catalog=in_catalog)
    message = f"run {pending.name} is planned{since} and not committed: {process_of(pending.attempt)} {known}"
    if not has_ended:
        return [Finding(Level.NOTE, "unfinished", message, None)]
    advice = MEMORY_ADVICE if was_killed(project.warehouse, pending.attempt) else None
    return [Finding(Level.BROKEN, "unfinished", message, command("run"), advice)]


def _lagging(
    project: Project, entry: Entry, state: JobState, branch: Branch, figures: dict[str, Any], command: Command
) -> Sequence[Finding]:
    """Return a finding if readers of the branch's tables do not see all that is committed."""
    figures["lagging"] = lacks = dict(project.tables.lagging(entry.name, state, branch.name))
    if entry.exit_code == StorageError.exit_code:  # it names the table that is gone, and `run` would not make it again
        lacks = {one: n for one, n in lacks.items() if project.tables.version_of(branch.tables[one]) is not None}
    if not lacks:
        return []
    told = ", ".join(f"{target} by {counted(count, 'commit')}" for target, count in lacks.items())
    return [Finding(Level.BROKEN, "lagging", f"tables lag behind the ledger: {told}", command("run"))]


def _missed(project: Project, config: JobConfig, entry: Entry, looks: Looks, command: Command) -> Sequence[Finding]:
    """Return a finding if a landing waits that the run before the last scheduled one should have taken."""
    if config.schedule is None or not entry.waiting:
        return []
    zone = load_feed(project.root, config.feed).zone
    due = last_due(config.schedule, looks.now_ms, zone, 2)
    first = (entry.epoch or 0) + 1
    landed_ms = landed_at(looks.rows(config.feed), first)
    if landed_ms is not None and landed_ms > due[1]:
        return []
    when = f" of {to_the_second(landed_ms)}" if landed_ms else ""
    message = (
        f"landing {first}{when} waits, although the schedule `{config.schedule}` was due at {to_the_second(due[1])} "
        f"and at {to_the_second(due[0])}"
    )
    return [Finding(Level.ALERT, "schedule", message, command("run"))]
