"""The quarantine: records that `land` refuses (they take no offset and move no time, D19), and those that a job drops."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rewindow.contracts.ingest import QUARANTINE_COLUMNS, LogWrite, Slot
from rewindow.contracts.staged_files import StagedFile
from rewindow.engine.worker.arrow_rows import arrow_schema
from rewindow.engine.worker.output import StagingTarget
from rewindow.engine.worker.parquet_writer import FileWriter
from rewindow.engine.worker.timestamps import Refusal
from rewindow.streams.dropped_records import Dropped
from rewindow.streams.record import row_class
from rewindow.streams.serde.canonical_json import dump_value
from rewindow.streams.serde.schema import Column


class QuarantineWriter:
    """Collects what one landing refuses in one partition of a log. No file before the first record."""

    def __init__(self, write: LogWrite, slot: Slot, partition: int) -> None:
        self._write, self._slot, self._partition = write, slot, partition
        self._file: FileWriter | None = None
        self.rows = 0

    def add(self, rows: pa.RecordBatch, refusals: Sequence[Refusal]) -> None:
        """Add the refused rows of a batch."""
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
            [self._slot.number] * count,
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
        """Finish the file; empty if nothing was refused."""
        file = self._file.close() if self._file is not None else None
        return () if file is None else (file,)

    def abort(self) -> None:
        """Give the file up."""
        if self._file is not None:
            self._file.abort()


class DropWriter:
    """Collects what one task of a run drops. ``epoch`` is set by whoever drives the task."""

    def __init__(self, place: StagingTarget, *, job: str, run: int) -> None:
        self.epoch = 0
        self._job, self._run = job, run
        self._rows = place.buffer(QUARANTINE_COLUMNS, ("name", "topic", "landing"))

    def take(self, dropped: Dropped) -> None:
        """Take one record."""
        (topic, partition, offset), timestamp, node, reason, record = dropped
        self._rows.append(
            (self._job, topic, partition, offset, node, reason, None, timestamp, record, self._run, self.epoch)
        )
        self._rows.flush_if_full()

    def close(self) -> list[StagedFile]:
        """Finish the file; the list is empty if nothing was dropped."""
        return self._rows.close()


def record_text(columns: Sequence[Column], rows: pa.RecordBatch) -> list[str]:
    """Return each row's key and value columns as canonical JSON."""
    names = tuple(column.name for column in columns)
    cells = zip(*(rows.column(name).to_pylist() for name in names), strict=True)
    return [dump_value(row_class(names)(*row)) for row in cells]
