"""The epochs of another job, as a feed of its outputs lands them. Times are epoch milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rewindow.streams.record import UNKNOWN


class EpochTimes(NamedTuple):
    """The watermark of another job's epoch, and how long its rows may have been held back, in ms."""

    watermark_ms: int
    held_ms: int

    @property
    def complete_ms(self) -> int:
        """The time through which the rows of the epoch, and of those before it, are all there are (-1: none)."""
        return max(self.watermark_ms - self.held_ms, UNKNOWN)


@dataclass(frozen=True, slots=True)
class ProducedEpoch:
    """An epoch that another job committed: its watermark (epoch ms), its run and the identity of the job's ledger.

    ``held_ms``: how long the job may hold a row of the output back (ADR-133).
    """

    number: int
    watermark_ms: int
    run: int
    ledger: str = ""
    held_ms: int = 0
    may_have_rows: bool = True
    """False if the output certainly has no row of it, nor of a later epoch."""

    @property
    def times(self) -> EpochTimes:
        """The watermark, and by how much that of its landing is lower."""
        return EpochTimes(self.watermark_ms, self.held_ms)
