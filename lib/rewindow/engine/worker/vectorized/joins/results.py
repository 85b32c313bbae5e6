"""Send the results of a join: as columns to a table, or one by one through a suffix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.engine.worker.arrow_rows import arrow_schema, encode, encode_values
from rewindow.engine.worker.vectorized.downstream import Downstream
from rewindow.engine.worker.vectorized.errors import UnfitError
from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.engine.worker.vectorized.joins.task import Joined, JoinTask
from rewindow.engine.worker.vectorized.sent_results import ColumnResults
from rewindow.streams.record import Record


class JoinResults(ABC):
    """Where a join sends its results. A block that raises deletes what it has written."""

    def __init__(self, task: JoinTask, most: int) -> None:
        """``most``: the limit of results of one record."""
        self._task, self._most = task, most

    def send(self, epoch: int, joined: Joined) -> None:
        """Make and send the results of an epoch.

        Raises `UnfitError` if a function fails, a result does not fit the sink, or a record has too many results: record
        execution names the record.
        """
        if _largest_run(joined.positions) > self._most:
            raise UnfitError
        try:
            self._send(epoch, joined)
        except Exception as error:  # user code may raise anything
            raise UnfitError from error

    @property
    @abstractmethod
    def emitted(self) -> int:
        """The number of the sink's next record."""

    @abstractmethod
    def close(self) -> list[StagedFile]:
        """Finish the files and return them."""

    @abstractmethod
    def abort(self) -> None:
        """Delete the files."""

    @abstractmethod
    def _send(self, epoch: int, joined: Joined) -> None:
        """Send results. May raise anything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()


class JoinedColumns(JoinResults):
    """Writes results to a table."""

    def __init__(self, task: JoinTask, work: SubTopologyWork, task_work: TaskWork) -> None:
        """Create the file with the first result."""
        super().__init__(task, work.code.settings.limits.outputs_per_record)
        self._results = ColumnResults(task.plan, work, task_work)

    @property
    def emitted(self) -> int:
        """See `JoinResults`."""
        return self._results.emitted

    def close(self) -> list[StagedFile]:
        """See `JoinResults`."""
        return self._results.close()

    def abort(self) -> None:
        """See `JoinResults`."""
        self._results.abort()

    def _send(self, epoch: int, joined: Joined) -> None:
        shape = self._task.plan.sink_shapes[1]
        columns: Sequence[pa.Array]
        if shape.has_json:  # the result may be a list that user code still changes, so it is encoded immediately
            rows = [shape.encode(value) for value in joined.values]
            columns = encode(rows, arrow_schema(shape.columns), "").columns
        else:
            columns = encode_values(shape, list(joined.values), "")
        self._results.send(epoch, [*self._task.keys.columns(joined.keys), *columns, pa.array(joined.times)])


class JoinedRecords(JoinResults):
    """Sends results through the nodes of a suffix."""

    def __init__(self, task: JoinTask, downstream: Downstream, most: int) -> None:
        """See `JoinResults`."""
        super().__init__(task, most)
        self._downstream = downstream

    @property
    def emitted(self) -> int:
        """See `JoinResults`."""
        return self._downstream.emitted

    def close(self) -> list[StagedFile]:
        """See `JoinResults`. Raises `UnfitError` for a record that does not fit the sink."""
        return self._downstream.close()

    def abort(self) -> None:
        """See `JoinResults`."""
        self._downstream.abort()

    def _send(self, epoch: int, joined: Joined) -> None:
        context, take = self._downstream.record_context, self._downstream.process
        self._downstream.begin(epoch)
        keys = self._task.key_values(joined.keys)
        arrays = (joined.times.tolist(), joined.orders.tolist(), joined.positions.tolist())
        for key, value, timestamp, order_ms, position in zip(keys, joined.values, *arrays, strict=True):
            context.timestamp, context.order_ms = timestamp, order_ms
            context.topic, context.offset = (None if position < 0 else ""), position  # for the limit of outputs
            take(Record(key, value, timestamp))


def join_results(task: JoinTask, work: SubTopologyWork, task_work: TaskWork) -> JoinResults:
    """Return where a task sends its results."""
    plan = task.plan
    if plan.suffix is None:
        return JoinedColumns(task, work, task_work)
    downstream = Downstream(plan.suffix, task.clocks.metrics, work, task_work)
    return JoinedRecords(task, downstream, work.code.settings.limits.outputs_per_record)


def _largest_run(positions: Array) -> int:
    """Return the most results of one record. Results at the end of an epoch have no record."""
    own = positions[positions >= 0]
    return int(np.bincount(own).max()) if len(own) else 0
