"""Join a stream with a table, or two tables by key, in batches: the equivalent of `streams.task` with the record operators.

Why this is exact (L4): a record is joined with the row that the table has for the record's key just before the record
(`dsl.operators.stream_table_join`). In a batch that is sorted by key and order, the update that set this row directly
precedes the record. If the batch has no such update, the row is the one that the table had before the batch. An update of a
table is joined with the other table's row in the same way. The old value of the update is the row that its own table has for
the key just before the update (`dsl.operators.table_join`). `KeptTable.before` finds both rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import Epoch, SubTopologyWork, TaskWork
from rewindow.dsl.operators.table_join import TableJoinSide
from rewindow.engine.worker.changelog_reader import Restore
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.vectorized.arrays import Array
from rewindow.engine.worker.vectorized.joins.join_task import Arrivals, Joined, JoinTask
from rewindow.engine.worker.vectorized.joins.value_rows import NO_ROW, KeptTable, Updates, ValueRows
from rewindow.engine.worker.vectorized.plans import JoinPlan
from rewindow.engine.worker.vectorized.window_results import write_changes
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.record import UNKNOWN
from rewindow.streams.settings import Limits, Semantics


class _KeptTablesTask(JoinTask):
    """A join with one or two tables that topics fill. ``tables`` maps the input (True: left, False: right) to its table."""

    def __init__(self, plan: JoinPlan, semantics: Semantics, state: TaskState | None, limits: Limits) -> None:
        """See `JoinTask`."""
        super().__init__(plan, semantics, state, limits)
        inputs = {True: plan.inputs[plan.left], False: plan.inputs[1 - plan.left]}
        self.tables = {table.is_left: KeptTable(self.keys, inputs[table.is_left].value) for table in plan.tables}

    @property
    def store_clocks(self) -> dict[str, int]:
        """See `JoinTask`."""
        return dict.fromkeys(self.plan.stores, UNKNOWN)

    def restore(self, work: SubTopologyWork, task_work: TaskWork) -> None:
        """See `JoinTask`. Restores only rows with keys that the task can look up."""
        code = work.code
        part = code.topology.sub_topologies()[work.sub_topology]
        restore = Restore(task_work, code.topology, part, code.load_logs())
        for table in self.plan.tables:
            store = self.plan.stores[table.store]
            batches = restore.batches(store.builder, *store.shapes)
            self.tables[table.is_left].restore(batches, len(self.plan.key.columns))
        self._check_memory()

    def end_epoch(self, epoch: Epoch) -> Iterator[Joined]:
        """See `JoinTask`. Yields nothing, because no record waits for a partner."""
        self.clocks.end_epoch(epoch)
        return iter(())

    def stage(self, targets: dict[str, StagingTarget], *, partition: int, run: int) -> list[StagedFile]:
        """See `JoinTask`."""
        staged: list[StagedFile] = []
        of_store = {table.store: self.tables[table.is_left] for table in self.plan.tables}
        for name, store in self.plan.stores.items():
            columns, is_gone = of_store[name].changes()
            staged += write_changes(targets[name], store.shapes, columns, is_gone, partition=partition, run=run)
        return staged

    def _stored(self) -> Sequence[tuple[int, ValueRows]]:
        return [(table.peak, table.values) for table in self.tables.values()]

    def _count_null_keys(self, arrivals: Arrivals) -> None:
        """Count the records that tables skip because they have no key."""
        for table in self.plan.tables:
            is_skipped = (arrivals.is_left == table.is_left) & (arrivals.keys < 0)
            self._count(table.node, "null-key", int(np.count_nonzero(is_skipped)))

    def _updates(self, table: KeptTable, arrivals: Arrivals, own: Array, *, is_left: bool) -> Updates:
        """Return the updates of a table. Add their values to the values of the table.

        ``own``: the indexes of the table's records that have a key.
        """
        rows = np.full(len(own), NO_ROW)
        if len(own):
            added = table.values.add(arrivals.columns[0 if is_left else 1])
            rows = np.where(arrivals.has_value[own], added[arrivals.rows[own]], NO_ROW)
        return Updates(own, rows, arrivals.times[own])


class TableJoinTask(_KeptTablesTask):
    """A join of a stream (left) with a table (right)."""

    def _join(self, arrivals: Arrivals, orders: Array) -> Iterator[Joined]:
        left, keys, table = arrivals.is_left, arrivals.keys, self.tables[False]
        supplier: Any = self.plan.supplier
        keeps_left = supplier.keeps_left
        self._count_null_keys(arrivals)
        skipped = left & ~(arrivals.has_value & ((keys >= 0) | keeps_left))
        self._count(self.plan.node, "null-key", int(np.count_nonzero(skipped & (keys < 0))))
        self._count(self.plan.node, "null-value", int(np.count_nonzero(skipped & (keys >= 0))))

        updates = self._updates(table, arrivals, np.flatnonzero(~left & (keys >= 0)), is_left=False)
        joining = np.flatnonzero(left & ~skipped)
        rows = np.full(len(joining), NO_ROW)
        has_key = keys[joining] >= 0
        rows[has_key], _ = table.before(joining[has_key], updates, keys)
        table.take(updates, keys)
        sent, rows = (joining, rows) if keeps_left else (joining[rows != NO_ROW], rows[rows != NO_ROW])
        if len(sent):
            lefts = self._values(arrivals, arrivals.rows[sent], is_left=True)
            values = self._joined_values(keys[sent], lefts, table.values_of(rows))
            positions = arrivals.positions[sent]
            yield Joined(keys[sent], values, arrivals.times[sent], orders[positions], positions)
        table.compact()


class TablesJoinTask(_KeptTablesTask):
    """A join of two tables. The updates of the joined table are sent as a stream."""

    def _join(self, arrivals: Arrivals, orders: Array) -> Iterator[Joined]:
        keys, is_left = arrivals.keys, arrivals.is_left
        self._count_null_keys(arrivals)
        updates = {
            of_left: self._updates(table, arrivals, np.flatnonzero((is_left == of_left) & (keys >= 0)), is_left=of_left)
            for of_left, table in self.tables.items()
        }
        parts = [
            self._sent(arrivals, updates, joined.updates, of_left=joined.is_left)
            for joined in self.plan.tables
            if joined.updates
        ]
        for of_left, table in self.tables.items():
            table.take(updates[of_left], keys)
        at_arrivals = np.concatenate([part.at for part in parts])
        order = np.argsort(at_arrivals, kind="stable")
        if len(order):
            changes = [change for part in parts for change in part.changes]
            results = _results([changes[index] for index in order.tolist()])
            times, positions = np.concatenate([part.times for part in parts]), arrivals.positions[at_arrivals[order]]
            yield Joined(keys[at_arrivals[order]], results, times[order], orders[positions], positions)
        for table in self.tables.values():
            table.compact()

    def _sent(self, arrivals: Arrivals, updates: dict[bool, Updates], joins: TableJoinSide, *, of_left: bool) -> _Sent:
        """Return the updates of one table that send results: the joined table has, or had, a row for their keys."""
        own, keys = updates[of_left], arrivals.keys
        table, other = self.tables[of_left], self.tables[not of_left]
        old_rows, _ = table.before(own.at, own, keys)
        rows, row_times = other.before(own.at, updates[not of_left], keys)
        has_row = rows != NO_ROW
        is_sent = has_row | (joins.keeps_own & ((own.rows != NO_ROW) | (old_rows != NO_ROW)))
        at_arrivals = own.at[is_sent]
        values = self._values(arrivals, arrivals.rows[at_arrivals], is_left=of_left)
        olds, others = table.values_of(old_rows[is_sent]), other.values_of(rows[is_sent])
        times = np.where(has_row, np.maximum(own.times, row_times), own.times)[is_sent]
        sent_keys = self.key_values(keys[at_arrivals])
        changes = [_Change(joins, *change) for change in zip(sent_keys, values, olds, others, strict=True)]
        return _Sent(at_arrivals, times, changes)


class _Change(NamedTuple):
    """An update to join: its key, its new and old value, and the value in the other table. None stands for a missing row."""

    joins: TableJoinSide
    key: Any
    new: Any
    old: Any
    other: Any


class _Sent(NamedTuple):
    """The updates of one table that send results: their indexes in the batch, the times of the results, and the changes."""

    at: Array
    times: Array
    changes: list[_Change]


def _results(changes: Sequence[_Change]) -> Iterator[Any]:
    """Yield the new value of each result. The joiner is called for the old value, too, because it may raise an error."""
    for joins, key, new, old, other in changes:
        result = joins.joined(key, new, other)
        joins.joined(key, old, other)
        yield result
