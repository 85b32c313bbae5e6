"""Read those records of logs from which a row may be made: records since a time, of one key, or with given offsets.

Row groups are skipped if their statistics exclude such records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.contracts.tasks import LogFile
from rewindow.engine.worker.arrow_rows import arrow_schema, decode
from rewindow.engine.worker.changelog_reader import statistics_of
from rewindow.engine.worker.checksums import UNREADABLE, open_verified, unreadable
from rewindow.engine.worker.log_reader import ordered_batches, with_columns
from rewindow.engine.worker.provenance.behind import LogRow
from rewindow.errors import DataError
from rewindow.storage.locations import filesystem_of
from rewindow.streams.ordering import Rows
from rewindow.streams.serde.types_to_columns import LogShapes

_BLOCK = 64
"""A clock is read again after this many rows. Smaller blocks would exclude few more rows."""
_Mask = Callable[[pa.Table], Any]
"""A function that returns a mask of the rows of a table to read."""


@dataclass(frozen=True)
class Only:
    """Selects the records of ``key``, and all records whose timestamp is above ``clock()`` when they are read."""

    key: Any
    clock: Callable[[], int]


@dataclass(frozen=True)
class LogRecords:
    """The logs of a job's feed.

    ``bounds(topic, partition, epoch)`` returns the epoch's offsets ``[start, end)``. ``files(topic, partition, start, end)``
    returns the files that contain these offsets.
    """

    shapes: LogShapes
    bounds: Callable[[str, int, int], tuple[int, int]]
    files: Callable[[str, int, int, int], Sequence[LogFile]]

    def epoch(
        self,
        topic: str,
        partition: int,
        epoch: int,
        since_ms: int | None,
        is_done: Callable[[int], bool],
        only: Only | None = None,
    ) -> Iterator[Rows]:
        """Yield those rows of an epoch whose order key is at least ``since_ms`` and which ``only`` selects.

        ``is_done`` gets an offset, and returns whether all records from this offset on are unwanted.
        """
        start, end = self.bounds(topic, partition, epoch)
        if end <= start:
            return
        shapes, files = self.shapes[topic], self.files(topic, partition, start, end)
        names = ["offset", "timestamp", *shapes[0].names, *shapes[1].names]
        highest = -1
        if since_ms is not None:
            start = _first_since(files, start, end, since_ms)
        for batch in ordered_batches(topic, files, start, end, names, values=shapes[1].columns):
            if is_done(batch.column(0)[0].as_py()):
                return
            running = np.maximum(np.maximum.accumulate(np.asarray(batch.column(1))), highest)
            highest = int(running[-1])
            mask = running >= (since_ms or 0)
            if only is None:
                if mask.any():
                    yield self._rows(topic, batch.filter(pa.array(mask)), running[mask])
                continue
            own = self.key_columns(topic, only.key)
            is_own = np.asarray(_is_key(batch, own)) if own is not None else np.zeros(len(running), bool)
            times = np.asarray(batch.column(1))
            for first in range(0, len(running), _BLOCK):
                if is_done(batch.column(0)[first].as_py()):
                    return
                part = slice(first, first + _BLOCK)
                chosen = mask[part] & (is_own[part] | (times[part] > only.clock()))
                if chosen.any():
                    some = batch.slice(first, _BLOCK).filter(pa.array(chosen))
                    yield self._rows(topic, some, running[part][chosen])

    def at(self, topic: str, partition: int, offsets: Sequence[int]) -> Iterator[LogRow]:
        """Return the records with these offsets, in order."""
        if not offsets:
            return
        key, value = self.shapes[topic]
        wanted = pa.array(offsets, pa.int64())
        table = self._matching(
            topic,
            self.files(topic, partition, offsets[0], offsets[-1] + 1),
            [*key.names, *value.names],
            {"offset": (offsets[0], offsets[-1])},
            lambda rows: pc.is_in(rows["offset"], wanted),
        )
        rows = self._rows(topic, table, np.zeros(table.num_rows, np.int64))
        yield from map(LogRow._make, zip(rows.offsets, rows.timestamps, rows.keys, rows.values, strict=True))

    def of_key(
        self, topic: str, partition: int, key: Any, bounds: tuple[int, int], times: tuple[int, int] | None = None
    ) -> Mapping[int, int]:
        """Return the timestamps of a key's records, by offset.

        Only records with offsets within ``bounds`` (``[start, end)``) and timestamps within ``times`` (both ends inclusive)
        count.
        """
        own, (start, end) = self.key_columns(topic, key), bounds
        if own is None or end <= start:
            return {}
        ranges: dict[str, tuple[Any, Any]] = {"offset": (start, end - 1)}
        if times is not None:
            ranges["timestamp"] = times
        ranges |= {name: (value, value) for name, value in own.items() if value.__class__ in (int, str)}
        files = self.files(topic, partition, start, end)
        table = self._matching(topic, files, list(own), ranges, lambda rows: _is_key(rows, own))
        return dict(zip(table["offset"].to_pylist(), table["timestamp"].to_pylist(), strict=True))

    def newest(self, topic: str, partition: int, epoch: int, offsets: Sequence[int]) -> list[int]:
        """Return, for each of the ascending ``offsets``, the highest timestamp in the epoch up to that offset."""
        start, end = self.bounds(topic, partition, epoch)[0], offsets[-1] + 1
        files = self.files(topic, partition, start, end)
        batches = list(ordered_batches(topic, files, start, end, ["offset", "timestamp"]))
        running = np.maximum.accumulate(np.concatenate([np.asarray(batch.column(1)) for batch in batches]))
        return [int(running[offset - start]) for offset in offsets]

    def key_columns(self, topic: str, key: Any) -> Mapping[str, Any] | None:
        """Return a key as a mapping from the log's key columns to values; None if the key does not fit these columns."""
        shape = self.shapes[topic][0]
        try:
            return dict(zip(shape.names, shape.encode_checked(key), strict=True))
        except (DataError, ValueError):
            return None

    def _matching(
        self,
        topic: str,
        files: Iterable[LogFile],
        columns: Sequence[str],
        ranges: Mapping[str, tuple[Any, Any]],
        mask: _Mask,
    ) -> pa.Table:
        """Return the rows that ``mask`` selects and whose offsets and timestamps are within ``ranges``, sorted by offset.

        ``ranges`` maps a column to its smallest and largest value. Ranges of other columns only serve to skip row groups.
        """
        names = list(dict.fromkeys(("offset", "timestamp", *columns)))
        shapes = self.shapes[topic]
        types = {field.name: field for field in arrow_schema((*shapes[0].columns, *shapes[1].columns))}
        fields = [types.get(name, pa.field(name, pa.int64())) for name in names]
        parts = [pa.schema(fields).empty_table()]
        for file in files:
            try:
                metadata = _metadata(file.path)
                groups = [n for n in range(metadata.num_row_groups) if _may_have(metadata.row_group(n), ranges)]
                if not groups:
                    continue
                with open_verified(file.path) as parquet:
                    for group in groups:
                        stored = parquet.read_row_group(group, columns=names)
                        rows = with_columns(stored, names, shapes[1].columns)
                        within = pc.and_(
                            pc.greater_equal(rows["offset"], file.first), pc.less_equal(rows["offset"], file.last)
                        )
                        for name in ("offset", "timestamp"):
                            if name in ranges:
                                low, high = ranges[name]
                                within = pc.and_(
                                    within, pc.and_(pc.greater_equal(rows[name], low), pc.less_equal(rows[name], high))
                                )
                        rows = rows.filter(within)
                        parts.append(rows.filter(mask(rows)))
            except UNREADABLE as error:
                raise unreadable(topic, file.path, error) from error
        return pa.concat_tables(parts).sort_by("offset").combine_chunks()

    def _rows(self, topic: str, rows: Any, running: Any) -> Rows:
        key, value = self.shapes[topic]
        columns = [
            rows.column(name).combine_chunks() if isinstance(rows, pa.Table) else rows.column(name)
            for name in rows.schema.names
        ]
        width = 2 + len(key.columns)
        keys, values = (
            decode(key, columns[2:width], rows.num_rows),
            decode(value, columns[width:], rows.num_rows),
        )
        return Rows(columns[0].to_pylist(), columns[1].to_pylist(), running.tolist(), keys, values)


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table. All rows have the same columns."""
    return pa.Table.from_pylist([dict(row) for row in rows])


def _is_key(rows: pa.Table, own: Mapping[str, Any]) -> Any:
    """Return a mask of the rows that have a certain key. ``own`` maps the key columns to the key's values."""
    is_equal: Any = None
    for name, value in own.items():
        same = _is_value(rows[name], value)
        is_equal = same if is_equal is None else pc.and_(is_equal, same)
    return is_equal


