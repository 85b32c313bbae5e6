"""The feeds that read a job's output and hold rows of runs that it no longer has, and the jobs that have replayed these rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewindow.config.feed import FeedConfig
from rewindow.config.load import load_feed, load_job, names_of
from rewindow.control.plan.spec import MAIN
from rewindow.errors import ConfigError, SourceError
from rewindow.tables.shared.job_source import standing_landings
from rewindow.tables.shared.warehouse import Warehouse

if TYPE_CHECKING:
    from rewindow.app.project import Project

_KEEP_SOME = " With `--keep N`, landings up to N stay as they are"


@dataclass(frozen=True, slots=True)
class Reader:
    """A feed of which the landings after ``keep`` hold such rows, and the jobs with runs of these landings on `main`."""

    feed: str
    keep: int
    jobs: tuple[str, ...]


def outdated_readers(project: Project, job: str) -> Iterator[Reader]:
    """Yield such readers of a job's outputs. A file that is no valid feed or job is passed over."""
    for feed in _feeds_of(project, job):
        keep, landings = standing_landings(project.tables, feed, job)
        if keep < landings:
            jobs = (name for name in _jobs_of(project, feed) if _last_epoch(project, name) > keep)
            yield Reader(feed, keep, tuple(jobs))


@contextmanager
def naming_kept(tables: Warehouse, feed: FeedConfig) -> Iterator[None]:
    """Say how many landings `--keep` may keep, in the refusal of a feed that holds rows of runs that a job no longer has."""
    try:
        yield
    except SourceError as error:
        if _KEEP_SOME in error.message:
            jobs = {log.source.job for log in feed.logs.values() if log.source.job}
            keep = min(standing_landings(tables, feed.feed, job)[0] for job in jobs)
            told = f" With `--keep {keep}`, landings up to {keep} stay as they are" if keep else ""
            error.args = (error.message.replace(_KEEP_SOME, told),)
        raise


def _feeds_of(project: Project, job: str) -> Iterator[str]:
    for name in names_of(project.root, "feeds"):
        with suppress(ConfigError):
            if any(log.source.job == job for log in load_feed(project.root, name).logs.values()):
                yield name


def _jobs_of(project: Project, feed: str) -> Iterator[str]:
    for name in names_of(project.root, "jobs"):
        with suppress(ConfigError):
            if load_job(project.root, name).feed == feed:
                yield name


def _last_epoch(project: Project, job: str) -> int:
    return project.tables.state(job).branch(MAIN).last_epoch
