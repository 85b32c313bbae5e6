"""The event that a task is handling, and the idempotency keys, UUIDs and random numbers that user code derives from it.

An event is a record, a punctuation, or the start or end of an epoch. All values are derived from call ids, not from a real
clock or random source.

Rules of this file:

1. A call id consists of the event, the node, and the number of earlier calls of the same kind by the node at this event. A
   record is identified by topic, partition and offset, a punctuation by partition, schedule and due time.
2. A call id does not depend on the run, the attempt, the branch or the layout, so a repeated computation gets the same
   ids. A call id does depend on the job, because two jobs that read one log have different side effects.
3. `init` and `close` have no call ids, because how often they run depends on how epochs are divided into runs.
4. Random bits come from SHA-256 over a seed and a counter, not from Python's generator. Python guarantees the same numbers in
   later versions only for the generator's ``random()``, and a replay must not depend on the version.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableSequence, Sequence
from typing import Any, TypeVar

from rewindow.errors import DataError
from rewindow.streams.record import UNKNOWN, RecordMetadata

Item = TypeVar("Item")
_KEY, _RANDOM, _UUID = "key", "random", "uuid"
_Counts = tuple[tuple[tuple[str, str], tuple[str, int] | None], ...]
"""Pairs ``((node, kind of call), (last event, number of its last call))``; the second part is None before the first call."""
_BLOCK_BITS = 256


class RecordContext:
    """Source, timestamp and order key of the current event. A task has one `RecordContext` and updates it in place."""

    __slots__ = ("firing", "last_offset", "offset", "order_ms", "scheduled_ms", "timestamp", "topic")

    def __init__(self) -> None:
        self.topic: str | None = None
        """The topic of the record; None outside a record."""
        self.offset = UNKNOWN
        self.last_offset = UNKNOWN
        """The offset of the last record of a batch, while a processor handles the batch; -1 otherwise."""
        self.timestamp: Any = UNKNOWN
        """The int that forwarded records get as timestamp. `Forwarding.forward` compares it by identity, as a fast check."""
        self.scheduled_ms = UNKNOWN
        """The due time of the punctuation in epoch milliseconds; -1 outside a punctuation."""
        self.order_ms = UNKNOWN
        """The event's order key in the epoch (L1, D21)."""
        self.firing: tuple[str, int] | None = None
        """In a punctuation, the schedule and its due time; at an epoch's end, ``epoch`` or ``final`` and the epoch's number."""

    def leave_event(self, timestamp: int, order_ms: int) -> None:
        """Clear the last record or punctuation, because an epoch begins or ends."""
        self.topic, self.offset, self.scheduled_ms, self.firing = None, UNKNOWN, UNKNOWN, None
        self.timestamp, self.order_ms = timestamp, order_ms

    def metadata(self, partition: int) -> RecordMetadata:
        """Return topic, partition and offset of the record being handled, or ``(None, -1, -1)`` if there is no record."""
        return RecordMetadata(self.topic, partition if self.topic else UNKNOWN, self.offset if self.topic else UNKNOWN)

    def __str__(self) -> str:
        """Describe the current event for an error message."""
        if self.topic and self.last_offset > self.offset:
            return f"{self.topic}, a batch of the offsets {self.offset} to {self.last_offset}"
        if self.topic:
            return f"{self.topic} offset {self.offset}"
        return "an epoch's bounds" if self.scheduled_ms == UNKNOWN else f"the punctuation due at {self.scheduled_ms} ms"


