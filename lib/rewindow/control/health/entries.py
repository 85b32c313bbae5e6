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
    """A feed: its sources have something new. A job: one landing waits, or an interrupted command is to be completed."""
    BEHIND = "behind"
    """A job: two or more landings wait. A branch: `main` has taken landings that the branch has not."""
    ON_HOLD = "on_hold"
    """A job or a branch: a run is committed, and is not published until somebody accepts it."""
    RUNNING = "running"
    """A process is landing or running it now."""
    NEVER_LANDED = "never_landed"
    NEVER_RUN = "never_run"
    LEFT_BEHIND = "left_behind"
    """A branch other than `main`: it has replayed other code or other landings than the job and the feed have now."""
    BROKEN = "broken"
    """The next command would refuse: the configuration or the code cannot be read, or sources or tables do not fit."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the listing.

    ``epoch`` is the number of the last landing of a feed, or of the last landing that a branch has taken. ``waiting`` is how
    many landings the branch has not taken.
    """

    name: str
    status: Status
    details: Sequence[Message] = ()
    """What is new, what waits, or why the next command would refuse."""
    exit_code: int | None = None
    """The exit code with which the next command would refuse; None unless the status is broken or left behind."""
    feed: str | None = None
    epoch: int | None = None
    waiting: int | None = None
    watermark_ms: int | None = None
    branches: list[Entry] = field(default_factory=list)

    @property
    def detail(self) -> str | None:
        """The details as one text; None without details."""
        return "; ".join(self.details) or None

    @property
    def detail_codes(self) -> list[str]:
        """The codes of the details."""
        return [detail.code for detail in self.details]


def age_ms(time_ms: int | None, now_ms: int) -> int | None:
    """Return how long ago a time is (ms): 0 for a time in the future, None for None."""
    return None if time_ms is None else max(0, now_ms - time_ms)
