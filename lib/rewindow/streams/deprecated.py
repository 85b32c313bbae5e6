"""The forms of ``schedule`` and ``forward`` that KIP-138 and KIP-251 keep, and what is written in their place today.

==================================== =========================================================================
``schedule(interval)``               ``schedule(interval, STREAM_TIME, self.punctuate)`` (KIP-138)
``forward(key, value)``              ``forward(Record(key, value))``: time of what is being handled
``forward(key, value, "child")``     ``..., to=To.child("child")``
``forward(key, value, 1)``           to the second child, in the order in which children were added (KIP-251)
``forward(key, value, To...)``       ``..., to=To...``
==================================== =========================================================================

Each gives a `DeprecationWarning` that names the line of the caller; Python shows a line once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rewindow.errors import ConfigError, DataError
from rewindow.streams.record import Record, To

if TYPE_CHECKING:
    from rewindow.streams.processor import ProcessorContext


def deprecated(old: str, new: str, *, level: int = 2) -> None:
    """Warn who called the function that calls this one; ``level``: so many calls above."""
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=level + 1)


def old_forward(
    context: ProcessorContext, children: Sequence[str], key: Any, old: tuple[Any, ...]
) -> tuple[Record, To | None]:
    """Return what ``forward(key, value)``, or with a child after it, forwards, and to whom.

    Raises `DataError` for a number that no child has.
    """
    deprecated("forward(key, value)", "forward(Record(key, value), to=...)", level=3)
    value, *rest = old
    record = Record(key, value, headers=context.headers)
    if not rest:
        return record, None
    child = rest[0] if len(rest) == 1 else tuple(rest)
    if isinstance(child, To):
        return record, child
    if isinstance(child, str):
        return record, To.child(child)
    if not isinstance(child, int) or not 0 <= child < len(children):
        message = f"{context.name} has no child {child!r} (children: {', '.join(children) or 'none'}, counted from 0)"
        raise DataError(message)
    return record, To.child(children[child])


def old_schedule(name: str, processor: object) -> Callable[[int], None]:
    """Return what ``schedule(interval)`` calls: ``punctuate``. Raises `ConfigError` if the processor has none."""
    callback = getattr(processor, "call_punctuate", None) or getattr(processor, "punctuate", None)
    if callback is None:
        message = (
            f"{name}: schedule(interval) alone calls punctuate(timestamp), which it has not: "
            "give schedule(interval, type, callback)"
        )
        raise ConfigError(message)
    deprecated("schedule(interval)", "schedule(interval, PunctuationType.STREAM_TIME, self.punctuate)", level=3)
    return callback  # type: ignore[no-any-return]  # whatever the user's is
