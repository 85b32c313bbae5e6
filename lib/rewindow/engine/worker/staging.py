"""Stage rows as files: staging targets, row buffers, and writers of the quarantine.

The tasks of a small sub-topology share files: there is one file per table, instead of one per task and table (ADR-109). The
tasks of a process run one after the other. The rows that a task stages for a table are added to the shared file only when the
task ends. So if vectorized execution of a task fails and record execution repeats it, the first attempt leaves no rows in the
file. A task with many rows has a file of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rewindow.contracts.reserved_names import QUARANTINE_COLUMNS
from rewindow.contracts.staged_files import SHARED, StagedFile
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.engine.worker.arrow_rows import arrow_schema, encode
from rewindow.engine.worker.batch_size import written_rows
from rewindow.engine.worker.parquet_writer import ROW_GROUP, FileWriter, Share
from rewindow.streams.record import row_class
from rewindow.streams.serde.canonical_json import dump_value
from rewindow.streams.serde.schema import CHANGELOG_META, PARTITION, Column, Shape

if TYPE_CHECKING:
    from rewindow.contracts.ingest import LogWrite, PendingLanding
    from rewindow.engine.worker.timestamps import Refusal
    from rewindow.streams.task_context import Dropped

SHARED_ROWS = 16 * 1024
"""A task adds its rows to a shared file if it has at most this many. A task with more rows has a file of its own."""
GROUP_ROWS = 8 * 1024
"""In a shared file, a row group ends after the task that makes it reach this many rows. A later reader needs the rows of one
task, and so reads only some row groups of a large file."""
_INTERNAL = "internal/"
_current: ContextVar[SharedFiles | None] = ContextVar("shared_files", default=None)


class StagingTarget:
    """What a task stages files for: an output, a store, an internal log, or a table that jobs share."""

    def __init__(self, target: str, root: str, *, attempt: str, partition: int, sender: str = "") -> None:
        """``sender``: the names of the nodes that send the records, for messages."""
        self.target, self.sender = target, sender
        self._root, self._attempt, self._partition = root, attempt, partition

    def buffer(self, columns: Iterable[Column], stats: Iterable[str], partition: int | None = None) -> _RowBuffer:
        """Return a row buffer for one file."""
        return _RowBuffer(self.file(columns, stats, partition), self.target)

    def file(self, columns: Iterable[Column], stats: Iterable[str], partition: int | None = None) -> FileWriter:
        """Return the writer of one file, or of the task's rows in a file that tasks share.

        If the table is partitioned, ``partition`` is the partition of all rows. Then the file is in the partition's
        directory, and the rows have a column with the partition. Files of internal logs lack this column, because tasks do
        not share these files.
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
        """Return the function that adds a task's rows to the shared file; None if tasks share no file of this target."""
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
    """Return the target for which a task of a sub-topology stages files."""
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
    """Stage the changes of a store: one row per key. A row with the value None is staged as a tombstone."""
    key, value = shapes
    buffer = target.buffer((*key.columns, *value.columns, *CHANGELOG_META), ["_run"], partition)
    gone = (None,) * len(value.columns)
    for row_key, row_value in rows:
        values = gone if row_value is None else value.encode(row_value)
        buffer.append((*key.encode(row_key), *values, run, row_value is None))
        buffer.flush_if_full()
    return buffer.close()


class SharedFiles:
    """The files that the tasks of a sub-topology share: at most one open file for each target."""

    def __init__(self, is_shareable: Callable[[str], bool]) -> None:
        """``is_shareable`` returns whether a file of the table in a folder may have rows of several tasks."""
        self._is_shareable = is_shareable
        self._known: dict[str, bool] = {}
        self._waiting: list[tuple[str, pa.Table, Callable[[], FileWriter]]] = []
        self._open: dict[str, FileWriter] = {}
        self._closed: list[StagedFile] = []

    def has(self, root: str) -> bool:
        """Return whether tasks may share the files of the table in a folder."""
        if root not in self._known:
            self._known[root] = self._is_shareable(root)
        return self._known[root]

    def add(self, target: str, rows: pa.Table, new_file: Callable[[], FileWriter]) -> bool:
        """Keep rows of the running task for a target's shared file. If there are too many, keep none and return False."""
        if rows.num_rows > SHARED_ROWS:
            return False
        self._waiting.append((target, rows, new_file))
        return True

    def forget(self) -> None:
        """Drop the rows of the running task. Called when the task is about to start again."""
        self._waiting.clear()

    def end_task(self) -> int:
        """Write the rows of the task that has ended; return their number.

        Raises `StorageError` (74) if they cannot be written.
        """
        count = 0
        for target, rows, new_file in self._waiting:
            file = self._open.get(target)
            if file is None:
                file = self._open[target] = new_file()
            for batch in rows.to_batches():
                file.write(batch)
            file.end_group(GROUP_ROWS)
            count += rows.num_rows
            if file.rows >= ROW_GROUP:
                self._close(target)
        self._waiting.clear()
        return count

    def close(self) -> list[StagedFile]:
        """Make the open files durable. Return all files that the tasks shared."""
        for target in sorted(self._open):
            self._close(target)
        return self._closed

    def abort(self) -> None:
        """Delete the incomplete files. Complete files become orphan files, which `gc` deletes."""
        for file in self._open.values():
            file.abort()

    def _close(self, target: str) -> None:
        staged = self._open.pop(target).close()
        if staged is not None:
            self._closed.append(staged)


