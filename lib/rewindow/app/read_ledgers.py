"""Read the ledgers of several feeds and jobs together: in a catalog, each look at one of them would be a query."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress

from rewindow.app.open_project import OpenProject
from rewindow.config.load import load_job
from rewindow.errors import RewindowError


def reading_ledgers(project: OpenProject, feeds: Iterable[str], jobs: Iterable[str]) -> AbstractContextManager[None]:
    """Return the context of a command that only reads some feeds and jobs. In a catalog, one query reads their ledgers.

    There, the Spark session is opened at once: without one the command ends, instead of saying so of each feed and job.
    Raises `ConfigError` (78) for that.
    """
    named, needed = list(jobs), {*feeds}
    for job in named:
        with suppress(RewindowError):  # what is said of the job says what is wrong with its file
            needed.add(load_job(project.root, job).feed)
    return project.tables.reading(sorted(needed), named)
