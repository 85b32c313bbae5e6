"""What `land` needs of Spark and Delta, what it is asked, and one call of it as a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from rewindow.contracts.ingest import (
    Block,
    FeedSpec,
    Intervals,
    LogColumns,
    LogSpec,
    LogWrite,
    ReadWindow,
    SourceLook,
    SourceSpec,
)
from rewindow.control.ingest.generations import Generation
from rewindow.control.ingest.landings import LogSchema
from rewindow.control.ingest.progress import Progress
from rewindow.control.ingest.watermarks import HeldFile
from rewindow.control.plan.branches import LedgerRow
from rewindow.control.plan.spec import Attempt


class LandingEngine(Protocol):
    """Where sources are read and logs written. Relative paths of sources are below ``project_root``."""

    project_root: str

    def look(self, spec: SourceSpec, position: Mapping[str, Any] | None) -> SourceLook:
        """Return a source of files as it is now, against the position that is landed."""
        ...

    def check_unchanged(self, spec: SourceSpec, look: SourceLook) -> None:
        """Raise if files were changed since they were looked at."""
        ...

    def columns(self, spec: LogSpec, look: SourceLook) -> LogColumns:
        """Decide the typed columns of a log."""
        ...

    def intervals(
        self, spec: LogSpec, columns: LogColumns, look: SourceLook, window: ReadWindow, intervals: Intervals
    ) -> set[int | None]:
        """Return the starts of the intervals in which due rows arrived; None stands for rows without an arrival."""
        ...

    def first_above(self, spec: LogSpec, partition: int, offsets: tuple[int, int], time_ms: int) -> int | None:
        """Return the first of the offsets ``[first, end)``, as the source has them, with a timestamp above a time.

        It is asked of logs that are not copied.
        """
        ...

    def write(self, write: LogWrite, look: SourceLook, window: ReadWindow) -> list[Block]:
        """Write the due rows as staged files; return what each landing got in each partition."""
        ...


class LandingTables(Protocol):
    """Where the truth is."""

    warehouse: str

    def rows(self, feed: str) -> list[LedgerRow]:
        """Return the feed's landing ledger."""
        ...

    def append(self, feed: str, rows: Sequence[LedgerRow]) -> bool:
        """Append ledger rows at once; whether it is these rows that stand at their numbers now."""
        ...

    def prepare(self, feed: str, logs: Mapping[str, LogSchema]) -> None:
        """Make the tables that a landing will be published to, or raise if it could not be."""
        ...

    def publish_steps(self, feed: str) -> Iterator[str]:
        """Bring log tables and quarantine up to the ledger; yield before each commit."""
        ...

    def look(self, spec: LogSpec, position: Mapping[str, Any] | None, window: ReadWindow) -> SourceLook:
        """Return a source that is a table as it is now, against the position that is landed."""
        ...

    def roots(self, feed: str, topic: str) -> tuple[str, str]:
        """Return the folders of a topic's log and of the quarantine."""
        ...

    def first_above(self, feed: str, file: HeldFile, offset: int, time_ms: int) -> int | None:
        """Return the first offset of a file, from ``offset`` on, with a timestamp above a time."""
        ...

    def remove_orphans(self, feed: str, topics: Sequence[str], attempts: Sequence[str]) -> None:
        """Delete the files of attempts that can never land."""
        ...


@dataclass(frozen=True, slots=True)
class LandRequest:
    """What somebody asks for.

    ``until_ms``: intervals that end later are not complete yet (default: now). ``watermark_ms``: complete through, said
    of the last landing made. ``new_generation`` lands again, all but the first ``keep`` landings.
    """

    now_ms: int
    until_ms: int | None = None
    watermark_ms: int | None = None
    new_generation: bool = False
    keep: int = 0


@dataclass(frozen=True, slots=True)
class LandReport:
    """What a call landed: the landings' numbers, what they hold in all, and the feed's watermark (epoch ms, -1: none)."""

    feed: str
    generation: int
    watermark_ms: int
    landings: tuple[int, ...] = ()
    rows: int = 0
    quarantined: int = 0
    behind: int = 0
    enforced: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary that `json` can write."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LandPlan:
    """What `land` would do: which complete intervals it would go through, and how many pieces of each source are new.

    Pieces are files, of tables the files of new versions. ``intervals``: how many there are at most, -1 if only the rows
    can tell (a first landing); without ``every`` 1 or 0.
    """

    feed: str
    generation: int
    is_new_generation: bool
    landed: int
    through_ms: int | None
    until_ms: int | None
    intervals: int
    fresh: Mapping[str, int]

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary that `json` can write."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `land`: what is asked, where the feed stands, and under which generation it goes on."""

    feed: FeedSpec
    request: LandRequest
    progress: Progress
    generation: Generation
    attempt: Attempt
    tables: LandingTables
    engine: LandingEngine