def _is_value(column: Any, value: Any) -> Any:
    """Return a mask of the items of a column that equal a value. Unlike in Arrow, null equals null and NaN equals NaN."""
    if value is None:
        return pc.is_null(column)
    is_nan = isinstance(value, float) and math.isnan(value)
    same = pc.is_nan(column) if is_nan else pc.equal(column, pa.scalar(value, column.type))
    return pc.fill_null(same, fill_value=False)


def _first_since(files: Sequence[LogFile], start: int, end: int, since_ms: int) -> int:
    """Return an offset in ``[start, end]``. All records before this offset have timestamps below ``since_ms``."""
    offset = end
    for file in files:
        metadata = _metadata(file.path)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            offsets, times = (statistics_of(group, name) for name in ("offset", "timestamp"))
            if offsets is None or times is None:
                return start
            if times.max >= since_ms and offsets.max >= start:
                offset = min(offset, max(offsets.min, start))
    return offset


def _may_have(group: Any, ranges: Mapping[str, tuple[Any, Any]]) -> bool:
    for name, (low, high) in ranges.items():
        statistics = statistics_of(group, name)
        if statistics is not None and (statistics.min > high or statistics.max < low):
            return False
    return True


def _metadata(path: str) -> Any:
    """Return a file's footer. The checksum of the file is not verified until rows are read."""
    system, location = filesystem_of(path)
    with system.open_input_file(location) as file:
        return pq.ParquetFile(file).metadata
