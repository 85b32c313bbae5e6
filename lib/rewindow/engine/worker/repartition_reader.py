"""Read one partition of a repartition topic, as upstream tasks of this run wrote it, epoch by epoch.

Each file holds the records of one upstream task in epoch order, so the reader opens it once. It sorts the rows of an
epoch as D21 requires and numbers them; then they are like the records of any topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.tasks import InternalFile
from rewindow.engine.worker import batch_size
from rewindow.engine.worker.checksums import UNREADABLE, open_verified, uses_threads
from rewindow.engine.worker.log_reader import decoded
from rewindow.errors import StorageError
from rewindow.streams.ordering import Rows
from rewindow.streams.serde.schema import Shape

_META = ("_epoch", "_order", "_number", "_timestamp")
_ORDER = [("_order", "ascending"), ("_upstream", "ascending"), ("_number", "ascending")]


class InternalReader:
    """Reads one internal topic of one task. Request epochs in ascending order; gaps are allowed."""

    def __init__(self, files: Sequence[InternalFile], key: Shape, value: Shape) -> None:
        """Prepare to read. Opens no file before the first epoch is requested."""
        self._key, self._value = key, value
        self._epochs = SortedEpochs(files, [*key.names, *value.names])

    def epoch(self, epoch: int, next_offset: int) -> Iterator[Rows]:
        """Yield the rows of an epoch, numbered from ``next_offset``. Raises `StorageError` (74) for an unreadable file."""
        table = self._epochs.take(epoch)
        if table is not None:
            names = ("_timestamp", *self._key.names, *self._value.names)
            columns = [table.column(name).combine_chunks() for name in names]
            yield decoded(next_offset, columns, self._key, self._value)


class SortedEpochs:
    """The rows of one internal topic of one task, epoch by epoch, in the order of D21."""

    def __init__(self, files: Sequence[InternalFile], columns: Sequence[str]) -> None:
        """Prepare to read some columns."""
        self._files = [(file.upstream, _EpochByEpoch(file.path, [*_META, *columns])) for file in files]

    def take(self, epoch: int) -> pa.Table | None:
        """Return the rows of an epoch, with their ``_timestamp``; None if there are none. Raises `StorageError` (74)."""
        parts = []
        for upstream, file in self._files:
            for batch in file.take(epoch):
                upstreams = pa.repeat(pa.scalar(upstream, pa.int64()), batch.num_rows)
                parts.append(pa.Table.from_batches([batch]).append_column("_upstream", upstreams))
        return pa.concat_tables(parts).sort_by(_ORDER) if parts else None


class _EpochByEpoch:
    """The batches of a file whose rows are ordered by epoch."""

    def __init__(self, path: str, columns: Sequence[str]) -> None:
        self._path, self._columns = path, list(columns)
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None

    def take(self, epoch: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows up to an epoch; keep those of later epochs."""
        while (batch := self._next()) is not None:
            epochs = batch.column(0)
            count = pc.sum(pc.less_equal(epochs, epoch)).as_py()
            if count:
                yield batch.slice(0, count)
            if count < batch.num_rows:
                self._rest = batch.slice(count)
                return

    def _next(self) -> pa.RecordBatch | None:
        batch, self._rest = self._rest, None
        if batch is not None:
            return batch
        if self._batches is None:
            self._batches = _batches(self._path, self._columns)
        return next(self._batches, None)


def columns_of(files: Sequence[InternalFile], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of all records of a partition, in no particular order. Raises as `InternalReader.epoch` does."""
    for file in files:
        yield from _batches(file.path, columns)


def _batches(path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        with open_verified(path) as parquet:
            threads = uses_threads(parquet)
            for batch in parquet.iter_batches(batch_size.read_rows(), columns=list(columns), use_threads=threads):
                yield batch.select(list(columns))
    except UNREADABLE as error:
        message = f"cannot read the internal log file {path}: {error}. Nothing was committed. Run the command again"
        raise StorageError(message) from error
