"""The node below the inputs of a cogroup, which merges their results.

Each input has an aggregate node of its own, with its own aggregator. All of them share one store. Above a final result they
also share the clock of this node, which then follows the watermark for all of them (D10).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rewindow.streams.processor import Processor
from rewindow.streams.record import Record


@dataclass(frozen=True, slots=True)
class CogroupMerge:
    """Pass the results of all inputs on."""

    keeps_key: ClassVar[bool] = True

    clock: str | None = None
    """The name of this node, if the inputs share its clock."""

    def __call__(self) -> Processor:
        return _Merge() if self.clock is None else _Clocked()

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "cogroup_merge"


class _Merge(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record)


class _Clocked(_Merge):
    def on_watermark(self, watermark_ms: int) -> None:
        self.context.observe(watermark_ms)
