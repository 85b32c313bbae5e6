"""The protocol between `land` and the engines that read sources and write logs, and the blocks that engines return.

A block is what one landing adds to one partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from rewindow.contracts.ingest import (
    Arrivals,
    Intervals,
    LogColumns,
    LogSpec,
    LogWrite,
    ReadWindow,
    SourceLook,
    SourceSpec,
)
from rewindow.contracts.source_fields import SourceFields
from rewindow.contracts.staged_files import StagedFile
from rewindow.errors import RewindowError


class LandingEngine(Protocol):
    """Reads sources and writes logs. Relative paths of sources start at ``project_root``."""

    project_root: str

    def look(self, spec: SourceSpec, position: Mapping[str, Any] | None) -> SourceLook:
        """Inspect a source of files, relative to the landed position (None: nothing is landed)."""
        ...

    def check_unchanged(self, spec: SourceSpec, look: SourceLook) -> None:
        """Raise `SourceError` (66) if files changed since the source was inspected."""
        ...

    def wrong_columns(self, spec: LogSpec, look: SourceLook) -> RewindowError | None:
        """Return the error in the columns that the configuration names, or None. Reads only headers and footers of files."""
        ...

    def columns(self, spec: LogSpec, look: SourceLook) -> LogColumns:
        """Decide the typed columns of a log."""
        ...

    def fields(self, spec: LogSpec, columns: LogColumns, look: SourceLook) -> SourceFields:
        """Return the fields of a log's schema and of files: the new files, or all files if no file is landed."""
        ...

    def intervals(
        self, spec: LogSpec, columns: LogColumns, look: SourceLook, window: ReadWindow, intervals: Intervals
    ) -> Arrivals:
        """Return the arrival intervals of the rows that are not landed."""
        ...

    def later(self, spec: LogSpec, columns: LogColumns, look: SourceLook, until_ms: int) -> Mapping[str, int]:
        """Return the first arrival (epoch ms) at or after ``until_ms`` in each inspected file that has such rows, by file."""
        ...

    def first_above(self, spec: LogSpec, partition: int, offsets: tuple[int, int], time_ms: int) -> int | None:
        """Return the first of the source offsets ``[first, end)`` with a timestamp above a time; None if there is none.

        Used for logs with source offsets, which `land` does not copy.
        """
        ...

    def write(self, write: LogWrite, look: SourceLook, window: ReadWindow) -> list[Block]:
        """Write the due rows to staged files. Return a block for each landing and partition."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """What one landing wrote to one partition: the offsets ``[start, end)``.

    ``max_timestamp`` is the largest timestamp of the partition so far. ``behind`` is the number of rows, landed or
    quarantined, that became visible after their interval was landed.
    """

    landing: int
    partition: int
    start: int
    end: int
    max_timestamp: int
    behind: int
    quarantined: int
    files: tuple[StagedFile, ...]
    quarantine: tuple[StagedFile, ...]
    refused: str = ""
    """Why the first quarantined record was quarantined."""
    base: int = 0
    """If the source has its own offsets: the source's offset of the record that has offset 0 in the log."""
    flat: Mapping[str, str | None] | None = None
    """The columns that have the same value in all rows: maps each to this value as text (None for null). None if unknown."""
    unarrived: int = 0
    """The number of rows without an arrival although the feed needs one. All of them are quarantined."""
    keyless: int = 0
    """The number of landed records whose key is null."""
    keyless_at: tuple[int, ...] = ()
    """The offsets of the first records whose key is null."""

    def as_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Block:
        """Return the value that `as_json` serialized."""
        files, quarantine = (_staged(data[part]) for part in ("files", "quarantine"))
        return cls(
            **{**data, "files": files, "quarantine": quarantine, "keyless_at": tuple(data.get("keyless_at", ()))}
        )


def _staged(files: Sequence[Mapping[str, Any]]) -> tuple[StagedFile, ...]:
    return tuple(StagedFile.from_json(file) for file in files)
