"""The partition-local reader: a task opens the files of its partition and reads them in offset order, without a shuffle.

Landed files are ordered by offset and do not overlap. But another writer may have rewritten them: OPTIMIZE merges files in
any order. So the reader checks that each batch continues at the next offset. If a batch does not, the reader sorts the rows
of the overlapping files, one range of offsets after the other. After these files, it reads batch by batch again. Sorting does
not change the rows (L3). A missing or duplicate offset is always an error. Row groups without wanted offsets are skipped.

The files of a repartition topic were written by upstream tasks of this run, and are read epoch by epoch. Each file has the
records of one upstream task in epoch order, so it is opened only once. The reader sorts the rows of an epoch as D21 requires,
and numbers them. From then on, they are treated like the records of any other topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.tasks import InternalFile, LogFile, LogSlice
from rewindow.engine.worker import batch_size
from rewindow.engine.worker.arrow_rows import Decodable, DecodedLater, arrow_type, decode, shared_texts
from rewindow.engine.worker.checksums import UNREADABLE, open_verified, unreadable, uses_threads
from rewindow.errors import StorageError
from rewindow.storage.progress import counted
from rewindow.streams.ordering import Rows
from rewindow.streams.serde.schema import Column, Shape

SORTED_ROWS = 2_000_000
"""At most this many rows of rewritten files are sorted at once. This bounds a task's memory."""
SPOOLED = ".arrow"
"""The suffix of the files that the shuffle reader writes."""
_META = ("_epoch", "_order", "_number", "_timestamp")
_ORDER = [("_order", "ascending"), ("_upstream", "ascending"), ("_number", "ascending")]


class LogReader:
    """A reader of one task's log, epoch after epoch."""

    def __init__(self, topic: str, log: LogSlice, key: Shape, value: Shape) -> None:
        """Prepare to read. Opens no file before the first row is requested."""
        self._bounds = iter(log.bounds)
        spans = [bound for bound in log.bounds if bound[1] > bound[0]]
        start, end = (spans[0][0], spans[-1][1]) if spans else (0, 0)
        self._key, self._value = key, value
        columns = ["offset", "timestamp", *key.names, *value.names]
        texts = [column.name for column in (*key.columns, *value.columns) if column.type == "string"]
        self._batches = ordered_batches(topic, log.files, start, end, columns, repeating=texts, values=value.columns)
        self._rest: list[Decodable] | None = None

    def epoch(self) -> Iterator[Rows]:
        """Yield the rows of the next epoch, batch by batch. Consume all batches before requesting another epoch."""
        offset, end = next(self._bounds)
        while offset < end:
            columns = self._rest or [shared_texts(column) for column in next(self._batches).columns[1:]]
            count = min(end - offset, len(columns[0]))
            self._rest = [column[count:] for column in columns] if count < len(columns[0]) else None
            yield _decoded(offset, [column[:count] for column in columns], self._key, self._value)
            offset += count


