"""Restore and stage stores of windows, with the same rows as record execution, so a job can switch between modes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import TaskWork
from rewindow.engine.worker.changelog_reader import RowGroupFilter, changelog_batches
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.vectorized.arrays import LONG_BYTES, Array, UnfitError
from rewindow.engine.worker.vectorized.final_results import WindowTask
from rewindow.streams.serde.schema import CHANGELOG_META, Shape
from rewindow.streams.state.suppress_buffer import ENTRY_BYTES


def restore(task: WindowTask, task_work: TaskWork) -> None:
    """Restore the groups that may still change. Raises `UnfitError` for rows that this execution never writes."""
    plan, open_from_ms = task.plan, task.open_from_ms
    for columns, slots in _open_rows(task, task_work, plan.store.name, plan.store_shapes, open_from_ms):
        if pc.any(columns[-1]).as_py():
            raise UnfitError
        position = 0
        for fold in plan.folds:
            width = len(fold.state_types)
            fold.restore(task.groups.frame, slots, columns[position : position + width])
            position += width
        _set_restored(task, slots, columns[position])
    if plan.suppress and plan.starts_at_first_value:
        for columns, slots in _open_rows(task, task_work, plan.suppress.store, plan.suppress.shapes, open_from_ms):
            is_null = np.asarray(columns[1].fill_null(False)) & task.groups.without_value()[slots]
            _set_restored(task, slots[is_null], columns[2].filter(pa.array(is_null)))


def stage(task: WindowTask, targets: Mapping[str, StagingTarget], *, partition: int, run: int) -> list[StagedFile]:
    """Stage the changes of the stores."""
    plan, frame = task.plan, task.groups.frame
    is_kept = frame["start"] > task.newest_ms - plan.store.retention_ms
    slots = task.in_order(np.flatnonzero(frame["touched"] & is_kept & ~task.groups.without_value()))
    state = [column for fold in plan.folds for column in fold.state(frame, slots)]
    rows = [*_keys(task, slots), *state, pa.array(frame["timestamp"][slots])]
    files = write_rows(targets[plan.store.name], plan.store_shapes, [rows], partition, run)
    if plan.suppress:
        sent_entries = [[*columns, *_bounds(starts, task.windows.size_ms)] for starts, columns in task.sent_entries]
        chunks = [_entries(task), *sent_entries]
        files += write_rows(targets[plan.suppress.store], plan.suppress.shapes, chunks, partition, run)
    return files


def _entries(task: WindowTask) -> list[pa.Array]:
    """Return the buffer entries that this run wrote and still holds, as columns."""
    plan, frame = task.plan, task.groups.frame
    slots = task.in_order(np.flatnonzero(frame["touched"] & frame["held"]))
    results = task.results(slots)
    is_null = results[0].is_null() if plan.is_single else pa.repeat(False, len(slots))
    ends = pa.array(frame["start"][slots] + task.windows.size_ms)
    entry = [is_null, pa.array(frame["timestamp"][slots]), ends, pa.array(_entry_sizes(task, slots))]
    prior = [pa.nulls(len(slots), result.type) for result in results]
    return [*_keys(task, slots), *results, *entry, *prior, pa.repeat(True, len(slots))]


def _open_rows(
    task: WindowTask, task_work: TaskWork, store: str, shapes: tuple[Shape, Shape], open_from_ms: int
) -> Iterator[tuple[list[pa.Array], Array]]:
    """Yield the value and tombstone columns of rows with open windows, and the slots of their groups."""
    key, value = shapes
    columns = [*key.names, *value.names, "_tombstone"]
    width = len(key.columns)
    wanted = RowGroupFilter(key.names[width - 2], open_from_ms)
    for batch in changelog_batches(task_work.stores.get(store, ()), task_work.partition, columns, wanted=wanted):
        is_open = np.asarray(batch.column(width - 2)) > open_from_ms
        arrays = batch.columns if is_open.all() else batch.filter(pa.array(is_open)).columns
        if len(arrays[0]):
            numbers = task.keys.numbers(arrays[: width - 2])
            rows = task.groups.find(np.asarray(arrays[width - 2]), numbers, len(task.keys))
            yield arrays[width:], rows.slots


def _entry_sizes(task: WindowTask, slots: Array) -> Array:
    """Return the sizes of buffer entries, as counted towards a bound in bytes (`streams.state.suppress_buffer`)."""
    frame = task.groups.frame
    keys = task.keys.sizes(frame["key"][slots])
    now, before = task.plan.sizes.of(frame, slots)
    results = now + np.where(frame["updates"][slots] > 1, before, 0)
    return np.asarray(ENTRY_BYTES + keys + LONG_BYTES + len(task.plan.topic) + results)


def _set_restored(task: WindowTask, slots: Array, timestamps: pa.Array) -> None:
    frame = task.groups.frame
    frame["timestamp"][slots] = np.asarray(timestamps)
    frame["restored"][slots] = True
    frame["updates"][slots] = 1
    task.hold(slots)


def _keys(task: WindowTask, slots: Array) -> list[pa.Array]:
    frame = task.groups.frame
    return [*task.keys.columns(frame["key"][slots]), *_bounds(frame["start"][slots], task.windows.size_ms)]


def _bounds(starts: Array, size_ms: int) -> list[pa.Array]:
    return [pa.array(starts), pa.array(starts + size_ms)]


def write_rows(
    target: StagingTarget, shapes: tuple[Shape, Shape], chunks: Sequence[Sequence[pa.Array]], partition: int, run: int
) -> list[StagedFile]:
    """Write chunks of rows. A chunk without value columns contains tombstones."""
    key, value = shapes
    with target.file((*key.columns, *value.columns, *CHANGELOG_META), ["_run"], partition) as file:
        for columns in chunks:
            rows = len(columns[0])
            is_tombstone = len(columns) == len(key.columns)
            nulls = [pa.nulls(rows, file.schema.field(name).type) for name in value.names] if is_tombstone else []
            meta = [pa.repeat(run, rows), pa.repeat(is_tombstone, rows)]
            file.write(pa.RecordBatch.from_arrays([*columns, *nulls, *meta], schema=file.schema))
        staged = file.close()
    return [staged] if staged else []


def write_changes(
    target: StagingTarget,
    shapes: tuple[Shape, Shape],
    columns: Sequence[pa.Array],
    is_gone: Array,
    *,
    partition: int,
    run: int,
) -> list[StagedFile]:
    """Write rows of a store. Those that are gone are tombstones, with nulls for their values."""
    key, value = shapes
    with target.file((*key.columns, *value.columns, *CHANGELOG_META), ["_run"], partition) as file:
        meta = [pa.repeat(run, len(is_gone)), pa.array(is_gone)]
        file.write(pa.RecordBatch.from_arrays([*columns, *meta], schema=file.schema))
        staged = file.close()
    return [staged] if staged else []
