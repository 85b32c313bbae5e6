"""The node of `KStream.split`, which sends each record to one branch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rewindow.streams.processor import Processor
from rewindow.streams.record import Record, To


@dataclass(frozen=True, slots=True)
class Split:
    """Send a record to the first branch whose ``predicate(key, value)`` is true, or nowhere.

    ``branches`` has the predicate and the node of each branch; it grows while the topology is built.
    """

    keeps_key: ClassVar[bool] = True

    branches: list[tuple[Callable[[Any, Any], bool], str]] = field(default_factory=list)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"split({', '.join(child for _, child in self.branches)})"

    def __call__(self) -> Processor:
        return _Split([(predicate, To.child(child)) for predicate, child in self.branches])


class _Split(Processor):
    def __init__(self, branches: list[tuple[Callable[[Any, Any], bool], To]]) -> None:
        self._branches = branches

    def process(self, record: Record) -> None:
        for predicate, to in self._branches:
            if predicate(record.key, record.value):
                self.context.forward(record, to=to)
                return
