"""Stage rows as files: where a task stages the files of a target, and row buffers that fill them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rewindow.contracts.staged_files import SHARED, StagedFile
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.engine.worker.arrow_rows import arrow_schema, encode
from rewindow.engine.worker.batch_size import written_rows
from rewindow.engine.worker.parquet_writer import FileWriter, Share
from rewindow.engine.worker.shared_files import shared_files
from rewindow.streams.serde.schema import CHANGELOG_META, PARTITION, Column, Shape

_INTERNAL = "internal/"


class RowBuffer:
    """Buffers rows for one file."""

    def __init__(self, file: FileWriter, target: str) -> None:
        self._file, self._target = file, target
        self._rows: list[tuple[Any, ...]] = []
        self._limit = written_rows()
        self.append = self._rows.append

    def flush_if_full(self) -> None:
        """Write the rows if the buffer is full."""
        if len(self._rows) >= self._limit:
            self._flush()

    def close(self) -> list[StagedFile]:
        """Finish the file. Returns nothing if there were no rows."""
        self._flush()
        staged = self._file.close()
        return [staged] if staged else []

    def _flush(self) -> None:
        if self._rows:
            self._file.write(encode(self._rows, self._file.schema, self._target))
            self._rows.clear()


class StagingTarget:
    """Where a task stages files for one target."""

    def __init__(self, target: str, root: str, *, attempt: str, partition: int, sender: str = "") -> None:
        """``sender``: the nodes that send these records, for messages."""
        self.target, self.sender = target, sender
        self._root, self._attempt, self._partition = root, attempt, partition

    def buffer(self, columns: Iterable[Column], stats: Iterable[str], partition: int | None = None) -> RowBuffer:
        """Return a row buffer for one file."""
        return RowBuffer(self.file(columns, stats, partition), self.target)

    def file(self, columns: Iterable[Column], stats: Iterable[str], partition: int | None = None) -> FileWriter:
        """Return the writer of one file, or of a part of a file that tasks share.

        ``partition`` is the one that all rows are in, if the table has a column for it: the file is in its directory. Internal
        logs have no such column, because their tasks share no files.
        """
        schema, stats = arrow_schema(columns), list(stats)
        values = {} if partition is None else {PARTITION: partition}
        is_internal = self.target.startswith(_INTERNAL)
        stored = {} if is_internal else values
        return FileWriter(
            self._root,
            "" if partition is None else f"{PARTITION}={partition}",
            schema,
            target=self.target,
            partition=self._partition,
            attempt=self._attempt,
            partition_values={name: str(value) for name, value in values.items()},
            stats_columns=[*stats, *stored],
            constants=stored,
            undigested=[*stored],
            share=None if is_internal else self._share(schema, stats, stored),
        )

    def _share(self, schema: pa.Schema, stats: Sequence[str], stored: Mapping[str, int]) -> Share | None:
        """Return what adds the rows of a task to the file that tasks share; None if they share none of this target."""
        shared = shared_files()
        if shared is None or not shared.has(self._root):
            return None

        def new_file() -> FileWriter:
            return FileWriter(
                self._root,
                "",
                pa.schema([*schema, *(pa.field(name, pa.int64()) for name in stored)]),
                target=self.target,
                partition=SHARED,
                attempt=self._attempt,
                partition_values={},
                stats_columns=[*stats, *stored],
                undigested=[*stored],
            )

        return lambda rows: shared.add(self.target, rows, new_file)


def staging_target(work: SubTopologyWork, task_work: TaskWork, target: str, sender: str = "") -> StagingTarget:
    """Return where a task of a sub-topology stages the files of a target."""
    return StagingTarget(
        target,
        work.staging.roots[target],
        attempt=work.identity.attempt,
        partition=task_work.partition,
        sender=sender,
    )


def stage_rows(target: StagingTarget, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]) -> list[StagedFile]:
    """Stage rows in one file of an unpartitioned table."""
    buffer = target.buffer(columns, [column.name for column in columns])
    for row in rows:
        buffer.append(row)
    return buffer.close()


def stage_changes(
    target: StagingTarget, shapes: tuple[Shape, Shape], rows: Iterable[tuple[Any, Any]], *, partition: int, run: int
) -> list[StagedFile]:
    """Stage the changes of a store: one row per key, with a tombstone for a None value."""
    key, value = shapes
    buffer = target.buffer((*key.columns, *value.columns, *CHANGELOG_META), ["_run"], partition)
    gone = (None,) * len(value.columns)
    for row_key, row_value in rows:
        values = gone if row_value is None else value.encode(row_value)
        buffer.append((*key.encode(row_key), *values, run, row_value is None))
        buffer.flush_if_full()
    return buffer.close()
