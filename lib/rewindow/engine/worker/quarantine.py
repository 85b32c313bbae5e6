"""Writers of the quarantine: for records that `land` rejects (no offset, no effect on time, D19) and that a job drops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rewindow.contracts.reserved_names import QUARANTINE_COLUMNS
from rewindow.engine.worker.arrow_rows import arrow_schema
from rewindow.engine.worker.parquet_writer import FileWriter
from rewindow.streams.record import row_class
from rewindow.streams.serde.canonical_json import dump_value

if TYPE_CHECKING:
    from rewindow.contracts.ingest import LogWrite, PendingLanding
    from rewindow.contracts.staged_files import StagedFile
    from rewindow.engine.worker.staging import StagingTarget
    from rewindow.engine.worker.timestamps import Refusal
    from rewindow.streams.serde.schema import Column
    from rewindow.streams.task_context import Dropped


class QuarantineWriter:
    """Collects the records that one landing rejects in one partition of a log. Creates no file before the first."""

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
                stats_columns=("name", "topic", "landing"),
            )
        arrays = [
            column if isinstance(column, pa.Array) else pa.array(column, field.type)
            for column, field in zip(columns, schema, strict=True)
        ]
        self._file.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
        self.rows += count

    def close(self) -> tuple[StagedFile, ...]:
        """Finish the file. Returns nothing if no record was rejected."""
        file = self._file.close() if self._file is not None else None
        return () if file is None else (file,)

    def abort(self) -> None:
        """Delete the file."""
        if self._file is not None:
            self._file.abort()


class DropWriter:
    """Collects the records that one task of a run drops. The caller sets ``epoch``."""

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
        """Finish the file. Returns nothing if no record was dropped."""
        return self._rows.close()


def record_text(columns: Sequence[Column], rows: pa.RecordBatch) -> list[str]:
    """Return each row's key and value columns as canonical JSON."""
    names = tuple(column.name for column in columns)
    values = zip(*(rows.column(name).to_pylist() for name in names), strict=True)
    return [dump_value(row_class(names)(*row)) for row in values]
