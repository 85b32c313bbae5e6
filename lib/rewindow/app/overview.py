"""Check feeds and jobs of a project. Each ledger is read once, and nothing is changed. Only tables of a catalog need Spark.

This module reads, and `control.health` decides what is a finding. An error while reading becomes a finding, too, so it does not
hide other findings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from croniter import croniter

from rewindow.app.alert_bounds import Upkeep, exceeded, growth_figures
from rewindow.app.branch_status import unfinished
from rewindow.app.feed_rules import rules_of
from rewindow.app.listing import (
    ProjectView,
    branch_entry,
    feed_entry,
    missing_feed,
    names_in,
    reading_ledgers,
    removed_runs,
    with_feed_trouble,
)
from rewindow.app.open_project import OpenProject
from rewindow.app.removed_runs import replayed_of_removed
from rewindow.app.run_references import unknown_name
from rewindow.config.job import JobConfig
from rewindow.config.load import Kind, load_feed, load_job
from rewindow.control.health import findings
from rewindow.control.health.entries import Entry, Status
from rewindow.control.health.feed_health import feed_figures
from rewindow.control.health.findings import Finding, Level, Subject, Unfinished, checked
from rewindow.control.health.holds import describe_holds
from rewindow.control.health.inputs import Inputs, Unknown
from rewindow.control.health.job_health import job_health, progress_figures
from rewindow.control.health.late_and_dropped_records import drop_shares
from rewindow.control.health.phrases import Command
from rewindow.control.ingest.feed_progress import made_by
from rewindow.control.ingest.landings import PLAN as LANDING_PLAN
from rewindow.control.plan.job_fold import PLAN
from rewindow.control.plan.job_state import Branch, JobState
from rewindow.control.plan.spec import MAIN, Attempt
from rewindow.errors import FindingMessage, Message, RewindowError, StorageError, UsageError
from rewindow.streams.settings import StreamTimeFrom
from rewindow.tables.shared.paths import safe_name
from rewindow.tables.shared.stored_feeds import find_feed


@dataclass(frozen=True, slots=True)
class Overview:
    """The feeds and jobs that were checked at the time ``as_of_ms`` (epoch ms).

    In each list, the most urgent ones come first.
    """

    as_of_ms: int
    feeds: Sequence[Subject]
    jobs: Sequence[Subject]

    @property
    def subjects(self) -> Sequence[Subject]:
        """Feeds and jobs, the most urgent first."""
        return sorted((*self.feeds, *self.jobs), key=_urgency)

    @property
    def is_empty(self) -> bool:
        """Whether the project has feeds but none was ever landed, for example because the path of the warehouse is misspelt."""
        return bool(self.feeds) and all(feed.figures["landings"] == 0 for feed in self.feeds)

    @property
    def is_well(self) -> bool:
        """Whether no finding needs somebody to act."""
        return all(subject.level.is_well for subject in chain(self.feeds, self.jobs))


def overview(project: OpenProject, names: Collection[str] = (), branch: str = MAIN) -> Overview:
    """Check the named feeds and jobs, or all. For a branch other than `main`, check the feeds and all jobs that have the branch.

    Raises `UsageError` (2) for a name or a branch that does not exist, `ConfigError` (78) if the tables are in a catalog and
    there is no Spark session.
    """
    view = ProjectView(project)
    feeds, jobs = _selected(project, "feeds", names), _selected(project, "jobs", names)
    _check_names(project, names, {*feeds, *jobs})
    with reading_ledgers(project, feeds, jobs):
        if branch != MAIN:
            jobs = _having(safe_name(branch, "branch"), jobs, names, view)
        return Overview(
            view.now_ms,
            sorted((_check_feed(project, name, view) for name in feeds), key=_urgency),
            sorted((_check_job(project, name, branch, view) for name in jobs), key=_urgency),
        )


def _urgency(subject: Subject) -> tuple[int, int, str, str]:
    return list(Level).index(subject.level), -len(subject.findings), subject.kind, subject.name


def _selected(project: OpenProject, kind: Kind, names: Collection[str]) -> list[str]:
    return [name for name in names_in(project.root, kind) if not names or name in names]


def _check_names(project: OpenProject, names: Collection[str], existing: Collection[str]) -> None:
    for name in names:
        if name not in existing:
            raise unknown_name(project.root, name)


def _having(branch: str, jobs: Sequence[str], names: Collection[str], view: ProjectView) -> list[str]:
    """Return the jobs that have an open branch of this name.

    Jobs with unreadable ledgers are included, so that they are reported.
    """
    having = []
    for name in jobs:
        try:
            has_branch = branch in view.job(name).branches and view.job(name).branch(branch).is_open
        except RewindowError:
            has_branch = True
        if has_branch:
            having.append(name)
        elif name in names:
            raise UsageError(
                "job-branch-not-open",
                "job {job!r} has no open branch {branch!r}: `rewindow branch list {job}` shows its branches",
                job=name,
                branch=branch,
            )
    if not having:
        raise UsageError(
            "branch-not-open-anywhere",
            "no job has an open branch {branch!r}: `rewindow branch list JOB` shows the branches of a job",
            branch=branch,
        )
    return having


def _check_feed(project: OpenProject, name: str, view: ProjectView) -> Subject:
    """Check a feed: its sources, its landings, and attempts that did not finish."""
    entry, command = feed_entry(name, view), Command(name, project.target.target)
    is_broken, land = entry.status is Status.BROKEN, command("land")
    rows = () if is_broken and entry.epoch is None else view.rows(name)
    health = None if is_broken else view.feed(name)
    progress = health.progress if health else None if entry.epoch is None else view.progress(name)
    landings = len(progress.feed.landings) if progress and progress.feed else 0
    landed_ms = findings.landed_at(rows, landings) if landings else None
    figures = feed_figures(entry, progress, landed_ms, view.now_ms) | {"due": health.is_due if health else None}
    if health is None:
        gone = checked(
            lambda: findings.replayed(replayed_of_removed(project.root, project.tables, name), land), "replayed", land
        )
        return Subject("feed", name, entry, figures, [*findings.refused(entry, "landing", land), *gone])
    found = []
    if progress and progress.unfinished and not health.is_landing:
        attempt = progress.unfinished[-1]
        plans = (row for row in reversed(rows) if row.kind == LANDING_PLAN)
        planned_ms = next(row.recorded_at for row in plans if row.body["attempt"]["id"] == attempt.id)
        found.append(findings.unfinished_landing(_unfinished(project, attempt, planned_ms), command))
    if made_by(rows):
        found += checked(
            lambda: findings.lagging(
                project.feed_tables.lagging(find_feed(name, rows, project.tables.home)), "logs", "landing", land
            ),
            "lagging",
            land,
        )
    found += findings.of_landings(health, view.now_ms, name, command)
    return Subject("feed", name, entry, figures, found)


def _unfinished(project: OpenProject, attempt: Attempt, planned_ms: int | None) -> Unfinished:
    in_catalog = project.target.catalog is not None
    return unfinished(project.warehouse, attempt, in_catalog=in_catalog, planned_ms=planned_ms)


def _check_job(project: OpenProject, name: str, branch: str, view: ProjectView) -> Subject:
    """Check a job's branch: its next run, its attempts, its tables, its schedule and the limits in the job's file."""
    entry, command = branch_entry(project, name, branch, view), Command(name, project.target.target, branch)
    found = [*findings.refused(entry, "run", command("plan"))]
    if missing := missing_feed(project, entry):
        found.append(Finding(Level.BROKEN, "refused", missing, f"{command('run')} --land"))
    try:
        config, state = load_job(project.root, name), view.job(name)
    except RewindowError:  # the entry already reports this error
        return Subject("job", name, entry, progress_figures(entry, None, view.now_ms), found)
    of = state.branch(branch)
    has_files = project.target.catalog is None
    figures = progress_figures(entry, of, view.now_ms) | growth_figures(state, of, has_files=has_files)
    check = _JobCheck(project, entry, config, state, of, view, command, figures)
    is_refused, is_running = entry.status is Status.BROKEN, entry.status is Status.RUNNING
    if of.head is not None:
        found += checked(check.health, "figures", command("report"))
    found += findings.on_hold(describe_holds(state, branch), len(of.unpublished), command)
    if not (of.is_sealed or is_refused or is_running):
        found += checked(check.altered, "altered", command("plan"))
    behind = [
        *checked(check.pending, "unfinished", command("plan")),
        *checked(check.lagging, "lagging", command("plan")),
    ]
    found += checked(check.replayed, "replayed", command("plan"))
    found += [replace(one, command=None) for one in behind] if is_refused else behind
    if not of.is_sealed:
        if not is_running:
            found += checked(check.missed, "schedule", command("plan"))
        found += exceeded(
            config.alerts, figures, command, Upkeep(state, of.head, view.now_ms, project.target.keep_ms, has_files)
        )
    return Subject("job", name, with_feed_trouble(project, entry), figures, found)


@dataclass(frozen=True, slots=True)
class _JobCheck:
    """The checks of a branch that read tables or files. Each yields its findings, and may add to ``figures``."""

    project: OpenProject
    entry: Entry
    config: JobConfig
    state: JobState
    branch: Branch
    view: ProjectView
    command: Command
    figures: dict[str, Any]

    def health(self) -> Iterator[Finding]:
        """Yield a finding for results that wait for partitions without new records.

        Add figures on waiting and dropped records.
        """
        # Each run has its own file of task reports. Only the runs from which shares are computed are read.
        config, tables, runs = self.config, self.project.tables, self.branch.runs[-self.config.alerts.runs :]
        inputs = Inputs(
            self.branch,
            find_feed(config.feed, self.view.rows(config.feed), tables.home),
            runs,
            read_rules=partial(rules_of, self.project.root, config.feed),
            reports={run.spec.run: tables.reports(run) for run in runs},
            will_follow=config.semantics.stream_time_from == StreamTimeFrom.WATERMARK.value,
        )
        health = job_health(inputs, self.state)
        self.figures["waiting_records"] = health.waiting_records
        self.figures["held"] = sum(held.records for held in health.held)
        self.figures.update(drop_shares(inputs))
        stalled = health.stalled
        self.figures["silent"] = None if isinstance(stalled, Unknown) else [result.as_json() for result in stalled]
        if isinstance(stalled, Unknown) and missing_feed(self.project, self.entry):
            return  # another finding reports that the feed's file is gone
        yield from findings.stalled_results(stalled, config.alerts.silent_ms, self.command)

    def altered(self) -> Iterator[Finding]:
        """Yield a finding if a file is missing that a table contains or that the next run needs.

        For tables in a bucket, `run` and `plan` check only the newest files. This method checks all files.
        """
        try:
            self.project.tables.check_next(self.entry.name, self.state, self.branch.name)
        except StorageError as error:
            message = FindingMessage("next-run-lacks-files", "{reason}", reason=Message.of(error))
            yield Finding(Level.BROKEN, "altered", message, self.command("republish"))

    def pending(self) -> Iterator[Finding]:
        """Yield a finding if the branch has a plan whose attempt ended without a commit."""
        pending, project = self.branch.pending, self.project
        if pending is None or project.is_alive(pending.attempt):
            return
        rows = reversed(project.tables.ledger_rows(self.entry.name))
        planned_ms = next((row.recorded_at for row in rows if row.kind == PLAN and row.seq == pending.run), None)
        attempt = _unfinished(project, pending.attempt, planned_ms)
        yield findings.unfinished_run(pending.name, attempt, self.command)

    def lagging(self) -> Iterator[Finding]:
        """Yield a finding if the branch's tables lack rows of committed runs."""
        tables, entry = self.project.tables, self.entry
        self.figures["lagging"] = lacks = dict(tables.lagging(entry.name, self.state, self.branch.name))
        if entry.exit_code == StorageError.exit_code:
            # Missing tables are left out, because `self.entry` already reports them (74). This finding advises `run`, which
            # would not restore a table.
            own = self.branch.tables
            lacks = {target: n for target, n in lacks.items() if tables.version_of(own[target]) is not None}
        yield from findings.lagging(lacks, "tables", "commit", self.command("run"))

    def replayed(self) -> Iterator[Finding]:
        """Yield a finding if the branch replayed rows that came from runs of another job, and these runs were removed."""
        if message := removed_runs(self.project, self.entry):
            land = Command(self.entry.feed or "", self.command.target)("land")
            yield Finding(Level.BROKEN, "replayed", message, land, "It says how to land them again")

    def missed(self) -> Iterator[Finding]:
        """Yield a finding if a landing waits that a scheduled run should have processed."""
        config, schedule = self.config, self.config.schedule
        if schedule is None or not self.entry.waiting:
            return
        # The last scheduled run may not have started yet. So the finding is only made if the run before it should have
        # processed the landing.
        due = last_due(schedule, self.view.now_ms, load_feed(self.project.root, config.feed).zone, 2)
        landed_ms = findings.landed_at(self.view.rows(config.feed), (self.entry.epoch or 0) + 1)
        yield from findings.overdue_run(self.entry, landed_ms, schedule, due, self.command)


def last_due(cron: str, before_ms: int, zone: str, count: int) -> list[int]:
    """Return the last ``count`` times (epoch ms) at which a cron schedule was due before a time (epoch ms), newest first.

    ``zone``: the time zone of the schedule. Raises `ValueError` for a valid schedule that is never due.
    """
    times = croniter(cron, datetime.fromtimestamp(before_ms / 1000, ZoneInfo(zone)))
    return [round(times.get_prev(float) * 1000) for _ in range(count)]
