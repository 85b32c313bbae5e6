"""The base of vectorized joins. It advances clocks, applies prefix operators, numbers keys and orders the records of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import Epoch, SubTopologyWork, TaskWork
from rewindow.engine.worker.arrow_rows import decode
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.vectorized.arrays import Array, UnfitError
from rewindow.engine.worker.vectorized.batches import Batch, Merged
from rewindow.engine.worker.vectorized.joins.value_rows import ValueRows, taken
from rewindow.engine.worker.vectorized.keys import KeyTable
from rewindow.engine.worker.vectorized.plans import JoinPlan
from rewindow.engine.worker.vectorized.prefix_operators import apply_prefix
from rewindow.engine.worker.vectorized.vectorized_task import Clocks
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import NODE, SKIPPED_RECORDS
from rewindow.streams.settings import Limits, Semantics

LATEST_MS = 2**45
"""The largest timestamp (in the year 3084) for which sums of times certainly fit into 64 bits."""
MOST_BYTES = 2**30
"""The most bytes of memory for stores, even if the limit ``store_memory`` is larger, because an Arrow array has at most 2 GB."""
ROW_BYTES = 100
"""The estimated memory (bytes) of a stored row, without its value: for its key, times and numbers."""


class Arrivals(NamedTuple):
    """Records that reach a join, in the task's order. Each array has one item per record."""

    positions: Array
    """The position in the task's order. Records with the same position were made from one record by prefix operators."""
    times: Array
    keys: Array
    """The number of each record's key; -1 for null."""
    is_left: Array
    has_value: Array
    rows: Array
    """The index of each record's value among the rows of its input's value columns."""
    columns: tuple[Sequence[pa.Array], Sequence[pa.Array]]
    """The value columns of the left and of the right input."""


class Joined(NamedTuple):
    """Results of a join, in order."""

    keys: Array
    """The number of each result's key; -1 for null."""
    values: Iterator[Any]
    """The values of the results. The iterator calls code of the job for each value, and may raise any exception."""
    times: Array
    orders: Array
    """The order key of each result (L1)."""
    positions: Array
    """The position of the record that sends the result; -1 at the end of an epoch."""


class JoinTask(ABC):
    """A vectorized join. Callers call `take` for merged batches, `end_epoch` after each epoch, and finally `stage`."""

    def __init__(self, plan: JoinPlan, semantics: Semantics, state: TaskState | None, limits: Limits) -> None:
        """Start a task, or resume it from the state of a checkpoint. Its stores are restored later, by `restore`."""
        self.plan, self.limits = plan, limits
        self.clocks = Clocks([join_input.topic for join_input in plan.inputs], state, semantics, plan.lag_ms)
        self.keys = KeyTable(plan.key)

    def take(self, merged: Merged) -> Iterator[Joined]:
        """Process records; yield the results. Raises `UnfitError` if record execution must run the task."""
        self.clocks.take(merged.timestamps, merged.ranks)
        if merged.timestamps.max() > LATEST_MS:
            raise UnfitError
        arrivals = self._arrivals(merged)
        if len(arrivals.positions):
            yield from self._join(arrivals, merged.orders)
            self._check_memory()

    def key_values(self, numbers: Array) -> list[Any]:
        """Return the keys with the given numbers, as Python values."""
        return list(decode(self.plan.key, self.keys.columns(numbers), len(numbers)))

    @property
    @abstractmethod
    def store_clocks(self) -> dict[str, int]:
        """The clocks of the stores."""

    @abstractmethod
    def restore(self, work: SubTopologyWork, task_work: TaskWork) -> None:
        """Restore the stores."""

    @abstractmethod
    def end_epoch(self, epoch: Epoch) -> Iterator[Joined]:
        """End an epoch; yield the results that it sends."""

    @abstractmethod
    def stage(self, targets: dict[str, StagingTarget], *, partition: int, run: int) -> list[StagedFile]:
        """Stage the changes of the stores."""

    @abstractmethod
    def _join(self, arrivals: Arrivals, orders: Array) -> Iterator[Joined]:
        """Join records that reach the node."""

    @abstractmethod
    def _stored(self) -> Sequence[tuple[int, ValueRows]]:
        """Return, for each store, the number of its rows and the `ValueRows` with their values."""

    def _arrivals(self, merged: Merged) -> Arrivals:
        parts = [self._part(rank, batch) for rank, batch in enumerate(merged.parts)]
        if self.plan.left:
            parts.reverse()
        arrays = [[part[n] for part in parts] for n in range(5)]
        positions = np.concatenate(arrays[0])
        order = np.argsort(positions, kind="stable")
        is_left = np.repeat([True, False], [len(part[0]) for part in parts])
        positions, times, keys, has_value, rows = (np.concatenate(some)[order] for some in arrays)
        return Arrivals(positions, times, keys, is_left[order], has_value, rows, (parts[0][5], parts[1][5]))

    def _part(self, rank: int, batch: Batch) -> tuple[Array, Array, Array, Array, Array, list[pa.Array]]:
        """Return the records of an input that its prefix lets through. The prefix is the operators between topic and join.

        The result has the positions, times and key numbers of these records, a mask of those that have a value, the index of
        each record's value in the value columns, and the value columns.
        """
        join_input, count = self.plan.inputs[rank], len(batch.timestamps)
        none = np.empty(0, np.int64)
        if count and join_input.prefix:
            batch = apply_prefix(
                join_input.prefix, batch, reads_key=join_input.key.is_bare and "key" in join_input.reads
            )
            count = len(batch.timestamps)
        if count == 0 or batch.positions is None:
            return none, none, none, np.empty(0, np.bool_), none, []
        columns = [batch.columns[name] for name in join_input.names]
        has_value = np.asarray(columns[0].is_valid()) if join_input.value.is_bare else np.ones(count, np.bool_)
        return batch.positions, batch.timestamps, self.keys.numbers(batch.keys), has_value, np.arange(count), columns

    def _joined_values(self, keys: Array, lefts: Sequence[Any], rights: Sequence[Any]) -> Iterator[Any]:
        """Call the joiner for each pair of values."""
        supplier: Any = self.plan.supplier
        joiner = supplier.joiner
        return (joiner(key, left, right) for key, left, right in zip(self.key_values(keys), lefts, rights, strict=True))

    def _values(self, arrivals: Arrivals, rows: Array, *, is_left: bool) -> list[Any]:
        """Return the values of some records of one input, as Python values. ``rows``: the indexes of the values."""
        if len(rows) == 0:
            return []
        shape = self.plan.inputs[self.plan.left if is_left else 1 - self.plan.left].value
        return list(decode(shape, taken(arrivals.columns[0 if is_left else 1], rows), len(rows)))

    def _count(self, node: str, reason: str, times: int) -> None:
        """Add ``times`` to the metric of the records that a node skipped for this reason."""
        if times:
            self.clocks.metrics.measure(NODE, node, SKIPPED_RECORDS, reason).record_many(times, times, 1, 1)

    def _check_memory(self) -> None:
        """Raise `UnfitError` if the stores need so much memory that record execution would spill them to disk or fail."""
        most = min(self.limits.store_memory, MOST_BYTES)
        stored = self._stored()
        size = sum(values.bytes + ROW_BYTES * rows for rows, values in stored)
        if size > most or any(rows > self.limits.store_rows for rows, _ in stored):
            raise UnfitError
