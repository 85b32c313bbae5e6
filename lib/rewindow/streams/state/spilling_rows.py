"""What stores that keep several rows a key, or rows by time, have in common when they are larger than their memory.

Rules of this file:

1. A row is in memory or on the spill, never in both. The rows of a key come into memory together, when the key is
   asked for: in memory the store is what it would be if there were no others.
2. When memory is full, all of it goes to the spill, in the order of the rows' bytes, and is empty again. What changed
   since the checkpoint is marked there, by the number of the checkpoint.
3. A row has the time at which it is over, or due, on the spill. What is over is seen by nobody, and leaves the spill
   when nobody can take back that it is: so it makes no difference when.
4. Nobody can tell it from a store in memory, but by its speed. Memory holds the rows of one key at least.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rewindow.errors import DataError, InvariantError
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.spill import ALL, GONE, NEW, PAGE, STEP, Changes, OpenTimedSpill, Row, TimedSpill
from rewindow.streams.state.spilling_key_value import SAMPLE, TEXT_BYTES
from rewindow.streams.state.stores import Store, StoreBuilder

ROW_BYTES = 900
"""What a row costs in memory besides its text, about: its tuples, and the entries by which it is found."""
NEVER = MAX_MS + 1
NUMBER = struct.Struct(">q")


def group_bytes(key: Any) -> bytes:
    """Return the bytes with which the rows of a key begin, and no others: in the order of the keys' bytes."""
    return encode_key(key).replace(b"\0", b"\0\xff") + b"\0\0"


