"""Records that are not processed further: late, skipped, expired. Each one is counted.

If the job is configured with ``dropped: quarantine``, each one is also written to the quarantine, with its source, the
node and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rewindow.errors import DataError
from rewindow.streams.record import RecordMetadata, row_class
from rewindow.streams.serde.canonical_json import dump_value


class Dropped(NamedTuple):
    """A dropped record, as the quarantine stores it.

    ``record`` is JSON of its key and value. ``at`` is the topic, partition and offset of the input record being handled,
    ``(None, -1, -1)`` in a punctuation and between epochs.
    """

    at: RecordMetadata
    timestamp: int
    node: str
    reason: str
    record: str


Drop = Callable[[Dropped], None]
"""Receives dropped records: the writer of the quarantine, or a test."""

_PAIR = row_class(("key", "value"))


def record_text(key: Any, value: Any) -> str:
    """Return key and value as canonical JSON. An object that cannot be encoded is replaced by the name of its class."""
    return dump_value(_PAIR(_encodable(key), _encodable(value)))


def _encodable(part: Any) -> Any:
    try:
        dump_value(part)
    except DataError:
        return f"<{type(part).__name__}>"
    return part
