"""The protocols that `land` needs from Spark and Delta, and its request, report and call as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Protocol

from rewindow.contracts.ingest import FeedSpec, LogSpec, ReadWindow, SourceLook
from rewindow.contracts.landing_protocol import LandingEngine
from rewindow.control.ingest.feed_definition import LogSchema
from rewindow.control.ingest.feed_progress import Progress
from rewindow.control.ingest.generations import Generation
from rewindow.control.ingest.landings import Landing
from rewindow.control.ingest.watermarks import HeldFile
from rewindow.control.ledger_steps import Ledger
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.spec import Attempt
from rewindow.errors import ReasonMessage, WarningMessage


class LostRows(NamedTuple):
    """Rows that a landing sent to the quarantine, and the path of their file, which is gone."""

    path: str
    rows: int


class LandingTables(Ledger[Sequence[LedgerRow]], Protocol):
    """The tables of feeds. The state of a landing ledger is its rows."""

    warehouse: str

    def prepare(self, feed: str, logs: Mapping[str, LogSchema]) -> None:
        """Check the tables before a landing is executed. Raises an error if the landing could not be published."""
        ...

    def publish_steps(self, feed: str, lost: list[LostRows] | None = None) -> Iterator[str]:
        """Publish the landings in the ledger to log tables and quarantine; yield the name of each commit before making it.

        ``lost``: lost rows of the quarantine are added to this list, and given up. Without it, they keep waiting to be published.
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

    ``until_ms``: land only intervals that end by then (default: now). ``watermark_ms`` declares the watermark of the last
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
class LandReport:
    """The result of a call: the landings' numbers, their total counts, and the feed's watermark (epoch ms, -1: none).

    ``was_interrupted``: an earlier call started this generation and died before its landings were published; this call only
    published them.
    """

    feed: str
    generation: int
    watermark_ms: int
    landings: tuple[int, ...] = ()
    rows: int = 0
    quarantined: int = 0
    behind: int = 0
    unarrived: int = 0
    """The number of quarantined rows without an arrival."""
    enforced: int = 0
    was_interrupted: bool = False
    warnings: tuple[WarningMessage, ...] = ()
    """Warnings about probable mistakes: see `control.ingest.landing_warnings`."""
    orders: tuple[ReasonMessage, ...] = ()
    """In the first landings of a generation: the rule that orders records, for logs whose records cannot be late in a landing."""
    waiting: ReasonMessage | None = None
    """Why nothing was landed, or why some intervals that are over were not. For example, rows wait for the end of an interval."""
    held_ms: int = 0
    """If the output of a job was landed: how long (ms) the job may hold rows back. The watermark is lower by this time."""

    @classmethod
    def of(cls, feed: str, landings: Sequence[Landing], *, was_interrupted: bool = False) -> LandReport:
        """Return the report of some landings of one generation."""
        counts = [landing.counts or {} for landing in landings]
        return cls(
            feed,
            landings[-1].generation,
            landings[-1].watermark_ms,
            tuple(landing.number for landing in landings),
            held_ms=landings[-1].held_ms,
            rows=sum(count.get("rows", 0) for count in counts),
            quarantined=sum(count.get("quarantined", 0) for count in counts),
            behind=sum(count.get("behind", 0) for count in counts),
            unarrived=sum(count.get("unarrived", 0) for count in counts),
            enforced=sum(count.get("enforced", 0) for count in counts),
            was_interrupted=was_interrupted,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values. Unknown or absent values are None."""
        watermark_ms = None if self.watermark_ms < 0 else self.watermark_ms
        codes = [warning.code for warning in self.warnings]
        waiting_code = self.waiting.code if self.waiting else None
        return {
            **asdict(self),
            "warning_codes": codes,
            "watermark_ms": watermark_ms,
            "order_codes": [order.code for order in self.orders],
            "waiting_code": waiting_code,
        }


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
