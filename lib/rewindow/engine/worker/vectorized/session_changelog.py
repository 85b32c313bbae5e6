"""Restore and stage stores of sessions, with the same rows as record execution, so a job can switch between modes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import TaskWork
from rewindow.engine.worker.changelog_reader import RowGroupFilter, changelog_batches
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.vectorized.arrays import LONG_BYTES, Array, UnfitError
from rewindow.engine.worker.vectorized.final_results import write_rows
from rewindow.engine.worker.vectorized.result_sizes import Session
from rewindow.engine.worker.vectorized.session_results import SessionTask
from rewindow.streams.serde.schema import Shape
from rewindow.streams.state.suppress_buffer import ENTRY_BYTES


def restore(task: SessionTask, task_work: TaskWork) -> None:
    """Restore the sessions that may still change. Raises `UnfitError` for rows that this execution never writes."""
    plan = task.plan
    batches: list[list[pa.Array]] = []
    locations: dict[Session, tuple[int, int]] = {}
    store = _rows(task, task_work, plan.store.name, plan.store_shapes, task.stored_from_ms)
    for sessions, values, tombstones in store:
        for row, (session, is_tombstone) in enumerate(zip(sessions, tombstones, strict=True)):
            locations.pop(session, None)
            if not is_tombstone:
                locations[session] = (len(batches), row)
        batches.append(values)
    held_from = task.held_from_ms
    for number, values in enumerate(batches):
        mine = [(session, row) for session, (batch, row) in locations.items() if batch == number]
        slots = np.array([task.add(*session) for session, _ in mine], np.int64)
        task.grow()
        if len(slots) == 0:
            continue
        rows = pa.array([row for _, row in mine])
        state = [column.take(rows) for column in values]
        if not plan.takes_nulls and any(column.null_count for column in state):
            raise UnfitError
        position = 0
        for fold in plan.folds:
            fold.restore(task.frame, slots, state[position : position + len(fold.state_types)])
            position += len(fold.state_types)
        if task.texts:
            task.texts.restore(slots, state[:position])
        for slot, ((key, start, end), _) in zip(slots.tolist(), mine, strict=True):
            task.stored[slot] = True
            task.sessions.add(key, (end, start, slot), task.stored_from_ms)
            task.frame["held"][slot] = end >= held_from
    if plan.suppress:
        # `null_index` is the column that says whether the result is null.
        null_index = len(plan.folds)
        for sessions, values, tombstones in _rows(
            task, task_work, plan.suppress.store, plan.suppress.shapes, held_from
        ):
            is_null = values[null_index].to_pylist()
            for session, is_empty, is_tombstone in zip(sessions, is_null, tombstones, strict=True):
                task.buffered.pop(session, None)
                if not is_tombstone:
                    task.buffered[session] = bool(is_empty)
        task.pending_tombstones = {session for session, is_empty in task.buffered.items() if is_empty}


def stage(task: SessionTask, targets: Mapping[str, StagingTarget], *, partition: int, run: int) -> list[StagedFile]:
    """Stage the changes of the stores."""
    plan, frame = task.plan, task.frame
    _, ends = task.bounds(np.arange(frame.size))
    slots = np.flatnonzero(frame["touched"] & (ends >= task.stored_from_ms))
    slots = slots[task.order(slots)]
    state = [column for fold in plan.folds for column in fold.state(frame, slots)]
    rows = [*_keys(task, slots), *state]
    files = write_rows(targets[plan.store.name], plan.store_shapes, [rows, _of(task, task.removed)], partition, run)
    if plan.suppress:
        held_from_ms = task.held_from_ms
        left = [session for session in task.buffered if session[2] < held_from_ms]
        slots = np.flatnonzero(frame["touched"] & frame["held"])
        slots = slots[task.order(slots)]
        made = {session for session in task.replaced if session[2] >= held_from_ms}
        chunks = [_entries(task, slots), _tombstones(task, sorted(made)), _of(task, left)]
        files += write_rows(targets[plan.suppress.store], plan.suppress.shapes, chunks, partition, run)
    return files


def _entries(task: SessionTask, slots: Array) -> list[pa.Array]:
    """Return the buffer entries that this run wrote and still holds, as columns."""
    results = [fold.result(task.frame, slots) for fold in task.plan.folds]
    is_repeat = np.array(task.is_repeat, np.bool_)[slots] if len(slots) else np.zeros(0, np.bool_)
    now, before = task.plan.sizes.of(task.frame, slots)
    sizes = _sizes(task, task.frame["key"][slots]) + now + np.where(is_repeat, before, 0)
    _, ends = task.bounds(slots)
    return [*_keys(task, slots), *results, *_entry(results, ends, sizes, is_null=False)]


def _tombstones(task: SessionTask, sessions: Sequence[Session]) -> list[pa.Array]:
    """Return the buffer entries of replaced sessions, as columns: tombstones without a result."""
    rows = len(sessions)
    nulls = [pa.nulls(rows, fold.result(task.frame, np.zeros(0, np.int64)).type) for fold in task.plan.folds]
    keys, ends = (np.array([session[index] for session in sessions], np.int64) for index in (0, 2))
    sizes = _sizes(task, keys) + _result_bytes(task, sessions)
    return [*_of(task, sessions), *nulls, *_entry(nulls, ends, sizes, is_null=True)]


def _entry(results: Sequence[pa.Array], ends: Array, sizes: Array, *, is_null: bool) -> list[pa.Array]:
    rows = len(ends)
    prior = [pa.nulls(rows, result.type) for result in results]
    times = [pa.array(ends), pa.array(ends), pa.array(sizes)]
    return [pa.repeat(is_null, rows), *times, *prior, pa.repeat(True, rows)]


def _sizes(task: SessionTask, keys: Array) -> Array:
    """Return the sizes of entries without values, as counted towards a bound in bytes (`streams.state.suppress_buffer`)."""
    return ENTRY_BYTES + task.keys.sizes(keys) + 2 * LONG_BYTES + len(task.plan.topic)


def _result_bytes(task: SessionTask, sessions: Sequence[Session]) -> Any:
    """Return the encoded sizes of the results of replaced sessions, none of which contains a null."""
    if task.texts:
        return np.array([task.texts.sizes[session] for session in sessions], np.int64)
    kinds = [fold.result_type for fold in task.plan.folds]
    return sum(1 if kind == "boolean" else LONG_BYTES for kind in kinds) + task.plan.sizes.row_bytes


def _keys(task: SessionTask, slots: Array) -> list[pa.Array]:
    starts, ends = task.bounds(slots)
    return [*task.keys.columns(task.frame["key"][slots]), pa.array(starts), pa.array(ends)]


def _of(task: SessionTask, sessions: Iterable[Session]) -> list[pa.Array]:
    """Return the key columns of sessions."""
    rows = np.array(list(sessions), np.int64).reshape(-1, 3)
    return [*task.keys.columns(rows[:, 0].copy()), pa.array(rows[:, 1].copy()), pa.array(rows[:, 2].copy())]


def _rows(
    task: SessionTask, task_work: TaskWork, store: str, shapes: tuple[Shape, Shape], ends_from_ms: int
) -> Iterator[tuple[list[Session], list[pa.Array], list[bool]]]:
    """Yield sessions that end at or after a time, their value columns, and whether each is a tombstone, in write order."""
    key, value = shapes
    columns = [*key.names, *value.names, "_tombstone"]
    width = len(key.columns)
    wanted = RowGroupFilter(key.names[-1], ends_from_ms - 1)
    for batch in changelog_batches(task_work.stores.get(store, ()), task_work.partition, columns, wanted=wanted):
        mask = np.asarray(batch.column(width - 1)) >= ends_from_ms
        some = batch if mask.all() else batch.filter(pa.array(mask))
        if some.num_rows:
            numbers = task.keys.numbers(some.columns[: width - 2]).tolist()
            bounds = [some.column(width - 2).to_pylist(), some.column(width - 1).to_pylist()]
            yield list(zip(numbers, *bounds, strict=True)), some.columns[width:-1], some.column(-1).to_pylist()
