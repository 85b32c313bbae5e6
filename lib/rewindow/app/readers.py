"""The feeds that read a job's output and hold rows of runs that it no longer has, and the jobs that have replayed these rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rewindow.config.load import load_feed, load_job, names_of
from rewindow.control.plan.spec import MAIN
from rewindow.errors import ConfigError
from rewindow.tables.shared.feeds import standing_landings

if TYPE_CHECKING:
    from rewindow.tables.shared.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Reader:
    """A feed of which the landings after ``keep`` hold such rows, and the jobs with runs of these landings."""

    feed: str
    keep: int
    jobs: tuple[str, ...]


def outdated_readers(root: Path, tables: Warehouse, job: str) -> Iterator[Reader]:
    """Yield such readers of a job's outputs. A file that is not a valid feed or job is skipped."""
    for feed in names_of(root, "feeds"):
        if job in _sources(root, feed):
            yield from _outdated(root, tables, feed, job)


def replayed_removed(root: Path, tables: Warehouse, feed: str, last_epoch: int) -> str:
    """Return the jobs of whose removed runs a feed holds rows that a branch has replayed, given its last epoch; else nothing."""
    kept = ((source, *standing_landings(tables, feed, source)) for source in sorted(_sources(root, feed)))
    return " and ".join(source for source, keep, landings in kept if keep < landings and keep < last_epoch)


def replayed_of_removed(root: Path, tables: Warehouse, feed: str) -> dict[str, tuple[str, ...]]:
    """Return the jobs of which a feed holds rows of removed runs, each with the jobs that have replayed these rows."""
    return {
        source: reader.jobs
        for source in sorted(_sources(root, feed))
        for reader in _outdated(root, tables, feed, source)
    }


def _outdated(root: Path, tables: Warehouse, feed: str, source: str) -> Iterator[Reader]:
    keep, landings = standing_landings(tables, feed, source)
    if keep < landings:
        jobs = (name for name in _jobs_of(root, feed) if tables.state(name).branch(MAIN).last_epoch > keep)
        yield Reader(feed, keep, tuple(jobs))


def _sources(root: Path, feed: str) -> set[str]:
    """Return the jobs whose outputs a feed reads; none for an invalid file."""
    with suppress(ConfigError):
        return {log.source.job for log in load_feed(root, feed).logs.values() if log.source.job}
    return set()


def _jobs_of(root: Path, feed: str) -> Iterator[str]:
    for name in names_of(root, "jobs"):
        with suppress(ConfigError):
            if load_job(root, name).feed == feed:
                yield name
