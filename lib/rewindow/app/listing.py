"""The feeds, jobs and branches of a project with their status. Each ledger is read once.

Only the tables of a catalog need Spark. An error of one feed, job or branch becomes its status and does not hide the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from rewindow.app.bind_job import bind_to_feed
from rewindow.app.branch_status import next_run
from rewindow.app.feed_status import look_at_feed
from rewindow.app.open_project import OpenProject
from rewindow.app.removed_runs import replayed_removed
from rewindow.config.job import JobConfig
from rewindow.config.load import Kind, load_job, stems
from rewindow.control.health.entries import Entry, Status
from rewindow.control.health.feed_health import FeedHealth
from rewindow.control.health.feed_health import feed_entry as entry_of_feed
from rewindow.control.health.job_health import branch_entry as entry_of_branch
from rewindow.control.ingest.feed_progress import Progress, fold_progress
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import MAIN, RunRequest, RunSpec
from rewindow.errors import CheckpointError, FindingMessage, ReasonMessage, RewindowError, SourceError, naming, one_line
from rewindow.streams.record import known_time
from rewindow.tables.shared.stored_feeds import find_feed


def reading_ledgers(project: OpenProject, feeds: Iterable[str], jobs: Iterable[str]) -> AbstractContextManager[None]:
    """Return the context of a command that only reads some feeds and jobs.

    In a catalog, it opens the Spark session at once, and one query reads all ledgers. Without a session, it raises
    `ConfigError` (78), so that the command ends with one error instead of one for each feed and job.
    """
    named, needed = list(jobs), {*feeds}
    for job in named:
        with suppress(RewindowError):  # the status of the job reports the error of its file
            needed.add(load_job(project.root, job).feed)
    return project.tables.reading(sorted(needed), named)


class ProjectView:
    """The ledgers of a project and the sources of its feeds, each read once."""

    def __init__(self, project: OpenProject) -> None:
        self.now_ms = round(time.time() * 1000)
        self._project = project
        self._rows: dict[str, Sequence[LedgerRow]] = {}
        self._states: dict[str, JobState] = {}
        self._feeds: dict[str, FeedHealth] = {}

    def rows(self, feed: str) -> Sequence[LedgerRow]:
        """Return the rows of a feed's landing ledger."""
        if feed not in self._rows:
            self._rows[feed] = self._project.feed_tables.state(feed)
        return self._rows[feed]

    def feed(self, name: str) -> FeedHealth:
        """Return the health of a feed, from its ledger and its sources. Raises the same errors as `look_at_feed`."""
        if name not in self._feeds:
            self._feeds[name] = look_at_feed(self._project, name, self.rows(name), self.now_ms)
        return self._feeds[name]

    def progress(self, feed: str) -> Progress:
        """Return the progress of a feed from its ledger. Does not read its sources."""
        return fold_progress(self.rows(feed))

    def job(self, name: str) -> JobState:
        """Return the state of a job from its ledger."""
        if name not in self._states:
            self._states[name] = self._project.tables.state(name)
        return self._states[name]


def list_project(project: OpenProject) -> tuple[list[Entry], list[Entry]]:
    """Return the feeds and the jobs of a project."""
    view = ProjectView(project)
    feeds, jobs = names_in(project.root, "feeds"), names_in(project.root, "jobs")
    with reading_ledgers(project, feeds, jobs):
        return [feed_entry(name, view) for name in feeds], [job_entry(project, name, view) for name in jobs]


def list_feeds(project: OpenProject) -> list[Entry]:
    """Return the feeds of a project."""
    view, feeds = ProjectView(project), names_in(project.root, "feeds")
    with reading_ledgers(project, feeds, ()):
        return [feed_entry(name, view) for name in feeds]


def list_jobs(project: OpenProject) -> list[Entry]:
    """Return the jobs of a project."""
    view, jobs = ProjectView(project), names_in(project.root, "jobs")
    with reading_ledgers(project, (), jobs):
        return [job_entry(project, name, view) for name in jobs]


def feed_entry(name: str, view: ProjectView) -> Entry:
    """Return the entry of a feed. If the feed is broken, the entry keeps the landings and the watermark from its ledger."""
    entry = _entry_of(name, partial(_feed, name, view))
    return _with_landings(entry, view) if entry.status is Status.BROKEN else entry


def job_entry(project: OpenProject, name: str, view: ProjectView | None = None) -> Entry:
    """Return the entry of a job with its branches."""
    return with_feed_trouble(project, _entry_of(name, partial(_job, project, name, view or ProjectView(project))))


def branch_entry(project: OpenProject, job: str, branch: str, view: ProjectView) -> Entry:
    """Return the entry of one branch of a job. The entry has the name of the job."""
    return _entry_of(job, partial(_job_branch, project, job, branch, view))


