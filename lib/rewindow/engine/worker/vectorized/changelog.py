"""The stores of vectorized execution in their changelogs: the same rows as record execution's, so a job may switch modes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile
from rewindow.engine.worker.changelog_reader import RowGroupFilter, changelog_batches
from rewindow.engine.worker.output import StagingTarget
from rewindow.engine.worker.vectorized.arrays import LONG_BYTES, UnfitError
from rewindow.engine.worker.vectorized.final_results import FinalsTask
from rewindow.engine.worker.vectorized.slots import Array
from rewindow.streams.serde.meta_columns import CHANGELOG_META
from rewindow.streams.serde.schema import Shape
from rewindow.streams.state.suppress_buffer import ENTRY_BYTES


def restore(task: FinalsTask, files: Mapping[str, Sequence[str]]) -> None:
    """Take in the groups that may still change. Raises `UnfitError` for what the execution does not write itself."""
    plan, open_from_ms = task.plan, task.open_from_ms
    key, value = plan.store_shapes
    for columns, slots in _open_rows(task, files.get(plan.store.name, ()), key, value, open_from_ms):
        if True in columns[-1]:
            raise UnfitError
        first = 0
        for fold in plan.folds:
            width = len(fold.state_types)
            fold.restore(task.groups.frame, slots, columns[first : first + width])
            first += width
        _note(task, slots, columns[first])
    if plan.suppress and plan.starts_at_first_value:
        key, value = plan.suppress.shapes
        for columns, slots in _open_rows(task, files.get(plan.suppress.store, ()), key, value, open_from_ms):
            is_null = np.asarray(columns[1].fill_null(False)) & task.groups.without_value()[slots]
            _note(task, slots[is_null], columns[2].filter(pa.array(is_null)))


def stage(task: FinalsTask, places: Mapping[str, StagingTarget], *, partition: int, run: int) -> list[StagedFile]:
    """Stage what the stores changed."""
    plan, frame = task.plan, task.groups.frame
    is_kept = frame["start"] > task.newest_ms - plan.store.retention_ms
    slots = task.in_order(np.flatnonzero(frame["touched"] & is_kept & ~task.groups.without_value()))
    state = [column for fold in plan.folds for column in fold.state(frame, slots)]
    rows = [*_keys(task, slots), *state, pa.array(frame["timestamp"][slots])]
    files = write_rows(places[plan.store.name], plan.store_shapes, [rows], partition, run)
    if plan.suppress:
        gone = [[*columns, *_bounds(starts, task.windows.size_ms)] for starts, columns in task.gone]
        chunks = [_entries(task), *gone]
        files += write_rows(places[plan.suppress.store], plan.suppress.shapes, chunks, partition, run)
    return files


def _entries(task: FinalsTask) -> list[pa.Array]:
    """Return the columns of the buffer's entries that were put in this run and are still held."""
    plan, frame = task.plan, task.groups.frame
    slots = task.in_order(np.flatnonzero(frame["touched"] & frame["held"]))
    results = task.results(slots)
    is_null = results[0].is_null() if plan.is_single else pa.repeat(False, len(slots))
    ends = pa.array(frame["start"][slots] + task.windows.size_ms)
    entry = [is_null, pa.array(frame["timestamp"][slots]), ends, pa.array(_entry_sizes(task, slots))]
    prior = [pa.nulls(len(slots), result.type) for result in results]
    return [*_keys(task, slots), *results, *entry, *prior, pa.repeat(True, len(slots))]


def _open_rows(
    task: FinalsTask, paths: Sequence[str], key: Shape, value: Shape, open_from_ms: int
) -> Iterator[tuple[list[pa.Array], Array]]:
    """Yield the value columns and tombstones of rows whose windows are open, and the slots of their groups."""
    columns = [*key.names, *value.names, "_tombstone"]
    width = len(key.columns)
    start = key.names[width - 2]
    for batch in changelog_batches(paths, columns, wanted=RowGroupFilter(start, open_from_ms)):
        is_open = np.asarray(batch.column(width - 2)) > open_from_ms
        arrays = batch.columns if is_open.all() else batch.filter(pa.array(is_open)).columns
        if len(arrays[0]):
            numbers = task.keys.numbers(arrays[: width - 2])
            rows = task.groups.find(np.asarray(arrays[width - 2]), numbers, len(task.keys))
            yield arrays[width:], rows.slots


def _entry_sizes(task: FinalsTask, slots: Array) -> Array:
    """Return what the buffer's entries count towards a bound in bytes (`core.buffer`, rule 5)."""
    frame = task.groups.frame
    keys = task.keys.sizes(frame["key"][slots])
    now, before = task.plan.sizes.of(frame, slots)
    results = now + np.where(frame["updates"][slots] > 1, before, 0)
    return np.asarray(ENTRY_BYTES + keys + LONG_BYTES + len(task.plan.topic) + results)


def _note(task: FinalsTask, slots: Array, timestamps: pa.Array) -> None:
    frame = task.groups.frame
    frame["timestamp"][slots] = np.asarray(timestamps)
    frame["restored"][slots] = True
    frame["updates"][slots] = 1
    task.hold(slots)


def _keys(task: FinalsTask, slots: Array) -> list[pa.Array]:
    frame = task.groups.frame
    return [*task.keys.columns(frame["key"][slots]), *_bounds(frame["start"][slots], task.windows.size_ms)]


def _bounds(starts: Array, size_ms: int) -> list[pa.Array]:
    return [pa.array(starts), pa.array(starts + size_ms)]


def write_rows(
    place: StagingTarget, shapes: tuple[Shape, Shape], chunks: Sequence[Sequence[pa.Array]], partition: int, run: int
) -> list[StagedFile]:
    """Write rows; a chunk that has no value columns is one of tombstones."""
    key, value = shapes
    with place.file((*key.columns, *value.columns, *CHANGELOG_META), ["_run"], partition) as file:
        for columns in chunks:
            rows = len(columns[0])
            is_gone = len(columns) == len(key.columns)
            gone = [pa.nulls(rows, file.schema.field(name).type) for name in value.names] if is_gone else []
            meta = [pa.repeat(run, rows), pa.repeat(is_gone, rows)]
            file.write(pa.RecordBatch.from_arrays([*columns, *gone, *meta], schema=file.schema))
        staged = file.close()
    return [staged] if staged else []
