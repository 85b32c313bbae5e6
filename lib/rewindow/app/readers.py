"""The feeds that read a job's output and hold rows of runs that it no longer has, and the jobs that have replayed these rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewindow.config.load import load_feed, load_job, names_of
from rewindow.control.plan.spec import MAIN
from rewindow.errors import ConfigError
from rewindow.tables.shared.job_source import standing_landings

if TYPE_CHECKING:
    from rewindow.app.project import Project


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


def replayed_of_removed(project: Project, feed: str, branch: str = MAIN) -> dict[str, tuple[str, ...]]:
    """Return the jobs of which a feed holds rows of removed runs, each with the jobs that have replayed these rows."""
    try:
        sources = {log.source.job for log in load_feed(project.root, feed).logs.values() if log.source.job}
    except ConfigError:
        return {}
    found = {}
    for source in sorted(sources):
        keep, landings = standing_landings(project.tables, feed, source)
        if keep < landings:
            names = _jobs_of(project, feed)
            found[source] = tuple(name for name in names if _last_epoch(project, name, branch) > keep)
    return found


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


def _last_epoch(project: Project, job: str, branch: str = MAIN) -> int:
    return project.tables.state(job).branch(branch).last_epoch
