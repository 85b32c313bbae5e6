"""Find the records from which a row was made: replay the row's task until it sends the row, then check the records found.

The check replays only these records. If this replay does not send the row again, then rows that a table replaced, or entries
of other keys, also contributed to the row. In this case their records are added, and the check is repeated. The result says
whether a check succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import isnan
from typing import Any, NamedTuple, Protocol

from rewindow.contracts.tasks import Epoch
from rewindow.engine.worker.provenance.origins import Cause, Depth, causes_of
from rewindow.engine.worker.provenance.task_replay import Drop, ReadLog, Sent, Traced, encoded
from rewindow.engine.worker.provenance.watcher import OnWrite
from rewindow.streams.ordering import Rows
from rewindow.streams.record import UNKNOWN, Windowed
from rewindow.streams.task import Task


class LogRow(NamedTuple):
    """A record of a log."""

    offset: int
    timestamp: int
    key: Any
    value: Any


class Records(Protocol):
    """The logs that a replay reads."""

    def at(self, topic: str, partition: int, offsets: Sequence[int]) -> Iterable[LogRow]:
        """Return the records with these offsets, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """The output row to be explained. ``columns`` maps the names of its columns, with ``_timestamp``, to their values.

    ``equal_before`` is the number of equal rows that precede the row in its epoch.
    """

    columns: Mapping[str, Any]
    epoch: int
    equal_before: int = 0

    def is_like(self, columns: Mapping[str, Any]) -> bool:
        """Return whether a replayed row has the same values as this one.

        ``columns`` maps the names of its columns to their values.
        """
        return all(_equal(self.columns[name], columns[name]) for name in columns)


@dataclass(frozen=True, slots=True)
class Behind:
    """The records and punctuations from which a row was made.

    ``records`` contributed to the row, in the order in which they were processed. ``clocks`` are records that did not
    contribute, but advanced a clock or precede the row's window. ``sent`` is the event (a record, a punctuation or the end of
    an epoch) that the task was handling when it sent the row. ``senders`` are the records of logs that led to ``sent``.
    ``is_released`` is true if ``sent`` is no record, or if it only released a row that was waiting in a store.
    ``is_checked``: whether a replay of only the records ``named`` sent the row again. ``is_exact``: whether each of
    ``records`` certainly contributed.
    """

    sent: Cause
    is_released: bool
    records: Sequence[Cause]
    punctuations: Sequence[Cause]
    clocks: Sequence[Cause]
    senders: Sequence[Cause]
    is_checked: bool
    is_exact: bool

    @property
    def named(self) -> list[Cause]:
        """The ``records``, ``clocks`` and ``senders`` together, in the order of the replay."""
        return _in_order([*self.records, *self.clocks, *self.senders])


class Search:
    """Finds the wanted row among the rows that a replay sends."""

    def __init__(self, traced: Traced, wanted: Wanted) -> None:
        self._shapes, self._wanted = traced.shapes, wanted
        self._before = wanted.equal_before
        self._task: Task | None = None
        self.sent: Sent | None = None

    def follow(self, task: Task) -> None:
        """Note the task that begins now, so that `clock_of` can read its clocks."""
        self._task = task

    def clock_of(self, nodes: Iterable[str]) -> int:
        """Return the earliest of the clocks that these nodes of the task have now."""
        times = {} if self._task is None else self._task.task_context.node_times
        return min(times.get(node, UNKNOWN) for node in nodes)

    def take(self, sent: Sent) -> None:
        """Compare a row that the replay sends with the wanted row."""
        if self.is_over(sent.epoch) or sent.epoch < self._wanted.epoch:
            return
        if self._wanted.is_like(encoded(self._shapes, sent.record)):
            self.sent = None if self._before else sent
            self._before -= 1

    @property
    def is_done(self) -> bool:
        """Whether the replay has sent the wanted row."""
        return self.sent is not None

    def is_over(self, epoch: int) -> bool:
        """Return whether no record of an epoch can lead to the wanted row, so that none of them need be replayed."""
        return self.is_done or epoch > self._wanted.epoch


