"""What user code takes instead of a clock and a die: keys, ids and random numbers that follow from where a call stands.

Rules of this file:

1. The place of a call is its event, the node, and how many such calls the node made at that event before. The event is
   a record (topic, partition, offset), a punctuation (the schedule and the time it was due) or an epoch's end.
2. A place does not know the run, the attempt, the branch or the layout: whoever computes it again gets it again. It
   does know the job: two jobs that read one log are two effects.
3. In `init` and `close` there is no place: they are called as often as epochs are made.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from rewindow.errors import DataError
from rewindow.streams.seeded_random import SeededRandom

if TYPE_CHECKING:
    from rewindow.streams.task_context import RecordContext

KEY, RANDOM, UUID = "key", "random", "uuid"


class CallIds:
    """The places of one task's calls."""

    def __init__(self, job: str, partition: int, record_context: RecordContext) -> None:
        """``job`` may be empty, as in the test driver."""
        self._job, self._partition, self._record_context = f"{job}/" if job else "", partition, record_context
        self._last: dict[tuple[str, str], tuple[str, int]] = {}
        """Of each node and kind of call the last event, and how many calls there were at it."""

    def key(self, node: str) -> str:
        """Return the idempotency key of the node's next effect: ``topic/partition/offset/node/n``, after the job."""
        return self._next(node, KEY)

    def random(self, node: str) -> SeededRandom:
        """Return random numbers of the node's own."""
        return SeededRandom(self._next(node, RANDOM))

    def uuid(self, node: str) -> str:
        """Return an id as text: RFC 9562's version 8, from a SHA-256."""
        digest = hashlib.sha256(f"uuid:{self._next(node, UUID)}".encode()).digest()
        number = int.from_bytes(digest[:16])
        number = number & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0x2 << 62  # version 8, the RFC's variant
        text = f"{number:032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def counts(self, node: str) -> tuple[tuple[tuple[str, str], tuple[str, int] | None], ...]:
        """Return how far a node has counted, for `restore`."""
        return tuple(((node, kind), self._last.get((node, kind))) for kind in (KEY, RANDOM, UUID))

    def restore(self, counts: tuple[tuple[tuple[str, str], tuple[str, int] | None], ...]) -> None:
        """Let a node count on from where `counts` saw it."""
        for place, last in counts:
            if last is None:
                self._last.pop(place, None)
            else:
                self._last[place] = last

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
