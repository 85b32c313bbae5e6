"""Restore and stage the stores of a join of streams, with the same rows as record execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import TaskWork
from rewindow.engine.worker.changelog_reader import RowGroupFilter, changelog_batches, row_columns
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.vectorized.changelog import write_changes
from rewindow.engine.worker.vectorized.errors import UnfitError
from rewindow.engine.worker.vectorized.joins.plan import JoinStore
from rewindow.engine.worker.vectorized.joins.records import NEW, Records, groups_of, numbers_in
from rewindow.engine.worker.vectorized.joins.stream_input import StreamInput
from rewindow.engine.worker.vectorized.joins.task import LATEST_MS
from rewindow.engine.worker.vectorized.keys import KeyTable
from rewindow.streams.record import UNKNOWN


def restore(one: StreamInput, keys: KeyTable, stores: Mapping[str, JoinStore], task_work: TaskWork) -> None:
    """Restore the stores of an input. Raises `UnfitError` for times beyond what sums allow."""
    clock_ms, retained = one.retained.clock_ms, one.retained
    records = _read(one, keys, stores[one.store], task_work, clock_ms - stores[one.store].builder.retention_ms)
    if clock_ms != UNKNOWN:
        records = records.taken(retained.are_retained(records.times, clock_ms))
    retained.add(records)
    one.peak = retained.count
    if one.waiting and one.waiting_store:
        one.waiting.add(_read(one, keys, stores[one.waiting_store], task_work, UNKNOWN))
        one.peak = max(one.peak, one.waiting.count)


def stage(
    inputs: Sequence[StreamInput],
    keys: KeyTable,
    stores: Mapping[str, JoinStore],
    targets: Mapping[str, StagingTarget],
    *,
    partition: int,
    run: int,
) -> list[StagedFile]:
    """Stage the changes of all stores."""
    changes = {}
    for one in inputs:
        records = one.retained.records
        numbers = numbers_in(groups_of(records.keys, records.times))
        new = np.flatnonzero(records.numbers == NEW)
        new = new[np.lexsort((numbers[new], records.times[new], keys.ranks(records.keys[new])))]
        columns = [*keys.columns(records.keys[new]), pa.array(records.times[new]), pa.array(numbers[new])]
        changes[one.store] = [*columns, *one.values.columns(records.rows[new])], np.zeros(len(new), np.bool_)
        if one.waiting and one.waiting_store:
            changes[one.waiting_store] = one.waiting.changes(keys, one.values)
    staged: list[StagedFile] = []
    for name, store in stores.items():
        staged += write_changes(targets[name], store.shapes, *changes[name], partition=partition, run=run)
    return staged


def _read(one: StreamInput, keys: KeyTable, store: JoinStore, task_work: TaskWork, above_ms: int) -> Records:
    """Return the rows of a store by key, time and number: of several with the same, the last, unless it is a tombstone."""
    key, value = store.shapes
    width = len(key.columns) - 2
    parts = [Records.none()]
    gone = [np.empty(0, np.bool_)]
    wanted = RowGroupFilter(key.names[width], above_ms) if above_ms > UNKNOWN else None
    paths = task_work.stores.get(store.builder.name, ())
    for batch in changelog_batches(paths, task_work.partition, row_columns(key, value), wanted=wanted):
        if batch.num_rows:
            columns = batch.columns
            times, numbers = np.asarray(columns[width]), np.asarray(columns[width + 1])
            if times.max() > LATEST_MS:
                raise UnfitError
            rows = one.values.add(columns[width + 2 : -1])
            parts.append(Records(keys.numbers(columns[:width]), times, rows, np.full(len(times), NEW), numbers))
            gone.append(np.asarray(columns[-1]))
    records = Records(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    order = np.lexsort((records.numbers, records.times, records.keys))
    records, is_gone = records.taken(order), np.concatenate(gone)[order]
    same = [array[1:] == array[:-1] for array in (records.keys, records.times, records.numbers)]
    is_last = np.append(~np.logical_and.reduce(same), True)[: len(order)]
    return records.taken(is_last & ~is_gone)