def find(
    traced: Traced,
    epochs: Sequence[Epoch],
    read: Callable[[Search], ReadLog],
    records: Records,
    wanted: Wanted,
    drop: Callable[[Drop], None] | None = None,
    on_write: OnWrite | None = None,
) -> Behind | None:
    """Return the records from which the wanted row was made; None if the replay does not send this row.

    ``read`` gets the search, so that it can stop reading once the row has been sent. ``drop`` and ``on_write`` are passed to
    `Traced.replay`.
    """
    search = Search(traced, wanted)
    traced.replay(epochs, read(search), search.take, drop, on_write, search.follow)
    if search.sent is None:
        return None
    for depth in Depth:
        for with_edge, with_clocks in ((False, False), (True, False), (False, True), (True, True)):
            behind = _behind(search.sent, traced, depth, with_clocks=with_clocks, with_edge=with_edge)
            if _gives_it_again(traced, epochs, records, wanted, behind):
                return behind
    return replace(behind, is_checked=False, is_exact=False)


def _behind(sent: Sent, traced: Traced, depth: Depth, *, with_clocks: bool, with_edge: bool) -> Behind:
    """Return the records and punctuations from which a row was made.

    ``is_checked`` is already true in the result, although the caller still has to check it. ``with_clocks``: also include the
    records that led to the highest timestamp so far, which decides the task's stream time. ``with_edge``: also include the
    record just before the row's window. The window does not contain this record, but a sliding window may begin right after
    it.
    """
    external = traced.external
    own = sent.origin.cause
    is_released = sent.is_released or not own.is_record
    above_row = causes_of(sent.origin, depth, is_released=is_released)
    records = _external([*above_row.causes, *(() if is_released else (own,))], external)
    punctuations = {cause for cause in [*above_row.causes, own] if cause.node is not None}
    clocks = {cause._replace(node=None, due_ms=-1) for cause in punctuations if cause.topic in external}
    timed = [*(sent.schedule if punctuations else ()), *((sent.latest,) if sent.latest and with_clocks else ())]
    for cause in timed:
        clocks |= _external([cause.cause, *causes_of(cause, depth).causes], external)
    if with_edge and sent.record.key.__class__ is Windowed:
        far = causes_of(sent.origin, Depth.FAR).causes
        clocks |= {
            cause for cause in _external(far, external) if cause.timestamp == sent.record.key.window.start_ms - 1
        }
    senders = {own._replace(node=None, due_ms=-1)} if own.topic in external else set()
    if sent.origin.source is not None:
        above = causes_of(sent.origin.source, depth).causes
        senders |= _external([sent.origin.source.cause, *above], external)
    return Behind(
        own,
        is_released,
        _in_order(records),
        sorted(punctuations, key=lambda cause: (cause.epoch, cause.due_ms)),
        _in_order(clocks - records - senders),
        _in_order(senders),
        is_checked=True,
        is_exact=above_row.is_sure and depth is not Depth.FAR,
    )


def _external(causes: Iterable[Cause], topics: Collection[str]) -> set[Cause]:
    """Return the causes that are records of these topics."""
    return {cause for cause in causes if cause.is_record and cause.topic in topics}


def _gives_it_again(traced: Traced, epochs: Sequence[Epoch], records: Records, wanted: Wanted, behind: Behind) -> bool:
    named = behind.named
    search = Search(traced, Wanted(wanted.columns, wanted.epoch))
    first_epoch = min((cause.epoch for cause in named), default=wanted.epoch)
    traced.replay(
        [epoch for epoch in epochs if first_epoch <= epoch.number <= wanted.epoch], only(records, named), search.take
    )
    return search.is_done


def only(records: Records, named: Iterable[Cause]) -> ReadLog:
    """Return a function that reads only the records in ``named``."""
    chosen: dict[tuple[str, int, int], dict[int, int]] = {}
    for cause in named:
        if cause.topic is not None:
            chosen.setdefault((cause.topic, cause.partition, cause.epoch), {})[cause.offset] = cause.order_ms

    def read(topic: str, partition: int, epoch: int) -> Iterator[Rows]:
        orders = chosen.get((topic, partition, epoch))
        if orders:
            rows = list(records.at(topic, partition, sorted(orders)))
            offsets, timestamps, keys, values = zip(*rows, strict=True)
            yield Rows(offsets, timestamps, [orders[offset] for offset in offsets], keys, values)

    return read


def _in_order(causes: Iterable[Cause]) -> list[Cause]:
    """Return the causes that are records, in the order of the replay, without duplicates."""
    ordered = sorted(
        causes,
        key=lambda cause: (cause.epoch, cause.order_ms, cause.sub_topology, cause.partition, cause.rank, cause.offset),
    )
    return [next(same) for _, same in groupby(ordered, key=lambda cause: (cause.topic, cause.partition, cause.offset))]


def _equal(value: Any, other: Any) -> bool:
    if value.__class__ is float and other.__class__ is float and isnan(value):
        return isnan(other)
    return bool(value == other)
