"""What is in a project and how it is: the status of every feed, job and branch, from one look at each ledger.

Only the tables of a catalog need Spark. Whatever is wrong with one of them is its own status and hides no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

from rewindow.app.bind_job import bind_to_feed
from rewindow.app.feed_status import FeedLook, look_at_feed
from rewindow.app.next_run import next_run
from rewindow.app.project import Project
from rewindow.app.read_ledgers import reading_ledgers
from rewindow.app.readers import replayed_removed
from rewindow.config.job import JobConfig
from rewindow.config.load import Kind, load_job
from rewindow.control.ingest.landings import Feed
from rewindow.control.ingest.progress import Progress, fold_progress
from rewindow.control.plan.branches import JobState, LedgerRow
from rewindow.control.plan.spec import MAIN, RunRequest, RunSpec
from rewindow.errors import NotNowError, RewindowError, SourceError, naming, one_line
from rewindow.streams.duration import in_words
from rewindow.streams.record import known_time
from rewindow.tables.shared.warehouse import find_feed

_UNFINISHED = "an attempt did not finish: the next run completes it"


class Status(StrEnum):
    """How a feed, a job or a branch is."""

    FRESH = "fresh"
    """Nothing to do."""
    DUE = "due"
    """A feed: its sources have something new. A job: one landing waits, or an interrupted command is to be completed."""
    BEHIND = "behind"
    """A job: two or more landings wait. A branch: `main` has taken landings that the branch has not."""
    ON_HOLD = "on_hold"
    """A job or a branch: a run is committed, and not published before somebody accepts it."""
    RUNNING = "running"
    """A process is landing or running it now."""
    NEVER_LANDED = "never_landed"
    NEVER_RUN = "never_run"
    BROKEN = "broken"
    """The next command would refuse: the configuration or the code cannot be read, or sources or tables do not fit."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the listing. ``epoch`` is the last landing landed or taken, ``waiting`` the number not taken yet."""

    name: str
    status: Status
    detail: str | None = None
    exit_code: int | None = None
    """With which the next command would refuse; None unless broken."""
    feed: str | None = None
    epoch: int | None = None
    waiting: int | None = None
    watermark_ms: int | None = None
    branches: list[Entry] = field(default_factory=list)


class Looks:
    """One look at each ledger and at each feed's sources, at one time."""

    def __init__(self, project: Project) -> None:
        self.now_ms = round(time.time() * 1000)
        self._project = project
        self._rows: dict[str, Sequence[LedgerRow]] = {}
        self._states: dict[str, JobState] = {}
        self._feeds: dict[str, FeedLook] = {}

    def rows(self, feed: str) -> Sequence[LedgerRow]:
        """Return the rows of a feed's landing ledger."""
        if feed not in self._rows:
            self._rows[feed] = self._project.feed_tables.state(feed)
        return self._rows[feed]

    def feed(self, name: str) -> FeedLook:
        """Return what a feed's ledger and sources say. Raises as `look_at_feed`."""
        if name not in self._feeds:
            self._feeds[name] = look_at_feed(self._project, name, self.rows(name), self.now_ms)
        return self._feeds[name]

    def progress(self, feed: str) -> Progress:
        """Return what a feed's ledger says, whatever its sources are like."""
        return fold_progress(self.rows(feed))

    def job(self, name: str) -> JobState:
        """Return what a job's ledger says."""
        if name not in self._states:
            self._states[name] = self._project.tables.state(name)
        return self._states[name]


def list_project(project: Project) -> tuple[list[Entry], list[Entry]]:
    """Return the feeds and the jobs of a project."""
    looks = Looks(project)
    feeds, jobs = names_in(project.root, "feeds"), names_in(project.root, "jobs")
    with reading_ledgers(project, feeds, jobs):
        return [feed_entry(name, looks) for name in feeds], [job_entry(project, name, looks) for name in jobs]


