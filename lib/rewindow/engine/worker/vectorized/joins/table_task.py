"""Join a stream with a table in batches: the equivalent of `streams.task` with a `StreamTableJoin`.

Why this is exact (L4): a record joins the row that the last update of its key before it left (`dsl.operators.stream_table_join`).
Sorted by key and order, that is the update in front of it; without one in the batch, it is the row that the table had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import Epoch, SubTopologyWork, TaskWork
from rewindow.engine.worker.restore import Restore
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.vectorized.changelog import write_changes
from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.engine.worker.vectorized.joins.kept_table import NO_ROW, KeptTable
from rewindow.engine.worker.vectorized.joins.plan import JoinPlan
from rewindow.engine.worker.vectorized.joins.task import Arrivals, Joined, JoinTask
from rewindow.engine.worker.vectorized.joins.value_rows import ValueRows
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.record import UNKNOWN
from rewindow.streams.semantics import Semantics
from rewindow.streams.settings import Limits


class TableJoinTask(JoinTask):
    """A join of a stream (left) with a table (right)."""

    def __init__(self, plan: JoinPlan, semantics: Semantics, state: TaskState | None, limits: Limits) -> None:
        """See `JoinTask`."""
        super().__init__(plan, semantics, state, limits)
        (self._store,) = plan.stores.values()
        self._table = KeptTable(self.keys, plan.inputs[1 - plan.left].value)

    @property
    def store_clocks(self) -> dict[str, int]:
        """See `JoinTask`."""
        return {self._store.builder.name: UNKNOWN}

    def restore(self, work: SubTopologyWork, task_work: TaskWork) -> None:
        """See `JoinTask`: only the rows whose keys records have."""
        code = work.code
        part = code.topology.sub_topologies()[work.sub_topology]
        restore = Restore(task_work, code.topology, part, code.load_logs())
        self._table.restore(restore.batches(self._store.builder, *self._store.shapes), len(self.plan.key.columns))
        self._check_memory()

    def end_epoch(self, epoch: Epoch) -> Iterator[Joined]:
        """See `JoinTask`: no record waits."""
        self.clocks.end_epoch(epoch)
        return iter(())

    def stage(self, targets: dict[str, StagingTarget], *, partition: int, run: int) -> list[StagedFile]:
        """See `JoinTask`."""
        columns, is_gone = self._table.changes()
        name = self._store.builder.name
        return write_changes(targets[name], self._store.shapes, columns, is_gone, partition=partition, run=run)

    def _stored(self) -> Sequence[tuple[int, ValueRows]]:
        return [(len(self._table), self._table.values)]

    def _join(self, arrivals: Arrivals, orders: Array) -> Iterator[Joined]:
        left, keys, table = arrivals.is_left, arrivals.keys, self._table
        keeps_left = self.plan.supplier.keeps_left
        self._count(self.plan.table_node, "null-key", int(np.count_nonzero(~left & (keys < 0))))
        skipped = left & ~(arrivals.has_value & ((keys >= 0) | keeps_left))
        self._count(self.plan.node, "null-key", int(np.count_nonzero(skipped & (keys < 0))))
        self._count(self.plan.node, "null-value", int(np.count_nonzero(skipped & (keys >= 0))))

        updates = np.flatnonzero(~left & (keys >= 0))
        found = np.full(len(keys), NO_ROW)
        if len(updates):
            added = table.values.add(arrivals.columns[1])
            found[updates] = np.where(arrivals.has_value[updates], added[arrivals.rows[updates]], NO_ROW)
        joining = np.flatnonzero(left & ~skipped)
        with_key = joining[keys[joining] >= 0]
        found[with_key] = self._before(keys, updates, with_key, found)
        table.update(keys[updates], found[updates], arrivals.times[updates])
        sent = joining if keeps_left else joining[found[joining] != NO_ROW]
        if len(sent):
            rows = found[sent]
            used = np.zeros(table.values.size, np.bool_)
            used[rows[rows >= 0]] = True
            values = [*table.values.values(np.flatnonzero(used)), None]
            index = np.append(np.cumsum(used) - 1, len(values) - 1)[rows]  # -1 is the last one
            yield Joined(
                keys[sent],
                self._values(arrivals, arrivals.rows[sent], is_left=True),
                [values[one] for one in index.tolist()],
                arrivals.times[sent],
                orders[arrivals.positions[sent]],
                arrivals.positions[sent],
            )
        table.compact()

    def _before(self, keys: Array, updates: Array, records: Array, found: Array) -> Array:
        """Return the row that each record's key has when the record is processed."""
        current = self._table.current(keys[records])
        if len(updates) == 0:
            return current
        both = np.sort(np.concatenate([updates, records]))
        both = both[np.argsort(keys[both], kind="stable")]
        is_update = np.zeros(len(keys), np.bool_)
        is_update[updates] = True
        last = np.maximum.accumulate(np.where(is_update[both], np.arange(len(both)), -1))
        ordered = keys[both]
        is_own = (last >= 0) & (ordered[last] == ordered)
        rows = np.empty(len(keys), np.int64)
        rows[both] = np.where(is_own, found[both[last]], NO_ROW)
        has_update = np.zeros(len(keys), np.bool_)
        has_update[both] = is_own
        return np.where(has_update[records], rows[records], current)
