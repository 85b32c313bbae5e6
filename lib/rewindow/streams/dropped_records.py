"""Records that a task takes and that go no further: late, skipped, expired. They are counted, never just away.

Where the job says ``dropped: quarantine``, each becomes a row too, with the place it came from, the node and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rewindow.errors import DataError
from rewindow.streams.record import RecordMetadata, row_class
from rewindow.streams.serde.canonical_json import dump_value


class Dropped(NamedTuple):
    """What the quarantine says of a record: its source, what it was, where it stopped and why.

    ``record`` is JSON of its key and value, ``at`` the topic, partition and offset that the task was taking;
    ``(None, -1, -1)`` in a punctuation and between epochs.
    """

    at: RecordMetadata
    timestamp: int
    node: str
    reason: str
    record: str


Drop = Callable[[Dropped], None]
"""Takes what is dropped: a writer of the quarantine table, or a test."""

_PAIR = row_class(("key", "value"))


def record_text(key: Any, value: Any) -> str:
    """Return a record as canonical JSON; of what is no plain data the name of its class."""
    return dump_value(_PAIR(_plain(key), _plain(value)))


def _plain(part: Any) -> Any:
    try:
        dump_value(part)
    except DataError:
        return f"<{type(part).__name__}>"
    return part
