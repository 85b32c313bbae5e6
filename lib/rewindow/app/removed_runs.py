"""Find feeds with rows from removed runs of another job, and jobs that have replayed such rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rewindow.config.load import load_feed, load_job, names_of
from rewindow.control.plan.spec import MAIN
from rewindow.errors import ConfigError
from rewindow.tables.shared.landed_outputs import standing_landings

if TYPE_CHECKING:
    from rewindow.tables.shared.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Reader:
    """A feed whose landings after ``keep`` contain rows of removed runs, and the jobs that have processed these landings."""

    feed: str
    keep: int
    jobs: tuple[str, ...]


def outdated_readers(root: Path, tables: Warehouse, job: str) -> Iterator[Reader]:
    """Yield the feeds that read a job's outputs and contain rows of removed runs of this job. Invalid files are skipped."""
    for feed in names_of(root, "feeds"):
        if job in _sources(root, feed):
            yield from _outdated(root, tables, feed, job)


def replayed_removed(root: Path, tables: Warehouse, feed: str, last_epoch: int) -> str:
    """Return the jobs, joined by "and", whose removed runs have rows in a feed that a branch has replayed.

    Returns ``""`` if there are no such jobs. ``last_epoch`` is the last epoch that the branch has processed.
    """
    kept = ((source, *standing_landings(tables, feed, source)) for source in sorted(_sources(root, feed)))
    return " and ".join(source for source, keep, landings in kept if keep < landings and keep < last_epoch)


def replayed_of_removed(root: Path, tables: Warehouse, feed: str) -> dict[str, tuple[str, ...]]:
    """Return the jobs whose removed runs still have rows in a feed.

    Each is mapped to the names of the jobs that have replayed these rows.
    """
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
    """Return the jobs whose outputs a feed reads; empty if the feed's file is invalid."""
    with suppress(ConfigError):
        return {log.source.job for log in load_feed(root, feed).logs.values() if log.source.job}
    return set()


def _jobs_of(root: Path, feed: str) -> Iterator[str]:
    for name in names_of(root, "jobs"):
        with suppress(ConfigError):
            if load_job(root, name).feed == feed:
                yield name
