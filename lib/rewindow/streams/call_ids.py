"""Deterministic ids: idempotency keys, UUIDs and random numbers for user code, instead of a clock and a generator.

Rules of this file:

1. A call id is made of the event, the node, and how many such calls the node has made at this event. The event is a
   record (topic, partition, offset), a punctuation (the schedule and its due time) or the end of an epoch.
2. A call id does not depend on the run, the attempt, the branch or the layout, so a repeated computation gets the same
   ids. It depends on the job: two jobs that read one log are two side effects.
3. `init` and `close` have no call ids: how often they run depends on how epochs are grouped into runs.
"""

from __future__ import annotations

import hashlib

from rewindow.errors import DataError
from rewindow.streams.record_context import RecordContext
from rewindow.streams.seeded_random import SeededRandom

KEY, RANDOM, UUID = "key", "random", "uuid"

Counts = tuple[tuple[tuple[str, str], tuple[str, int] | None], ...]
"""Of each (node, kind of call) the last event and the number of calls at it."""


class CallIds:
    """Hands out the call ids of one task."""

    def __init__(self, job: str, partition: int, record_context: RecordContext) -> None:
        """``job`` may be empty, as in the test driver."""
        self._job, self._partition, self._record_context = f"{job}/" if job else "", partition, record_context
        self._last: dict[tuple[str, str], tuple[str, int]] = {}

    def key(self, node: str) -> str:
        """Return the node's next idempotency key: ``job/topic/partition/offset/node/n``."""
        return self._next(node, KEY)

    def random(self, node: str) -> SeededRandom:
        """Return a random number generator seeded with the node's next call id."""
        return SeededRandom(self._next(node, RANDOM))

    def uuid(self, node: str) -> str:
        """Return a UUID as text: RFC 9562, version 8, from the SHA-256 of the node's next call id."""
        digest = hashlib.sha256(f"uuid:{self._next(node, UUID)}".encode()).digest()
        number = int.from_bytes(digest[:16])
        number = number & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0x2 << 62  # version 8, the RFC's variant
        text = f"{number:032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def counts(self, node: str) -> Counts:
        """Return the node's call counts, for `restore`."""
        return tuple(((node, kind), self._last.get((node, kind))) for kind in (KEY, RANDOM, UUID))

    def restore(self, counts: Counts) -> None:
        """Reset a node's call counts to what `counts` returned."""
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
            message = (
                f"{node} asks for a random number, an id or an idempotency key in init or close, which are called once an "
                "epoch: ask while a record or a punctuation is handled"
            )
            raise DataError(message)
        what, number = record_context.firing
        return f"{self._partition}/{what}/{number}"
