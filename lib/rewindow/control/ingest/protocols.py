"""The tables that `land` needs, and two values: a request to land, and one call of `land`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from rewindow.contracts.ingest import FeedSpec, LogSpec, ReadWindow, SourceLook
from rewindow.contracts.landing_protocol import LandingEngine
from rewindow.control.ingest.feed_progress import Progress
from rewindow.control.ingest.generations import Generation
from rewindow.control.ingest.landings import HeldFile, LogSchema
from rewindow.control.ledger_steps import Ledger
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.spec import Attempt


class LostRows(NamedTuple):
    """Rows that a landing sent to the quarantine and that are lost, with the path of the missing file."""

    path: str
    rows: int


class LandingTables(Ledger[Sequence[LedgerRow]], Protocol):
    """The tables of feeds. The ledger state of a feed is the list of its landing ledger's rows."""

    warehouse: str

    def prepare(self, feed: str, logs: Mapping[str, LogSchema]) -> None:
        """Check the tables before a landing is executed. Raises an error if the landing could not be published."""
        ...

    def publish_steps(self, feed: str, lost: list[LostRows] | None = None) -> Iterator[str]:
        """Publish the landings in the ledger to log tables and quarantine; yield the name of each commit before making it.

        Quarantine rows whose files are gone are added to ``lost``, and never published. Without ``lost``, they keep waiting.
        """
        ...

    def look(self, spec: LogSpec, position: Mapping[str, Any] | None, window: ReadWindow) -> SourceLook:
        """Inspect a source that is a table, relative to the landed position."""
        ...

    def roots(self, feed: str, topic: str) -> tuple[str, str]:
        """Return the folders of a topic's log and of the quarantine."""
        ...

    def first_above(self, feed: str, file: HeldFile, offset: int, time_ms: int) -> int | None:
        """Return the first offset of a file, from ``offset`` on, whose timestamp is above a time; None if there is none."""
        ...

    def remove_orphans(self, feed: str, topics: Sequence[str], attempts: Sequence[str]) -> None:
        """Delete the files of attempts that can no longer commit."""
        ...


@dataclass(frozen=True, slots=True)
class LandRequest:
    """A request to land.

    ``until_ms``: land only intervals that end by this time (default: now). ``watermark_ms`` declares the watermark of the last
    landing. ``new_generation`` lands everything again except the first ``keep`` landings. ``extractors``: the versions of the
    functions that extract event times, by name.
    """

    now_ms: int
    until_ms: int | None = None
    watermark_ms: int | None = None
    new_generation: bool = False
    keep: int = 0
    extractors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `land`: the request, the feed's progress, and the generation to land."""

    feed: FeedSpec
    request: LandRequest
    progress: Progress
    generation: Generation
    attempt: Attempt
    tables: LandingTables
    engine: LandingEngine