def list_feeds(project: Project) -> list[Entry]:
    """Return the feeds of a project."""
    looks, feeds = Looks(project), names_in(project.root, "feeds")
    with reading_ledgers(project, feeds, ()):
        return [feed_entry(name, looks) for name in feeds]


def list_jobs(project: Project) -> list[Entry]:
    """Return the jobs of a project."""
    looks, jobs = Looks(project), names_in(project.root, "jobs")
    with reading_ledgers(project, (), jobs):
        return [job_entry(project, name, looks) for name in jobs]


def feed_entry(name: str, looks: Looks) -> Entry:
    """Return one feed of a project. One that is broken keeps what its ledger says."""
    entry = _entry_of(name, partial(_feed, name, looks))
    return _with_landings(entry, looks) if entry.status is Status.BROKEN else entry


def job_entry(project: Project, name: str, looks: Looks | None = None) -> Entry:
    """Return one job of a project with its branches."""
    return with_feed_trouble(project, _entry_of(name, partial(_job, project, name, looks or Looks(project))))


def branch_entry(project: Project, job: str, branch: str, looks: Looks) -> Entry:
    """Return one branch of a job. That of `main` is the job's."""
    return _entry_of(job, partial(_job_branch, project, job, branch, looks))


def missing_feed(project: Project, entry: Entry) -> str:
    """Return a sentence if the landed feed of a job has no file any more, so that nothing more is landed; else nothing."""
    if entry.status is Status.BROKEN or not entry.feed or entry.feed in names_in(project.root, "feeds"):
        return ""
    return (
        f"the next landing is refused (78): there is no conf/feeds/{entry.feed}.yaml. Restore the file as it was, or name "
        "the job's feed"
    )


def removed_runs(project: Project, entry: Entry) -> str:
    """Return a sentence if a job has replayed rows of another job's runs that are gone; else nothing."""
    if entry.status is Status.BROKEN or not entry.feed:
        return ""
    of = replayed_removed(project.root, project.tables, entry.feed, entry.epoch or 0)
    return (
        f"this job has replayed rows of runs that {of} no longer has, and the next landing is refused (66)"
        if of
        else ""
    )


def with_feed_trouble(project: Project, entry: Entry) -> Entry:
    """Return the entry of a job, broken if its feed has no file any more, or holds rows of runs that are gone."""
    return _entry_of(entry.name, partial(_with_feed_trouble, project, entry))


def _with_feed_trouble(project: Project, entry: Entry) -> Entry:
    code, trouble = 78, missing_feed(project, entry)
    if not trouble:
        code, trouble = 66, removed_runs(project, entry)
    if not trouble:
        return entry
    detail = f"{entry.detail}; {trouble}" if entry.detail else trouble
    return replace(entry, status=Status.BROKEN, detail=detail, exit_code=code)


def names_in(root: Path, kind: Kind) -> list[str]:
    """Return the names of all files, also of those with the wrong ending, which are broken."""
    return sorted({path.stem for ending in ("yaml", "yml") for path in (root / "conf" / kind).glob(f"*.{ending}")})


def _entry_of(name: str, entry: Callable[[], Entry]) -> Entry:
    try:
        return entry()
    except RewindowError as error:
        return Entry(name, Status.BROKEN, str(error), exit_code=error.exit_code)
    except Exception as error:  # noqa: BLE001 - one broken entry must not hide the others
        return Entry(name, Status.BROKEN, f"{type(error).__name__}: {one_line(error)}", exit_code=70)


def _feed(name: str, looks: Looks) -> Entry:
    with naming(FEED=name):
        look = looks.feed(name)
    landed = look.progress.feed
    status = Status.NEVER_LANDED if landed is None else Status.DUE if look.is_due else Status.FRESH
    return Entry(
        name,
        Status.RUNNING if look.is_landing else status,
        look.detail or _below_its_job(landed) or None,
        epoch=len(landed.landings) if landed else None,
        watermark_ms=known_time(look.progress.watermark_ms),
    )


