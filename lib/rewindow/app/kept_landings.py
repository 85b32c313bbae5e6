"""How many landings a new generation of a feed may keep, in the messages of errors that advise to land one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rewindow.control.ingest.feed_progress import landing_bodies
from rewindow.errors import LandedFileError, LandedRunError

if TYPE_CHECKING:
    from rewindow.config.feed import FeedConfig
    from rewindow.tables.shared.warehouse import Warehouse


@contextmanager
def naming_kept(tables: Warehouse, feed: FeedConfig) -> Iterator[None]:
    """Say how many landings `--keep` may keep, in the refusal of a feed.

    Its landed file is gone or has changed, or it holds rows of runs that a job no longer has.
    """
    try:
        yield
    except (LandedFileError, LandedRunError) as error:
        if keep := _kept(tables, feed.feed, error):
            error.surrounded(after=f" With `--keep {keep}`, landings up to {keep} stay as they are")
        raise


def _kept(tables: Warehouse, feed: str, error: LandedFileError | LandedRunError) -> int:
    if isinstance(error, LandedFileError):
        return _landings_before(tables, feed, str(error.facts["file"]))
    from rewindow.tables.shared.feeds import standing_landings  # noqa: PLC0415 - few feeds read a job

    return standing_landings(tables, feed, str(error.facts["job"]))[0]


def _landings_before(tables: Warehouse, feed: str, file: str) -> int:
    """Return how many of a feed's first landings have no row of a file."""
    has_file = (
        at
        for at, body in enumerate(landing_bodies(tables.feed_rows(feed)))
        if any(file in position.get("files", ()) for position in body["positions"].values())
    )
    return next(has_file, 0)
