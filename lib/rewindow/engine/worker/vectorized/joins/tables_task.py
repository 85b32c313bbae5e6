"""Join two tables by key in batches: the equivalent of `streams.task` with two `TableJoinSide`.

Why this is exact (L4): an update is joined with the row that the last update of the other table before it left, and its old
value is what the last update of its own table before it left (`dsl.operators.table_join`). `KeptTable.before` finds both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rewindow.dsl.operators.table_join import TableJoinSide
from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.engine.worker.vectorized.joins.kept_table import NO_ROW, Updates
from rewindow.engine.worker.vectorized.joins.table_task import KeptTablesTask
from rewindow.engine.worker.vectorized.joins.task import Arrivals, Joined


class _Change(NamedTuple):
    """An update to be joined: its new and old value, and the other table's; None: there is no row."""

    joins: TableJoinSide
    new: Any
    old: Any
    other: Any


class _Sent(NamedTuple):
    """The updates of one table that send results: their indexes in the batch, the results' times, and the changes."""

    at: Array
    times: Array
    changes: list[_Change]


class TablesJoinTask(KeptTablesTask):
    """A join of two tables whose updates are sent as a stream."""

    def _join(self, arrivals: Arrivals, orders: Array) -> Iterator[Joined]:
        keys, is_left = arrivals.keys, arrivals.is_left
        self._count_null_keys(arrivals)
        updates = {
            of_left: self._updates(table, arrivals, np.flatnonzero((is_left == of_left) & (keys >= 0)), is_left=of_left)
            for of_left, table in self.tables.items()
        }
        parts = [
            self._sent(arrivals, updates, one.updates, of_left=one.is_left) for one in self.plan.tables if one.updates
        ]
        for of_left, table in self.tables.items():
            table.take(updates[of_left], keys)
        at = np.concatenate([part.at for part in parts])
        order = np.argsort(at, kind="stable")
        if len(order):
            changes = [change for part in parts for change in part.changes]
            results = _results([changes[index] for index in order.tolist()])
            times, positions = np.concatenate([part.times for part in parts]), arrivals.positions[at[order]]
            yield Joined(keys[at[order]], results, times[order], orders[positions], positions)
        for table in self.tables.values():
            table.compact()

    def _sent(self, arrivals: Arrivals, updates: dict[bool, Updates], joins: TableJoinSide, *, of_left: bool) -> _Sent:
        """Return the updates of one table whose result has or had a row."""
        own, keys = updates[of_left], arrivals.keys
        table, other = self.tables[of_left], self.tables[not of_left]
        old_rows, _ = table.before(own.at, own, keys)
        rows, row_times = other.before(own.at, updates[not of_left], keys)
        has_row = rows != NO_ROW
        is_sent = has_row | (joins.keeps_own & ((own.rows != NO_ROW) | (old_rows != NO_ROW)))
        at = own.at[is_sent]
        values = self._values(arrivals, arrivals.rows[at], is_left=of_left)
        olds, others = table.values_of(old_rows[is_sent]), other.values_of(rows[is_sent])
        times = np.where(has_row, np.maximum(own.times, row_times), own.times)[is_sent]
        changes = [_Change(joins, *one) for one in zip(values, olds, others, strict=True)]
        return _Sent(at, times, changes)


def _results(changes: Sequence[_Change]) -> Iterator[Any]:
    """Yield the new value of each result. The old one is computed too, because the joiner may fail on it."""
    for joins, new, old, other in changes:
        result = joins.joined(new, other)
        joins.joined(old, other)
        yield result