class CallIds:
    """Hands out the call ids of one task."""

    def __init__(self, job: str, partition: int, record_context: RecordContext) -> None:
        """Call ids begin with ``job``, the job's name. It is empty in the test driver."""
        self._job, self._partition, self._record_context = f"{job}/" if job else "", partition, record_context
        self._last: dict[tuple[str, str], tuple[str, int]] = {}

    def key(self, node: str) -> str:
        """Return the node's next idempotency key: ``job/topic/partition/offset/node/n``."""
        return self._next(node, _KEY)

    def random(self, node: str) -> SeededRandom:
        """Return a random number generator seeded with the node's next call id."""
        return SeededRandom(self._next(node, _RANDOM))

    def uuid(self, node: str) -> str:
        """Return a UUID as text: RFC 9562, version 8, from the SHA-256 of the node's next call id."""
        digest = hashlib.sha256(f"uuid:{self._next(node, _UUID)}".encode()).digest()
        number = int.from_bytes(digest[:16])
        number = number & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0x2 << 62  # version 8, the RFC's variant
        text = f"{number:032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def counts(self, node: str) -> _Counts:
        """Return a node's last events and call numbers, for `restore`."""
        return tuple(((node, kind), self._last.get((node, kind))) for kind in (_KEY, _RANDOM, _UUID))

    def restore(self, counts: _Counts) -> None:
        """Reset a node's last events and call numbers to what `counts` returned."""
        for node_and_kind, last in counts:
            if last is None:
                self._last.pop(node_and_kind, None)
            else:
                self._last[node_and_kind] = last

    def _next(self, node: str, kind: str) -> str:
        event = self._event(node)
        last, count = self._last.get((node, kind), ("", 0))
        count = count + 1 if last == event else 0
        self._last[node, kind] = event, count
        return f"{self._job}{event}/{node}/{count}"

    def _event(self, node: str) -> str:
        record_context = self._record_context
        if record_context.topic is not None:
            return f"{record_context.topic}/{self._partition}/{record_context.offset}"
        if record_context.firing is None:
            raise DataError(
                "random-number-without-record",
                "{node} asks for a random number, an id or an idempotency key in init or close, which are called "
                "once an epoch: ask while a record or a punctuation is handled",
                node=node,
            )
        schedule, number = record_context.firing
        return f"{self._partition}/{schedule}/{number}"


class SeededRandom:
    """A deterministic random number generator, with the method names of Python's ``random.Random``."""

    __slots__ = ("_bits", "_left", "_round", "_seed")

    def __init__(self, seed: str) -> None:
        self._seed = hashlib.sha256(f"random:{seed}".encode()).digest()
        self._round = 0
        self._bits = 0
        self._left = 0

    def getrandbits(self, k: int) -> int:
        """Return an integer of ``k`` random bits. Raises `DataError` if ``k`` is negative."""
        if k < 0:
            raise DataError("random-bits-negative", "getrandbits({bits}): the number of bits must be 0 or more", bits=k)
        while self._left < k:
            block = hashlib.sha256(self._seed + self._round.to_bytes(8)).digest()
            self._round += 1
            self._bits = self._bits << _BLOCK_BITS | int.from_bytes(block)
            self._left += _BLOCK_BITS
        self._left -= k
        taken = self._bits >> self._left
        self._bits &= (1 << self._left) - 1
        return taken

    def random(self) -> float:
        """Return a float in [0, 1), a multiple of 2**-53."""
        return self.getrandbits(53) / 9007199254740992

    def uniform(self, a: float, b: float) -> float:
        """Return a float between ``a`` and ``b``."""
        return a + (b - a) * self.random()

    def randbelow(self, n: int) -> int:
        """Return a uniformly distributed integer in [0, n). Raises `DataError` if ``n`` is below 1."""
        if n < 1:
            raise DataError("random-range-empty", "there is no integer in [0, {limit}): give 1 or more", limit=n)
        bits = (n - 1).bit_length()
        while (drawn := self.getrandbits(bits)) >= n:
            pass
        return drawn

    def randint(self, a: int, b: int) -> int:
        """Return a uniformly distributed integer in [a, b]. Raises `DataError` if ``b`` is below ``a``."""
        return a + self.randbelow(b - a + 1)

    def choice(self, seq: Sequence[Item]) -> Item:
        """Return one item of a sequence. Raises `DataError` if the sequence is empty."""
        return seq[self.randbelow(len(seq))]

    def shuffle(self, x: MutableSequence[Any]) -> None:
        """Shuffle a list in place."""
        for last in range(len(x) - 1, 0, -1):
            other = self.randbelow(last + 1)
            x[last], x[other] = x[other], x[last]

    def sample(self, population: Sequence[Item], k: int) -> list[Item]:
        """Return ``k`` items from distinct positions, in random order. Raises `DataError` if there are fewer than ``k`` items."""
        if not 0 <= k <= len(population):
            raise DataError(
                "random-sample-too-large",
                "a sample of {size} out of {population}: give 0 to {population}",
                size=k,
                population=len(population),
            )
        items = list(population)
        self.shuffle(items)
        return items[:k]
