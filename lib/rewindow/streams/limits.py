"""Limits with names: what a task may use up before it is stopped with a sentence, and not by a dead worker.

They are set in the job's file, under ``limits:``, and change no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rewindow.errors import LimitError
from rewindow.streams.nodes import ProcessorNode, SinkNode
from rewindow.streams.record import UNKNOWN
from rewindow.streams.settings import Limits
from rewindow.streams.state.stores import Store
from rewindow.streams.task_context import TaskScope
from rewindow.streams.topology import SubTopology

CHECK_EVERY = 65_536
"""How many records go by until the stores are looked at again."""


def check_stores(part: SubTopology, stores: Mapping[str, Store], limits: Limits, scope: TaskScope) -> None:
    """Raise `LimitError` (71) if a store has more rows than it may."""
    for name, store in stores.items():
        if len(store) > limits.store_rows:
            nodes = [node.name for node in part.nodes if isinstance(node, ProcessorNode) and name in node.stores]
            raise passed("store_rows", limits.store_rows, f"the store {name!r} has {len(store)} rows", nodes, scope)


def passed(name: str, limit: int, what: str, nodes: Iterable[str], scope: TaskScope) -> LimitError:
    """Return the error of a limit that was passed; ``what`` says by what and how far."""
    message = (
        f"the limit {name} is {limit}, and {what} (node {', '.join(nodes)}, at {scope.moment}, partition "
        f"{scope.partition}). Find out why, or raise it in the job's file: limits: {{{name}: {2 * limit}}}"
    )
    return LimitError(message)


class Punctuations:
    """Counts the punctuations of an epoch."""

    def __init__(self, limits: Limits, scope: TaskScope) -> None:
        self._most, self._scope, self._count = limits.punctuations_per_epoch, scope, 0

    def add(self, node: str) -> None:
        """Count one. Raises `LimitError` (71) if it is one too many."""
        self._count += 1
        if self._count > self._most:
            what = f"schedules were called {self._count} times in this epoch"
            raise passed("punctuations_per_epoch", self._most, what, (node,), self._scope)

    def clear(self) -> None:
        """Begin another epoch."""
        self._count = 0


class Outputs:
    """Watches how many records reach one topic while one input record is handled."""

    __slots__ = ("_first", "_moment", "_most", "_node", "_offset", "_scope", "_topic")

    def __init__(self, node: SinkNode, limits: Limits, scope: TaskScope) -> None:
        self._node, self._most, self._scope, self._moment = node, limits.outputs_per_record, scope, scope.moment
        self._topic: str | None = None
        self._offset, self._first = UNKNOWN, 0

    def see(self, number: int) -> None:
        """Look at the number of the next record. Raises `LimitError` (71) if too many came since the same input was seen."""
        moment = self._moment
        if moment.offset != self._offset or moment.topic is not self._topic:
            self._topic, self._offset, self._first = moment.topic, moment.offset, number
        elif number - self._first >= self._most and moment.topic is not None:
            what = f"{number - self._first + 1} records came of one in the topic {self._node.topic!r}"
            raise passed("outputs_per_record", self._most, what, self._node.parents, self._scope)
