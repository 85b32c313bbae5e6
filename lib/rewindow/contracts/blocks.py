"""What `land` wrote: the blocks of a landing, one for each of its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rewindow.contracts.staged_files import StagedFile


@dataclass(frozen=True, slots=True)
class Block:
    """The offsets ``[start, end)`` that one landing wrote to one partition.

    ``max_timestamp`` is the largest of the partition so far. ``behind`` counts rows, landed or rejected, that became
    visible after their interval was landed.
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
    """Why the first quarantined record was rejected."""
    base: int = 0
    """The source's offset that corresponds to offset 0, if the source has its own offsets."""
    flat: Mapping[str, str | None] | None = None
    """The columns with one value in all rows, as text (None: only nulls). None if unknown."""
    unarrived: int = 0
    """Rows that should have an arrival and have none. All of them are quarantined."""
    keyless: int = 0
    """Landed records whose key is null."""
    keyless_at: tuple[int, ...] = ()
    """The offsets of the first of them."""

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