class SpillingRows(Store):
    """The part of such a store that is the same for all kinds; it stands before the kind's own class."""

    _keys: KeyType

    def __init__(self, builder: StoreBuilder, spill: OpenTimedSpill, memory_bytes: int) -> None:
        """``spill`` is opened when it is needed first. The builder is bound: it has a codec."""
        super().__init__(builder)
        if builder.codec is None:
            raise InvariantError(f"the store {builder.name!r} goes to a spill, and its types are not bound")
        self._codec = builder.codec
        self._open, self._memory_bytes = spill, memory_bytes
        self._spill: TimedSpill | None = None
        self._here: dict[Any, None] = {}
        """The keys whose rows are in memory, if they have any."""
        self._left = 1
        """How many keys may be asked for until it is looked whether memory is full."""
        self._resting = 0
        """How many live rows the spill has, with those that are over and still there."""
        self._first_due = NEVER
        """No row on the spill is due before that."""
        self._checkpoint = 1
        self._is_held = False
        self._half_here: list[Any] = []
        """Keys of which rows were left on the spill that may turn out not to be over."""

    @abstractmethod
    def _keys_here(self) -> Collection[Any]:
        """Return the keys that have rows in memory."""

    if TYPE_CHECKING:  # the kind's own class has it

        def _rows(self, keys: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
            """Yield the rows that keys have in memory; of each key in the order of their numbers."""
            raise NotImplementedError

    @abstractmethod
    def _count_here(self) -> int:
        """Return how many rows are in memory."""

    @abstractmethod
    def _admit(self, row_key: Any, value: Any) -> None:
        """Take a row into memory as it is."""

    @abstractmethod
    def _forget_all(self) -> None:
        """Forget all rows that are in memory, and nothing else."""

    @abstractmethod
    def _place(self, row_key: Any) -> tuple[Any, Sequence[int]]:
        """Return the key to which a row belongs, and the numbers that tell it from the key's other rows, in order."""

    def _due_at(self, row_key: Any, value: Any) -> int | None:
        """Return when a row is due, if anybody asks for rows by that."""

    def _over_ms(self) -> int:
        """Return up to when what is due is over."""
        return UNKNOWN

    def _touch(self, key: Any) -> None:
        self._left -= 1
        if self._left <= 0 and not self._is_held:
            self._make_room()
        if self._spill is not None and key not in self._here:
            self._bring(self._spill, key)

    def _bring(self, spill: TimedSpill, key: Any) -> None:
        self._here[key] = None
        try:
            start = group_bytes(self._keys.like_known(key))[:-1]
        except DataError:
            return  # it has no bytes, so it was never put
        after, until, over_ms = start, start + b"\x01", self._over_ms()
        while page := spill.page((after, until), PAGE):
            after = page[-1][0]
            moved = [row for row in page if row[3] is None or row[3] > over_ms]
            if len(moved) < len(page) and self._is_held:
                self._half_here.append(key)
            for _, text, number, _ in moved:
                row_key = self._codec.load_key(text) if number & GONE else None
                if row_key is None:
                    row_key, value = self._codec.load(text)
                    self._admit(row_key, value)
                    self._resting -= 1
                if number // STEP == self._checkpoint:
                    self._changed[row_key] = bool(number & NEW)
            self._left -= len(moved)
            spill.forget(row[0] for row in moved)

    def _make_room(self) -> None:
        """Empty memory if it is full. Only now and then it is looked whether it is."""
        keys = self._keys_here()
        sample = islice(self._rows(islice(keys, SAMPLE)), SAMPLE)
        most, here = self._most_rows(list(sample)), self._count_here() + max(0, len(self._here) - len(keys))
        if here >= most:
            self._empty()
            here = 0
        self._left = max(1, min(most - here, max(SAMPLE, here)))

    def _most_rows(self, sample: Sequence[tuple[Any, Any]]) -> int:
        """Return how many rows such as these memory has room for, about."""
        texts = sum(len(self._codec.dump(*row)) for row in sample if row[1] is not None)
        return max(1, self._memory_bytes // (ROW_BYTES + TEXT_BYTES * texts // max(1, len(sample))))

    def _opened(self) -> TimedSpill:
        if self._spill is None:
            self._spill = self._open(self.name)
        return self._spill

    def _empty(self) -> None:
        spill = self._opened()
        self._resting += self._count_here()
        spill.write(self._leaving())
        gone = {self._bytes_of(row_key): self._codec.dump_key(row_key) for row_key in self._changed}
        spill.write((place, gone[place], self._gone_now, None) for place in sorted(gone))
        self._changed.clear()
        self._here.clear()
        self._forget_all()
        self._drop_what_is_over(spill)

    def _leaving(self) -> Iterator[Row]:
        """Yield the rows in memory; what is left of the changes is gone."""
        for row_key, value in self._rows(by_bytes(self._keys_here())):
            is_new = self._changed.pop(row_key, None)
            number = 0 if is_new is None else STEP * self._checkpoint + is_new
            yield self._row(row_key, value, number)

    def _row(self, row_key: Any, value: Any, number: int) -> Row:
        due_ms = self._due_at(row_key, value)
        if due_ms is not None and due_ms < self._first_due:
            self._first_due = due_ms
        return self._bytes_of(row_key), self._codec.dump(row_key, value), number, due_ms

    @property
    def _gone_now(self) -> int:
        """The number of a row that is gone since the checkpoint."""
        return STEP * self._checkpoint + GONE

    def _bytes_of(self, row_key: Any) -> bytes:
        key, numbers = self._place(row_key)
        return group_bytes(key) + b"".join(map(NUMBER.pack, numbers))

    def _drop_what_is_over(self, spill: TimedSpill) -> None:
        over_ms = self._over_ms()
        if over_ms >= self._first_due:
            self._resting -= spill.count_due(over_ms)
            spill.forget_due(over_ms)
            self._look_for_due(spill)

    def _look_for_due(self, spill: TimedSpill) -> list[Row]:
        """Return the row that is due first, if there is any."""
        first = spill.due(MAX_MS, 1)
        self._first_due = first[0][3] or 0 if first else NEVER
        return first

    def _take_due(self, until_ms: int) -> Iterator[tuple[Any, Any]]:
        """Take rows off the spill that are due, by time and key bytes, noting that they are gone."""
        spill = self._opened()
        while page := spill.due(until_ms, PAGE):
            self._resting -= len(page)
            yield from self._strike(spill, page)
        self._look_for_due(spill)

    def _strike(self, spill: TimedSpill, page: Sequence[Row]) -> list[tuple[Any, Any]]:
        """Note that rows of the spill are gone; return them. Of what came after the checkpoint nothing is left."""
        rows = [self._codec.load(row[1]) for row in page]
        spill.forget(place for place, _, number, _ in page if self._is_new(number))
        spill.write(
            (place, self._codec.dump_key(row_key), self._gone_now, None)
            for (place, _, number, _), (row_key, _) in zip(page, rows, strict=True)
            if not self._is_new(number)
        )
        return rows

    def _is_new(self, number: int) -> bool:
        return number // STEP == self._checkpoint and bool(number & NEW)

    def _resting_rows(self) -> Iterator[Row]:
        """Yield the live rows of the spill, by their bytes."""
        after, over_ms = None, self._over_ms()
        while self._spill is not None and (page := self._spill.page((after, None), PAGE)):
            after = page[-1][0]
            yield from (row for row in page if not row[2] & GONE and (row[3] is None or row[3] > over_ms))

    def _live_keys(self) -> Iterable[Any]:
        return chain(self._keys_here(), (self._place(self._codec.load_key(row[1]))[0] for row in self._resting_rows()))

    def __len__(self) -> int:
        """See the kind's own."""
        if self._spill is None:
            return self._count_here()
        if self._is_held:
            return self._count_here() + self._resting - self._spill.count_due(self._over_ms())
        self._drop_what_is_over(self._spill)
        return self._count_here() + self._resting

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`. However many rows there are, memory holds a few of them."""
        super().restore((), clock_ms)  # type: ignore[safe-super]  # the kind's own
        taken: dict[Any, Any] = {}
        look_at = 1
        for row_key, value in rows:
            taken[row_key] = value
            if len(taken) >= look_at:
                most = self._most_rows(list(islice(taken.items(), SAMPLE)))
                look_at = min(most, 2 * max(SAMPLE, len(taken)))
                if len(taken) >= most:
                    self._lay_down(taken)
                    taken = {}
        if self._spill is None:
            super().restore(taken.items(), clock_ms)  # type: ignore[safe-super]
        else:
            self._lay_down(taken)
            self._resting = self._spill.count(ALL)

    def _lay_down(self, taken: dict[Any, Any]) -> None:
        spill, over_ms = self._opened(), self._over_ms()
        spill.forget(sorted(self._bytes_of(row_key) for row_key, value in taken.items() if value is None))
        rows = []
        for row_key, value in taken.items():
            if value is not None:
                self._keys.take(self._place(row_key)[0])  # so that the form of the keys is known
                rows.append(self._row(row_key, value, 0))
        spill.write(sorted((row for row in rows if row[3] is None or row[3] > over_ms), key=itemgetter(0)))

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. They are read one by one, before anything else is written."""
        if self._spill is None:
            return super().take_changes()  # type: ignore[safe-super]
        self._empty()
        self._checkpoint += 1
        return Changes(self._spill, self._codec, STEP * (self._checkpoint - 1))

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        if self._spill is None:
            return super().contents()  # type: ignore[safe-super]
        resting = (self._codec.load(row[1]) for row in self._resting_rows())
        here = self._rows(by_bytes(self._keys_here()))
        return iter(sorted(chain(resting, here), key=lambda row: self._bytes_of(row[0])))

    def hold(self, *, is_held: bool) -> None:
        """Keep all in memory, for as long as an attempt may be taken back."""
        self._is_held = is_held
        if not is_held:
            for key in self._half_here:
                self._here.pop(key, None)
            self._half_here.clear()
            if self._left <= 0:
                self._make_room()
