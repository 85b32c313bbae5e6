"""The lines of a listing: the status of feeds, jobs and branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rewindow.errors import Message


class Status(StrEnum):
    """The status of a feed, a job or a branch."""

    FRESH = "fresh"
    """Nothing to do."""
    DUE = "due"
    """A feed: its sources have new rows. A job: one landing waits to be processed, or an interrupted command must be
    completed."""
    BEHIND = "behind"
    """A job: two or more landings wait to be processed. A branch: `main` has processed landings that the branch has not."""
    ON_HOLD = "on_hold"
    """A job or a branch: a run is committed, but its results are not published until somebody accepts the run."""
    RUNNING = "running"
    """A process is landing the feed or running the job now."""
    NEVER_LANDED = "never_landed"
    NEVER_RUN = "never_run"
    LEFT_BEHIND = "left_behind"
    """A branch other than `main`: the code or the landings of its runs differ from the present ones of the job and the feed."""
    BROKEN = "broken"
    """The next command would be refused, because configuration or code cannot be read, or sources or tables are not as
    expected."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the listing.

    ``epoch`` is the number of the last landing of a feed, or of the last landing that a branch has processed. ``waiting`` is
    how many landings the branch has not processed.
    """

    name: str
    status: Status
    details: Sequence[Message] = ()
    """What is new in the sources, what waits, or why the next command would be refused."""
    exit_code: int | None = None
    """The exit code with which the next command would be refused; None unless the status is broken or left behind."""
    feed: str | None = None
    epoch: int | None = None
    waiting: int | None = None
    watermark_ms: int | None = None
    branches: list[Entry] = field(default_factory=list)

    @property
    def detail(self) -> str | None:
        """The details joined into one text; None if there are none."""
        return "; ".join(self.details) or None

    @property
    def detail_codes(self) -> list[str]:
        """The codes of the details."""
        return [detail.code for detail in self.details]


def age_ms(time_ms: int | None, now_ms: int) -> int | None:
    """Return the milliseconds from a time to ``now_ms``: 0 for a time in the future, None if the time is None."""
    return None if time_ms is None else max(0, now_ms - time_ms)