def ordered_batches(
    topic: str,
    files: Sequence[LogFile],
    start: int,
    end: int,
    columns: Sequence[str],
    *,
    dictionary: Sequence[str] = (),
    repeating: Sequence[str] = (),
    values: Sequence[Column] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with offsets in ``[start, end)``, in offset order. The first of ``columns`` is the offset.

    Columns in ``dictionary`` may be yielded dictionary-encoded, as in the files. The same holds for columns in ``repeating``,
    if that saves time. A file may be older than a column in ``values``; its rows then have null in this column.

    Raises `StorageError` (74) for a missing or duplicate offset, or a file that cannot be read.
    """
    expected = start
    for group in _overlapping([file for file in files if file.first < end and file.last >= start]):
        # The expected offset is missing. No later file can contain it, because the groups are ordered by offset.
        if group[0].first > expected:
            break
        until = min(end, max(file.last for file in group) + 1)
        for batch in counted(_batches(topic, group, columns, (expected, until), dictionary, repeating, values)):
            wanted = _between(batch, expected, until)
            if wanted.num_rows == 0:
                continue
            # The batch does not continue at the next offset, because another writer has rewritten these files in another order.
            if not _continues(wanted.column(0), expected):
                break
            yield wanted
            expected += wanted.num_rows
        # The remaining rows of the group are sorted, a bounded number of rows at a time.
        while expected < until:
            some = min(until, expected + SORTED_ROWS)
            yield from _sorted_batches(topic, group, columns, (expected, some), values)
            expected = some
    if expected < end:
        raise _not_exactly_once(topic, expected)


def with_columns(rows: Any, columns: Sequence[str], values: Sequence[Column]) -> Any:
    """Return the columns ``columns`` of a file's rows (a batch or a table).

    A file without a column in ``values`` is older than the column, so the column is null (ADR-77). Raises KeyError if the
    file lacks any other column.
    """
    names = rows.schema.names
    if all(name in names for name in columns):
        return rows.select(list(columns))
    kinds = {column.name: column.type for column in values}
    arrays = [
        rows.column(name) if name in names else pa.nulls(rows.num_rows, arrow_type(kinds[name])) for name in columns
    ]
    return type(rows).from_arrays(arrays, names=list(columns))


class InternalReader:
    """A reader of one internal topic of one task. The caller requests epochs in ascending order, and may skip some."""

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
            yield _decoded(next_offset, columns, self._key, self._value)


class SortedEpochs:
    """The rows of one internal topic of one task, epoch by epoch, in the order of D21."""

    def __init__(self, files: Sequence[InternalFile], columns: Sequence[str]) -> None:
        """Prepare to read some columns."""
        self._files = [(file.upstream, _EpochByEpoch(file.path, [*_META, *columns])) for file in files]

    def take(self, epoch: int) -> pa.Table | None:
        """Return the rows of an epoch, with the column ``_timestamp``; None if there are no rows.

        Raises `StorageError` (74) for a file that cannot be read.
        """
        parts = []
        for upstream, file in self._files:
            for batch in file.take(epoch):
                upstreams = pa.repeat(pa.scalar(upstream, pa.int64()), batch.num_rows)
                parts.append(pa.Table.from_batches([batch]).append_column("_upstream", upstreams))
        return pa.concat_tables(parts).sort_by(_ORDER) if parts else None


def columns_of(files: Sequence[InternalFile], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of all records of a partition, in no particular order. Raises the errors of `InternalReader.epoch`."""
    for file in files:
        yield from _file_batches(file.path, columns)


def _decoded(first: int, columns: Sequence[Decodable], key: Shape, value: Shape) -> Rows:
    """Decode rows that are given as columns: timestamp, key columns, value columns.

    The first row has the offset ``first``.
    """
    timestamps, width = columns[0], 1 + len(key.columns)
    times, rows = np.asarray(timestamps), len(timestamps)
    keys, values = decode(key, columns[1:width], rows), DecodedLater(value, columns[width:], rows)
    running_ms = np.maximum.accumulate(times).tolist()
    return Rows(range(first, first + rows), times.tolist(), running_ms, keys, values)


def _overlapping(files: Sequence[LogFile]) -> list[list[LogFile]]:
    """Return groups of files whose offsets overlap, ordered by first offset. Files that were not rewritten never overlap."""
    groups: list[list[LogFile]] = []
    last = -1
    for file in sorted(files, key=lambda file: (file.first, file.path)):
        if groups and file.first <= last:
            groups[-1].append(file)
        else:
            groups.append([file])
        last = max(last, file.last)
    return groups


def _batches(
    topic: str,
    files: Sequence[LogFile],
    columns: Sequence[str],
    span: tuple[int, int],
    dictionary: Sequence[str] = (),
    repeating: Sequence[str] = (),
    values: Sequence[Column] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of the row groups that may have offsets of ``span``, which is ``[first, end)``."""
    for file in files:
        if file.path.endswith(SPOOLED):
            yield from _spooled(file.path, columns)
            continue
        try:
            with open_verified(file.path, dictionary=dictionary, repeating=repeating) as parquet:
                groups = _row_groups(parquet.metadata, columns[0], span)
                batches = (
                    parquet.iter_batches(
                        batch_size.read_rows(),
                        row_groups=groups,
                        columns=list(columns),
                        use_threads=uses_threads(parquet),
                    )
                    if groups
                    else ()
                )
                for batch in batches:
                    # A rewritten file may also have offsets of landings that a new generation has dropped. Their rows are
                    # filtered out.
                    yield _between(with_columns(batch, columns, values), file.first, file.last + 1)
        except UNREADABLE as error:
            raise unreadable(topic, file.path, error) from error


def _spooled(path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file that the shuffle reader wrote.

    The file's rows are in order, and were checked when it was written.
    """
    with pa.memory_map(path) as file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number).select(list(columns))


def _row_groups(metadata: Any, column: str, span: tuple[int, int]) -> list[int]:
    """Return the row groups in which, by their statistics, a column may have values within ``span``: ``[first, end)``."""
    position = metadata.schema.names.index(column)
    wanted = []
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(position).statistics
        if statistics is None or not statistics.has_min_max or (statistics.min < span[1] and statistics.max >= span[0]):
            wanted.append(number)
    return wanted


def _sorted_batches(
    topic: str, files: Sequence[LogFile], columns: Sequence[str], span: tuple[int, int], values: Sequence[Column]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range of offsets, sorted by offset. In ``files``, they may be in any order."""
    start, end = span
    wanted = [file for file in files if file.first < end and file.last >= start]
    parts = [_between(batch, start, end) for batch in _batches(topic, wanted, columns, span, values=values)]
    rows = pa.Table.from_batches(parts) if parts else None
    if rows is None:
        raise _not_exactly_once(topic, start)
    rows = rows.sort_by(columns[0]).combine_chunks()
    offsets, expected = np.asarray(rows.column(0)), np.arange(start, end)
    if not np.array_equal(offsets, expected):
        # Find the first position at which the arrays differ. If one array is the beginning of the other, that is the position
        # after its end.
        here = min(len(offsets), len(expected))
        differs = np.flatnonzero(offsets[:here] != expected[:here])
        wrong = int(differs[0]) if len(differs) else here
        raise _not_exactly_once(
            topic, int(min(offsets[wrong : wrong + 1].tolist() + expected[wrong : wrong + 1].tolist()))
        )
    yield from rows.to_batches(batch_size.read_rows())


def _not_exactly_once(topic: str, offset: int) -> StorageError:
    return StorageError(
        "log-offset-missing",
        "log {topic!r}: offset {offset} is missing or duplicated, so the log table was changed from "
        "outside. Restore it from Delta's history, or land the source again: `rewindow land FEED --new-generation`",
        topic=topic,
        offset=offset,
    )


def _between(batch: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    offsets = batch.column(0)
    bounds = pc.min_max(offsets).as_py()
    if bounds["min"] is None or (bounds["min"] >= start and bounds["max"] < end):
        return batch
    return batch.filter(pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end)))


def _continues(offsets: pa.Array, expected: int) -> bool:
    """Return whether offsets are ``expected``, ``expected + 1``, and so on."""
    if len(offsets) == 0:
        return True
    return bool(np.array_equal(offsets, np.arange(expected, expected + len(offsets))))


class _EpochByEpoch:
    """The batches of a file whose rows are ordered by epoch."""

    def __init__(self, path: str, columns: Sequence[str]) -> None:
        self._path, self._columns = path, list(columns)
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None

    def take(self, epoch: int) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows up to and including an epoch. Rows of later epochs are kept for later calls."""
        while (batch := self._next()) is not None:
            # The rows are ordered by epoch. So the number of rows up to the epoch is the position at which to cut the batch.
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
            self._batches = _file_batches(self._path, self._columns)
        return next(self._batches, None)


def _file_batches(path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        with open_verified(path) as parquet:
            threads = uses_threads(parquet)
            batches = parquet.iter_batches(batch_size.read_rows(), columns=list(columns), use_threads=threads)
            for batch in counted(batches):
                yield batch.select(list(columns))
    except UNREADABLE as error:
        raise StorageError(
            "internal-file-unreadable",
            "cannot read the internal log file {file}: {reason}. Nothing was committed. Run the command again",
            file=path,
            reason=str(error),
        ) from error
