"""The internal source: what upstream tasks of this run sent to one partition of a repartition topic, epoch by epoch.

Each file holds what one task sent, epoch after epoch, so it is opened once and read on. An epoch's rows are put in the
order of D21 and numbered; from there on they are like those of any topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.tasks import InternalFile
from rewindow.engine.worker import batch_size
from rewindow.engine.worker.checksums import UNREADABLE, open_verified
from rewindow.engine.worker.log_reader import decoded
from rewindow.errors import StorageError
from rewindow.streams.ordering import Rows
from rewindow.streams.serde.schema import Shape

_META = ("_epoch", "_order", "_number", "_timestamp")
_ORDER = [("_order", "ascending"), ("_upstream", "ascending"), ("_number", "ascending")]


class InternalReader:
    """Reads one internal topic of one task. Epochs are asked for in order; one may be left out."""

    def __init__(self, files: Sequence[InternalFile], key: Shape, value: Shape) -> None:
        """Prepare to read; nothing is opened before the first epoch is asked for."""
        self._key, self._value = key, value
        columns = [*_META, *key.names, *value.names]
        self._files = [(file.upstream, _EpochByEpoch(file.path, columns)) for file in files]

    def epoch(self, epoch: int, next_offset: int) -> Iterator[Rows]:
        """Yield the rows of an epoch, numbered from ``next_offset``. Raises `StorageError` (74) for an unreadable file."""
        parts = []
        for upstream, file in self._files:
            for batch in file.take(epoch):
                who = pa.repeat(pa.scalar(upstream, pa.int64()), batch.num_rows)
                parts.append(pa.Table.from_batches([batch]).append_column("_upstream", who))
        if parts:
            table = pa.concat_tables(parts).sort_by(_ORDER)
            names = ("_timestamp", *self._key.names, *self._value.names)
            columns = [table.column(name).combine_chunks() for name in names]
            yield decoded(next_offset, columns, self._key, self._value)


class _EpochByEpoch:
    """The batches of a file whose rows are in the order of their epochs."""

    def __init__(self, path: str, columns: Sequence[str]) -> None:
        self._path, self._columns = path, list(columns)
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None

    def take(self, epoch: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of an epoch; those of later ones stay."""
        while (batch := self._next()) is not None:
            epochs = batch.column(0)
            now = pc.sum(pc.less_equal(epochs, epoch)).as_py()
            if now:
                yield batch.slice(0, now)
            if now < batch.num_rows:
                self._rest = batch.slice(now)
                return

    def _next(self) -> pa.RecordBatch | None:
        batch, self._rest = self._rest, None
        if batch is not None:
            return batch
        if self._batches is None:
            self._batches = self._read()
        return next(self._batches, None)

    def _read(self) -> Iterator[pa.RecordBatch]:
        return _batches(self._path, self._columns)


def columns_of(files: Sequence[InternalFile], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of all that was sent to one partition, in no order. Raises as `InternalReader.epoch` does."""
    for file in files:
        yield from _batches(file.path, columns)


def _batches(path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        with open_verified(path) as parquet:
            for batch in parquet.iter_batches(batch_size.read_rows(), columns=list(columns)):
                yield batch.select(list(columns))
    except UNREADABLE as error:
        message = f"the internal log file {path} cannot be read: {error}. Nothing was committed: run again"
        raise StorageError(message) from error