def missing_feed(project: OpenProject, entry: Entry) -> FindingMessage | None:
    """Return a finding if the feed of a job has no file any more, so that nothing more is landed; None if the file exists."""
    if entry.status is Status.BROKEN or not entry.feed or entry.feed in names_in(project.root, "feeds"):
        return None
    return FindingMessage(
        "landed-feed-without-file",
        "the next landing is refused (78): there is no conf/feeds/{feed}.yaml. Restore the file as it was, or name the job's "
        "feed",
        feed=entry.feed,
    )


def removed_runs(project: OpenProject, entry: Entry) -> FindingMessage | None:
    """Return a finding if a job replayed rows that came from runs of another job, and those runs have since been removed.

    Returns None if it did not.
    """
    if entry.status is Status.BROKEN or not entry.feed:
        return None
    of = replayed_removed(project.root, project.tables, entry.feed, entry.epoch or 0)
    if not of:
        return None
    return FindingMessage(
        "removed-runs-replayed",
        "this job has replayed rows of runs that {job} no longer has, and the next landing is refused (66)",
        job=of,
    )


def with_feed_trouble(project: OpenProject, entry: Entry) -> Entry:
    """Return the entry of a job. Its status is broken if its feed has no file any more, or contains rows of removed runs."""
    return _entry_of(entry.name, partial(_with_feed_trouble, project, entry))


def _with_feed_trouble(project: OpenProject, entry: Entry) -> Entry:
    code, trouble = 78, missing_feed(project, entry)
    if not trouble:
        code, trouble = 66, removed_runs(project, entry)
    if not trouble:
        return entry
    return replace(entry, status=Status.BROKEN, details=[*entry.details, trouble], exit_code=code)


def names_in(root: Path, kind: Kind) -> list[str]:
    """Return the names of all files of a kind. Files that end with yml are included; their entries are broken."""
    return sorted({*stems(root, kind), *stems(root, kind, ".yml")})


def _entry_of(name: str, entry: Callable[[], Entry]) -> Entry:
    try:
        return entry()
    except RewindowError as error:
        return Entry(name, Status.BROKEN, [ReasonMessage.of(error)], exit_code=error.exit_code)
    except Exception as error:  # noqa: BLE001 - one broken entry must not hide the others
        bug = ReasonMessage("entry-unreadable", "{error}: {reason}", error=type(error).__name__, reason=one_line(error))
        return Entry(name, Status.BROKEN, [bug], exit_code=70)


def _feed(name: str, view: ProjectView) -> Entry:
    with naming(FEED=name):
        return entry_of_feed(name, view.feed(name))


def _with_landings(entry: Entry, view: ProjectView) -> Entry:
    with suppress(Exception):  # the entry's detail already reports an error of the ledger
        progress = view.progress(entry.name)
        if progress.feed is not None:
            return replace(entry, epoch=len(progress.feed.landings), watermark_ms=known_time(progress.watermark_ms))
    return entry


def _job(project: OpenProject, name: str, view: ProjectView) -> Entry:
    main, config, state = _job_branch(project, name, MAIN, view), load_job(project.root, name), view.job(name)
    others = [branch.name for branch in state.branches.values() if branch.is_open and branch.name != MAIN]
    if not others:
        return main
    feed = find_feed(config.feed, view.rows(config.feed), project.tables.home)
    branches = [_entry_of(other, partial(_branch, project, config, state, feed, other)) for other in others]
    return replace(main, branches=[_left_behind(branch) for branch in branches])


def _left_behind(branch: Entry) -> Entry:
    """Return the entry of a branch other than main.

    If the branch is broken because its code (76) or its landings (66) are outdated, its status becomes left behind.
    """
    is_left_behind = branch.status is Status.BROKEN and branch.exit_code in (
        CheckpointError.exit_code,
        SourceError.exit_code,
    )
    return replace(branch, status=Status.LEFT_BEHIND) if is_left_behind else branch


def _job_branch(project: OpenProject, name: str, branch: str, view: ProjectView) -> Entry:
    config = load_job(project.root, name)
    state = view.job(name)
    try:
        feed = find_feed(config.feed, view.rows(config.feed), project.tables.home)
    except SourceError as never_landed:
        try:
            project.bind(name)
        except SourceError:  # the job's code is valid, only a landing is missing
            if state.branch(branch).head is not None:
                raise
            first_line = ReasonMessage.restored(
                never_landed.code, str(never_landed).splitlines()[0], never_landed.facts
            )
            return Entry(name, Status.NEVER_RUN, [first_line], feed=config.feed)
        raise
    return replace(_branch(project, config, state, feed, branch), name=name)


def _branch(project: OpenProject, config: JobConfig, state: JobState, feed: Feed, name: str) -> Entry:
    """Return the entry of a branch."""

    def decide() -> RunSpec | UpToDate | RewindowError:
        try:
            bound = bind_to_feed(project.root, project.target, config, feed, name)
            request = project.as_configured(config.job, RunRequest(branch=name))
            return next_run(project.tables, bound, state, request, project.is_alive)
        except RewindowError as error:
            return error

    return entry_of_branch(state, feed, name, decide, lambda: project.tables.lagging(config.job, state, name))
