"""Batches: consecutive records of one topic-partition as columns, and the records that a processor sends for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import repeat
from typing import Any, NamedTuple

from rewindow.errors import DataError
from rewindow.streams.forwarding import invalid_timestamp
from rewindow.streams.record import Record, To, make_record
from rewindow.streams.serde.normalizers import are_frozen, is_frozen

Lost = Callable[["Batch", int, str, str, int], None]
"""A function that counts a dropped record. Arguments: the batch, the record's index, a metric's name, a reason, the number of
drops."""


class Columns(NamedTuple):
    """The columns of a batch, of equal length. ``values`` is a function that returns the column of values."""

    keys: Sequence[Any]
    values: Callable[[], Sequence[Any]]
    timestamps: Sequence[int]
    offsets: Sequence[int]
    stream_times_ms: Sequence[int]


class Batch:
    """Consecutive records, as columns of equal length. A record is identified by its index in the columns.

    A batch has at least one record. The number of records differs between runs, so no result may depend on it (L2).
    """

    __slots__ = (
        "_check",
        "_headers",
        "_lost",
        "_values",
        "at",
        "is_closed",
        "keys",
        "name",
        "offsets",
        "partition",
        "sent",
        "stream_times_ms",
        "timestamps",
        "to",
        "topic",
    )

    def __init__(
        self,
        name: str,
        topic: str | None,
        partition: int,
        columns: Columns,
        check: Callable[[To], None],
        lost: Lost,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        """``check`` raises `DataError` for a target that is not a child of the node; ``lost`` counts a dropped record."""
        self.name = name
        """The node."""
        self.topic = topic
        """The topic of all records; None for a record that another node sent in a punctuation."""
        self.partition = partition
        """The task's partition."""
        self.keys, self._values, self.timestamps, self.offsets, self.stream_times_ms = columns
        self._check, self._lost, self._headers = check, lost, headers
        self.at: list[int] = []
        self.sent: list[Record] = []
        self.to: dict[int, To] = {}
        """The target of each sent record, by its position in ``sent``. Records that go to all children have no entry."""
        self.is_closed = False

    @property
    def values(self) -> Sequence[Any]:
        """The values of the records. They are decoded only when this property is read."""
        return self._values()

    def __len__(self) -> int:
        """The number of records."""
        return len(self.keys)

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records."""
        columns = zip(self.keys, self.values, self.timestamps, repeat(self._headers))
        return map(make_record, columns)

    def forward(self, index: int, record: Record, *, to: To | None = None) -> None:
        """Send a record that the record at ``index`` caused. The new record passes through the nodes below after `process_batch`.

        By default the sent record gets the timestamp of the record at ``index``. Sent records leave in the order of their
        indexes; records with the same index leave in the order of the calls. Raises `DataError` where
        `ProcessorContext.forward` does, for an index that the batch does not have, and after `process_batch` has returned.
        """
        # User code may pass any object.
        given: object = record
        if not isinstance(given, Record):
            raise DataError(
                "batch-output-not-record",
                "{node} forwarded {record}: give forward(index, Record(key, value))",
                node=self.name,
                record=repr(record),
            )
        self._check_indexes((index,))
        timestamp: Any = record.timestamp
        if to is not None:
            self._check(to)
            timestamp = timestamp if to.timestamp is None else to.timestamp
            self.to[len(self.sent)] = To(to.child_name)
        if timestamp is None:
            timestamp = self.timestamps[index]
        self._check_timestamps((timestamp,))
        key, value, _, headers = record
        # The processor may still modify the value.
        if not is_frozen(value):
            value = deepcopy(value)
        self.at.append(index)
        self.sent.append(Record(key, value, timestamp, headers))

    def forward_many(
        self,
        indexes: Sequence[int],
        keys: Sequence[Any],
        values: Sequence[Any],
        timestamps: Sequence[int] | None = None,
    ) -> None:
        """Send several records to all children. The record at ``indexes[n]`` caused the one with ``keys[n]`` and ``values[n]``.

        Equivalent to one call of `forward` per record. Raises `DataError` as `forward` does, and if the columns differ in
        length.
        """
        times = [self.timestamps[index] for index in self._check_indexes(indexes)] if timestamps is None else timestamps
        check_lengths(self.name, indexes, keys, values, times)
        if timestamps is not None:
            self._check_timestamps(times)
        self.at.extend(indexes)
        self.sent.extend(map(make_record, zip(keys, frozen(values), times, repeat(()))))

    def drop(self, index: int, name: str, *, reason: str, times: int = 1) -> None:
        """Count the record at ``index`` as dropped, that is, not processed further: see `ProcessorContext.drop`."""
        self._check_indexes((index,))
        self._lost(self, index, name, reason, times)

    def outputs(self) -> Iterator[tuple[int, Record, To | None]]:
        """Iterate over the sent records in the order of their indexes, as ``(index, record, target)``."""
        order: Iterable[int] = range(len(self.at))
        if any(index > next_index for index, next_index in zip(self.at, self.at[1:], strict=False)):
            order = sorted(order, key=self.at.__getitem__)
        for position in order:
            yield self.at[position], self.sent[position], self.to.get(position)

    def _check_indexes(self, indexes: Sequence[int]) -> Sequence[int]:
        if self.is_closed:
            raise DataError(
                "forward-after-process-batch",
                "{node} forwards a batch's records after process_batch: forward them before it returns",
                node=self.name,
            )
        if not set(map(type, indexes)) <= {int}:
            raise DataError(
                "batch-index-not-int",
                "{node} gives {indexes} as indexes of a batch's records: give ints",
                node=self.name,
                indexes=repr(indexes)[:80],
            )
        if indexes and not (min(indexes) >= 0 and max(indexes) < len(self)):
            wrong = next(index for index in indexes if not 0 <= index < len(self))
            raise DataError(
                "batch-index-out-of-range",
                "{node} sends a record for index {index} of a batch of {records} records: give the index of the "
                "record that causes it, 0 to {last}",
                node=self.name,
                index=wrong,
                records=len(self),
                last=len(self) - 1,
            )
        return indexes

    def _check_timestamps(self, timestamps: Sequence[Any]) -> None:
        check_timestamps(self.name, timestamps)


def check_lengths(name: str, *columns: Sequence[Any]) -> None:
    """Raise `DataError` if columns that a node forwards differ in length."""
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise DataError(
            "batch-columns-unequal-length",
            "{node} forwards columns of {lengths} items: give each column an item per record",
            node=name,
            lengths=", ".join(map(str, lengths)),
        )


def check_timestamps(name: str, timestamps: Sequence[Any]) -> None:
    """Raise `DataError` if one of the timestamps that a node forwards is not an int of at least 0."""
    if timestamps and not (set(map(type, timestamps)) == {int} and min(timestamps) >= 0):
        raise invalid_timestamp(
            name, next(timestamp for timestamp in timestamps if timestamp.__class__ is not int or timestamp < 0)
        )


def frozen(values: Sequence[Any]) -> Sequence[Any]:
    """Return values with the mutable ones copied, because the processor may still modify values that it forwarded."""
    return values if are_frozen(values) else [v if is_frozen(v) else deepcopy(v) for v in values]
