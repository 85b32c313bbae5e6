"""Resource limits of a task. A task that exceeds a limit stops with a clear error before its worker process dies.

The limits are set in the job's file, under ``limits:``. They do not affect results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rewindow.errors import LimitError
from rewindow.streams.nodes import ProcessorNode, SinkNode
from rewindow.streams.record import UNKNOWN
from rewindow.streams.settings import Limits
from rewindow.streams.state.stores import Store
from rewindow.streams.task_context import TaskContext
from rewindow.streams.topology import SubTopology

CHECK_EVERY = 65_536
"""The number of records between two checks of the stores."""


def check_stores(part: SubTopology, stores: Mapping[str, Store], limits: Limits, task_context: TaskContext) -> None:
    """Raise `LimitError` (71) if a store has more rows than allowed."""
    for name, store in stores.items():
        if len(store) > limits.store_rows:
            nodes = [node.name for node in part.nodes if isinstance(node, ProcessorNode) and name in node.stores]
            raise passed(
                "store_rows", limits.store_rows, f"the store {name!r} has {len(store)} rows", nodes, task_context
            )


def passed(name: str, limit: int, excess: str, nodes: Iterable[str], task_context: TaskContext) -> LimitError:
    """Return the error for an exceeded limit. ``excess``: the part of the message that says what exceeded the limit."""
    return LimitError(
        "task-limit-exceeded",
        "the limit {limit} is {value}, and {excess} (node {nodes}, at {position}, partition {partition}). Find the "
        "cause, or raise the limit in the job's file: limits: {{{limit}: {suggested}}}",
        limit=name,
        value=limit,
        excess=excess,
        nodes=", ".join(nodes),
        position=str(task_context.record_context),
        partition=task_context.partition,
        suggested=2 * limit,
    )


class Punctuations:
    """Counts the punctuations of an epoch."""

    def __init__(self, limits: Limits, task_context: TaskContext) -> None:
        self._most, self._task_context, self._count = limits.punctuations_per_epoch, task_context, 0

    def add(self, node: str) -> None:
        """Count one punctuation of a node. Raises `LimitError` (71) if the epoch now exceeds the limit."""
        self._count += 1
        if self._count > self._most:
            excess = f"schedules were called {self._count} times in this epoch"
            raise passed("punctuations_per_epoch", self._most, excess, (node,), self._task_context)

    def clear(self) -> None:
        """Reset the count, for the next epoch."""
        self._count = 0


class Outputs:
    """Counts the records that reach one topic while one input record is handled."""

    __slots__ = ("_first", "_most", "_node", "_offset", "_record_context", "_task_context", "_topic")

    def __init__(self, node: SinkNode, limits: Limits, task_context: TaskContext) -> None:
        self._node, self._most, self._task_context, self._record_context = (
            node,
            limits.outputs_per_record,
            task_context,
            task_context.record_context,
        )
        self._topic: str | None = None
        self._offset, self._first = UNKNOWN, 0

    def see(self, number: int) -> None:
        """Check the next output, given its number in the topic. Raises `LimitError` (71) if one input record caused too many."""
        record_context = self._record_context
        if record_context.offset != self._offset or record_context.topic is not self._topic:
            self._topic, self._offset, self._first = record_context.topic, record_context.offset, number
        elif number - self._first >= self._most and record_context.topic is not None:
            excess = f"one record caused {number - self._first + 1} records in the topic {self._node.topic!r}"
            raise passed("outputs_per_record", self._most, excess, self._node.parents, self._task_context)
