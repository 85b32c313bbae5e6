"""What every task of vectorized execution does with a batch before it aggregates: clocks, heads, keys, operands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from rewindow.contracts.tasks import Epoch
from rewindow.engine.worker.vectorized.arrays import Operand, numbers_of
from rewindow.engine.worker.vectorized.canonical_json import Texts
from rewindow.engine.worker.vectorized.clocks import Clocks
from rewindow.engine.worker.vectorized.folds import Operands
from rewindow.engine.worker.vectorized.keys import KeyTable, plain
from rewindow.engine.worker.vectorized.plan import Finals
from rewindow.engine.worker.vectorized.prefix_operators import apply_prefix, name_at
from rewindow.engine.worker.vectorized.slots import Array
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import NODE, SKIPPED_RECORDS, SUPPRESSION_EMIT, WINDOW_FINAL_EMIT
from rewindow.streams.record import UNKNOWN
from rewindow.streams.semantics import Semantics


class VectorizedTask(ABC):
    """One task of the execution. ``take`` batches, ``end_epoch``, and in the end write what changed."""

    newest_ms: int
    """The clock of the windows' store."""

    def __init__(self, plan: Finals, semantics: Semantics, state: TaskState | None) -> None:
        """Begin a task, or take up the small state of a checkpoint; its stores come later."""
        self.plan = plan
        self.clocks = Clocks(plan.topic, state, semantics)
        self.keys = KeyTable(plan.key)
        self.emitted = state.emitted.get(plan.sink.topic, 0) if state else 0

    def take(self, timestamps: Array, keys: Sequence[pa.Array], values: Mapping[int, pa.Array]) -> None:
        """Take a batch of records of the current epoch: timestamps, key columns, value columns by their place."""
        plan, clocks = self.plan, self.clocks
        highest = np.maximum.accumulate(timestamps)
        clocks.take(timestamps, np.maximum(highest, clocks.stream_time_ms))
        columns = {name_at(plan.log_value, place): column for place, column in values.items()}
        if plan.prefix:
            own = {"timestamp": pa.array(timestamps)}
            if plan.key.is_bare and "key" in plan.reads:
                own["key"] = plain(keys[0])
            mask, made = apply_prefix(plan.prefix, own, columns, len(timestamps))
            columns = dict(made)
            if mask is not None:
                timestamps, keys = timestamps[np.asarray(mask)], [column.filter(mask) for column in keys]
                columns = {name: column.filter(mask) for name, column in columns.items()}
                if len(timestamps) == 0:
                    return
                highest = np.maximum.accumulate(timestamps)
        numbers = self.keys.numbers(keys)
        types = plan.value.columns
        asked = {fold.operand for fold in plan.folds if fold.operand is not None}
        cells = [columns.get(name_at(plan.value, place)) for place in range(len(types))]
        operands: Operands = {
            one: one.of([cells[place] for place in one.places])
            if isinstance(one, Texts)
            else numbers_of(cells[one], types[one].type)
            for one in asked
        }
        if plan.key.is_bare and len(numbers) and numbers.min() < 0:
            with_key = np.flatnonzero(numbers >= 0)
            self._count(plan.window_node, SKIPPED_RECORDS, "null-key", len(numbers) - len(with_key))
            timestamps, numbers = timestamps[with_key], numbers[with_key]
            operands = of_rows(operands, with_key)
            highest = np.maximum.accumulate(timestamps)
        if len(timestamps):
            self._aggregate(timestamps, highest, numbers, operands)

    @abstractmethod
    def end_epoch(self, epoch: Epoch) -> list[pa.Array]:
        """End an epoch; return the columns of what leaves in it: keys, window bounds, results, timestamps."""

    @property
    @abstractmethod
    def held(self) -> int:
        """How many entries the buffer of a suppress holds."""

    @abstractmethod
    def _aggregate(self, timestamps: Array, highest: Array, numbers: Array, operands: Operands) -> None:
        """Take records that have a key."""

    def _told(self, epoch: Epoch) -> None:
        """Move the nodes' clocks to what an epoch's end tells them."""
        told_ms = self.clocks.end_epoch(epoch)
        if told_ms != UNKNOWN:
            self.clocks.observe(self.plan.window_node, told_ms)
            self.clocks.observe(self.plan.closing_node, told_ms)

    def _count_emitted(self, number: int) -> None:
        """Count final results that leave."""
        name = SUPPRESSION_EMIT if self.plan.suppress else WINDOW_FINAL_EMIT
        emit = self.clocks.metrics.measure(NODE, self.plan.closing_node, name)
        emit.record()
        emit.record_many(number - 1, number - 1, 1, 1)
        self.emitted += number

    def _count(self, node: str, name: str, reason: str, times: int) -> None:
        self.clocks.metrics.measure(NODE, node, name, reason).record_many(times, times, 1, 1)


def of_rows(operands: Operands, rows: Array) -> Operands:
    """Return some rows of the operands."""
    return {
        place: Operand(values[rows], None if valid is None else valid[rows])
        for place, (values, valid) in operands.items()
    }
