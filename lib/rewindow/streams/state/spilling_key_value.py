"""A key-value store that is larger than its memory: what does not fit lies on a local spill, through a port.

Rules of this file:

1. Keys in memory are what counts; the spill has the rest. A key that is asked for and lies there is brought into memory.
2. When memory is full, all that changed goes to the spill, in the order of the keys' bytes, and memory is empty again.
   What was only read is forgotten: the spill has it.
3. What changed since the checkpoint is marked on the spill, by the number of the checkpoint; so memory need not know it.
4. Nobody can tell it from a store in memory, but by its speed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any
from weakref import WeakSet

from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.serde.values import copied
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.spill import ALL, GONE, NEW, STEP, Changes, Codec, OpenSpill, Row, Spill, Walk
from rewindow.streams.state.stores import StoreBuilder

ROW_BYTES = 400
"""What a row costs in memory besides its text, about: objects, and entries of two dictionaries."""
TEXT_BYTES = 3
"""What a character of its text costs in memory, about."""
SAMPLE = 64


class SpillingStore(KeyValueStore):
    """A key-value store whose memory is bound, by an estimate from a sample of its rows."""

    def __init__(self, builder: StoreBuilder, spill: OpenSpill, memory_bytes: int, keys: KeyType | None = None) -> None:
        """``spill`` is opened when it is needed first; ``keys``: of a store that this is a part of."""
        super().__init__(builder, keys)
        self.__dict__.pop("get", None)  # the short cuts of a store that is all in memory
        self.__dict__.pop("find", None)
        self._keys = keys or KeyType(builder, self._live_keys)
        self._codec = builder.codec or Codec(_dump_plain, load_value)
        self._open, self._memory_bytes = spill, memory_bytes
        self._spill: Spill | None = None
        self._look_at = max(1, min(SAMPLE, memory_bytes // ROW_BYTES))
        """How many rows there are in memory when it is looked whether they are too many."""
        self._gone: dict[Any, None] = {}
        """Keys that the spill may have, and that were deleted."""
        self._absent: Any = _NOTHING
        """The key that was looked for last, in vain."""
        self._resting = 0
        """How many rows lie on the spill and are neither in memory nor gone."""
        self._checkpoint = 1
        self._is_restoring = False
        self._is_held = False
        self._walks: WeakSet[Walk] = WeakSet()

    def get(self, key: Any) -> Any:
        """See `KeyValueStore`."""
        value = self._values.get(key)
        if value is None and self._spill is not None:
            value = self._bring(self._spill, key)
            if value is not None:
                self._make_room()
        return value if self._all_frozen else copied(value)

    find = get

    def _begin_change(self, key: Any) -> None:
        if len(self._values) >= self._look_at:
            self._make_room()
        if self._spill is not None and key not in self._values:
            self._bring(self._spill, key)
        if key not in self._changed:
            super()._begin_change(key)

    def delete(self, key: Any) -> Any:
        """See `KeyValueStore`."""
        if self._spill is None:
            return super().delete(key)
        if key not in self._values:
            self._bring(self._spill, key)
        value = super().delete(key)
        if value is not None:
            self._gone[key] = None
            if len(self._gone) >= self._look_at:
                self._make_room()
        return value

    def all(self) -> Iterator[tuple[Any, Any]]:
        """See `KeyValueStore`."""
        if self._spill is None:
            return super().all()
        if not self._is_held:
            self._empty()
        walk = Walk(self._spill, self._codec)
        self._walks.add(walk)
        if not self._is_held:
            return iter(walk)
        hidden = {*self._values, *self._gone}
        resting = ((key, value) for key, value in walk if key not in hidden)
        return merge(list(super().all()), resting, key=_bytes_of)

    def __iter__(self) -> Iterator[Any]:
        """See `KeyValueStore`."""
        return super().__iter__() if self._spill is None else (key for key, _ in self.all())

    def __len__(self) -> int:
        """See `KeyValueStore`."""
        return len(self._values) + self._resting

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`. However many rows there are, memory holds a few of them."""
        del clock_ms
        self.begin_restore()
        self.take_in(rows)
        self.end_restore()

    def begin_restore(self) -> None:
        """From now on rows of a checkpoint come."""
        self._is_restoring = True

    def take_in(self, rows: Iterable[tuple[Any, Any]]) -> None:
        """Take in some rows of a checkpoint."""
        super().restore(self._with_room(rows))

    def end_restore(self) -> None:
        """All rows of the checkpoint have come."""
        if self._spill is not None:
            self._empty()
            self._resting = self._spill.count(ALL)
        self._is_restoring = False

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. They are read one by one, before anything else is written."""
        if self._spill is None:
            return super().take_changes()
        self._empty()
        self._checkpoint += 1
        return Changes(self._spill, self._codec, STEP * (self._checkpoint - 1))

    def mark(self, key: Any) -> Callable[[], None]:
        """See `KeyValueStore`."""
        if self._spill is None:
            return super().mark(key)
        if key.__class__ is not self._keys.cls:
            key = self._keys.take(key)
        if key not in self._values:
            self._bring(self._spill, key)
        was_gone, put_back = key in self._gone, super().mark(key)

        def put_all_back() -> None:
            put_back()
            self._absent = _NOTHING
            if was_gone:
                self._gone[key] = None
            else:
                self._gone.pop(key, None)

        return put_all_back

    def hold(self, *, is_held: bool) -> None:
        """Keep all in memory, for as long as an attempt may be taken back."""
        self._is_held = is_held
        if not is_held:
            self._make_room()

    def _with_room(self, rows: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        for key, value in rows:
            if self._spill is not None and value is None:
                self._gone[key] = None  # an older row of it may lie there
            yield key, value
            self._make_room()

    def _bring(self, spill: Spill, key: Any) -> Any:
        """Bring a key that is not in memory from the spill; return its value, or None."""
        if key is self._absent or key in self._gone:
            return None
        like = self._keys.like_known(key)
        found = spill.get(encode_key(like))
        if found is None:
            self._absent = key
            return None
        row, number = found
        if number // STEP == self._checkpoint:
            self._changed[like] = bool(number & NEW)
        if number & GONE:
            self._absent = key
            return None
        value = self._codec.load(row)[1]
        if self._watches:
            self._watch(value)
        self._values[like] = value
        self._resting -= 1
        return value

    def _make_room(self) -> None:
        """Empty memory if it is full. Only now and then it is looked whether it is."""
        if self._is_held or len(self._values) + len(self._gone) < self._look_at:
            return
        most = self.most_rows(self._memory_bytes)
        if len(self._values) + len(self._gone) >= most:
            self._empty()
        self._look_at = min(most, 2 * max(SAMPLE, len(self._values)))

    def most_rows(self, memory_bytes: int) -> int:
        """Return how many rows such as the last ones so much memory has room for, about."""
        sample = list(islice(reversed(self._values.items()), SAMPLE))
        texts = sum(len(self._codec.dump(key, value)) for key, value in sample)
        return max(1, memory_bytes // (ROW_BYTES + TEXT_BYTES * texts // max(1, len(sample))))

    def _empty(self) -> None:
        """Put on the spill what it does not have as it is."""
        is_first = self._spill is None
        self._resting += len(self._values)
        spill = self._spill = self._spill or self._open(self.name)
        for walk in self._walks:
            walk.step_aside()
        forgotten = [key for key in self._gone if key not in self._values and key not in self._changed]
        spill.forget(encode_key(key) for key in forgotten)
        keys: Iterable[Any] = self._changed
        if is_first or self._is_restoring:
            keys = [*self._values, *(key for key in self._changed if key not in self._values)]
        spill.write(self._spilling(by_bytes(keys)))
        self._values.clear()
        self._changed.clear()
        self._gone.clear()
        self._absent = _NOTHING

    def _spilling(self, keys: Iterable[Any]) -> Iterator[Row]:
        for key in keys:
            value, is_new = self._values.get(key), self._changed.get(key)
            number = 0 if is_new is None else STEP * self._checkpoint + is_new
            if value is None:
                yield encode_key(key), self._codec.dump_key(key), number + GONE, None
            else:
                yield encode_key(key), self._codec.dump(key, value), number, None

    def _live_keys(self) -> Iterator[Any]:
        yield from self._values
        if self._spill is not None:
            for key, _ in Walk(self._spill, self._codec):
                if key not in self._values and key not in self._gone:
                    yield key


def _bytes_of(item: tuple[Any, Any]) -> bytes:
    return encode_key(item[0])


def _dump_plain(key: Any, value: Any) -> str:
    return dump_value((key, value))


_NOTHING = object()