def shared_files() -> SharedFiles | None:
    """Return the files that the running task shares with other tasks; None if it shares no files."""
    return _current.get()


@contextmanager
def sharing(is_shareable: Callable[[str], bool]) -> Iterator[SharedFiles]:
    """Let the tasks that run in the block share files. If the block raises, incomplete files are deleted."""
    files = SharedFiles(is_shareable)
    token = _current.set(files)
    try:
        yield files
    except BaseException:
        files.abort()
        raise
    finally:
        _current.reset(token)


class _RowBuffer:
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
        """Finish the file and return it. Returns an empty list if there were no rows."""
        self._flush()
        staged = self._file.close()
        return [staged] if staged else []

    def _flush(self) -> None:
        if self._rows:
            self._file.write(encode(self._rows, self._file.schema, self._target))
            self._rows.clear()


class QuarantineWriter:
    """A writer of the records that one landing rejects in one partition of a log.

    It creates no file before the first record.
    """

    def __init__(self, write: LogWrite, landing: PendingLanding, partition: int) -> None:
        self._write, self._landing, self._partition = write, landing, partition
        self._file: FileWriter | None = None
        self.rows = 0

    def add(self, rows: pa.RecordBatch, refusals: Sequence[Refusal]) -> None:
        """Add the rejected rows of a batch."""
        write, schema = self._write, arrow_schema(QUARANTINE_COLUMNS)
        refused = rows.take(pa.array([refusal.row for refusal in refusals]))
        count = refused.num_rows
        names = refused.schema.names
        columns = [
            [write.feed] * count,
            [write.spec.topic] * count,
            [self._partition] * count,
            [None] * count,
            [None] * count,
            [refusal.reason for refusal in refusals],
            refused.column("_arrival"),
            refused.column("_timestamp") if "_timestamp" in names else [None] * count,
            record_text(write.columns.all, refused),
            [None] * count,
            [self._landing.number] * count,
        ]
        if self._file is None:
            self._file = FileWriter(
                write.quarantine_root,
                "",
                schema,
                target="quarantine",
                partition=self._partition,
                attempt=write.attempt,
                partition_values={},
                # A job may have the name of the feed. The number of nulls in `_run` tells its rows from these.
                stats_columns=("name", "topic", "landing", "_run"),
            )
        arrays = [
            column if isinstance(column, pa.Array) else pa.array(column, field.type)
            for column, field in zip(columns, schema, strict=True)
        ]
        self._file.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
        self.rows += count

    def close(self) -> tuple[StagedFile, ...]:
        """Finish the file and return it. Returns an empty tuple if no record was rejected."""
        file = self._file.close() if self._file is not None else None
        return () if file is None else (file,)

    def abort(self) -> None:
        """Delete the file."""
        if self._file is not None:
            self._file.abort()


class DropWriter:
    """A writer of the records that one task of a run drops. The caller sets the attribute ``epoch``."""

    def __init__(self, target: StagingTarget, *, job: str, run: int) -> None:
        self.epoch = 0
        self._job, self._run = job, run
        self._rows = target.buffer(QUARANTINE_COLUMNS, ("name", "topic", "landing"))

    def take(self, dropped: Dropped) -> None:
        """Add one record."""
        (topic, partition, offset), timestamp, node, reason, record = dropped
        self._rows.append(
            (self._job, topic, partition, offset, node, reason, None, timestamp, record, self._run, self.epoch)
        )
        self._rows.flush_if_full()

    def close(self) -> list[StagedFile]:
        """Finish the file and return it. Returns an empty list if no record was dropped."""
        return self._rows.close()


def record_text(columns: Sequence[Column], rows: pa.RecordBatch) -> list[str]:
    """Return, for each row, the text of its key and value columns as canonical JSON."""
    names = tuple(column.name for column in columns)
    values = zip(*(rows.column(name).to_pylist() for name in names), strict=True)
    return [dump_value(row_class(names)(*row)) for row in values]