def _below_its_job(landed: Feed | None) -> str:
    """Return by how much the watermark of a feed of another job's output is below that of the job; nothing if it is not."""
    held_ms = landed.landings[-1].held_ms if landed and landed.landings else 0
    return f"complete through {in_words(held_ms)} less than its job, which may hold rows back" if held_ms else ""


def _with_landings(entry: Entry, looks: Looks) -> Entry:
    with suppress(Exception):  # what is wrong with the ledger is the entry's own detail
        progress = looks.progress(entry.name)
        if progress.feed is not None:
            return replace(entry, epoch=len(progress.feed.landings), watermark_ms=known_time(progress.watermark_ms))
    return entry


def _job(project: Project, name: str, looks: Looks) -> Entry:
    main, config, state = _job_branch(project, name, MAIN, looks), load_job(project.root, name), looks.job(name)
    others = [one.name for one in state.branches.values() if one.is_open and one.name != MAIN]
    if not others:
        return main
    feed = find_feed(config.feed, looks.rows(config.feed), project.tables.home)
    branches = [_entry_of(other, partial(_branch, project, config, state, feed, other)) for other in others]
    return replace(main, branches=branches)


def _job_branch(project: Project, name: str, branch: str, looks: Looks) -> Entry:
    config = load_job(project.root, name)
    state = looks.job(name)
    try:
        feed = find_feed(config.feed, looks.rows(config.feed), project.tables.home)
    except SourceError as never_landed:
        try:
            project.bind(name)
        except SourceError:  # its code is fine
            if state.branch(branch).head is not None:
                raise
            return Entry(name, Status.NEVER_RUN, _first_line(never_landed), feed=config.feed)
        raise
    return replace(_branch(project, config, state, feed, branch), name=name)


def _branch(project: Project, config: JobConfig, state: JobState, feed: Feed, name: str) -> Entry:
    """Return the entry of a branch. That of `main` is the job's."""
    branch, of_main = state.branch(name), state.branch(MAIN).last_epoch
    entry = Entry(
        name,
        Status.FRESH,
        feed=config.feed,
        epoch=branch.last_epoch or None,
        waiting=max(0, (len(feed.landings) if name == MAIN else of_main) - branch.last_epoch),
        watermark_ms=known_time(branch.watermark_ms),
    )
    if branch.is_sealed and not (name == MAIN and entry.waiting) and not state.on_hold(name):
        return replace(entry, detail="sealed: takes no more runs", waiting=0)
    try:
        bound = bind_to_feed(project.root, project.target, config, feed, name)
        request = RunRequest(branch=name, accept_code=config.on_code_change == "accept")
        decision = next_run(project.tables, bound, state, request, project.is_alive)
    except NotNowError as error:
        return replace(entry, status=Status.RUNNING, detail=str(error))
    except RewindowError as error:
        return replace(entry, status=Status.BROKEN, detail=str(error), exit_code=error.exit_code)
    waiting = entry.waiting or 0
    if held := state.on_hold(name):
        return replace(
            entry, status=Status.ON_HOLD, detail=f"run {held[0].spec.name}: {held[0].commit.held_by[0].told}"
        )
    is_unfinished = isinstance(decision, RunSpec) and decision.takes_over is not None
    detail = f"{_waiting(waiting)}{f'; {_UNFINISHED}' if is_unfinished else ''}"
    if branch.head is None and waiting:
        return replace(entry, status=Status.NEVER_RUN, detail=detail)
    if waiting > (1 if name == MAIN else 0):
        return replace(entry, status=Status.BEHIND, detail=detail)
    if is_unfinished:
        return replace(entry, status=Status.DUE, detail=_UNFINISHED)
    if waiting:
        return replace(entry, status=Status.DUE, detail=_waiting(waiting))
    if project.tables.lagging(config.job, state, name):
        return replace(entry, status=Status.DUE, detail="tables lag behind the ledger: the next run publishes them")
    return entry


def _waiting(count: int) -> str:
    return "1 landing waits" if count == 1 else f"{count:,} landings wait"


def _first_line(error: RewindowError) -> str:
    return str(error).splitlines()[0]
