"""An effect on the world outside, for each record: at least once, with a key that makes it once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Signature, signature
from typing import Any

from rewindow.core.processor import Processor, ProcessorContext
from rewindow.core.record import UNKNOWN, Record
from rewindow.errors import TopologyError


@dataclass(frozen=True, slots=True)
class ForEach:
    """Call ``action(key, value)``, or ``action(key, value, idempotency_key)``, for each record."""

    action: Callable[..., Any]

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "foreach"

    def __call__(self) -> Processor:
        return _ForEach(calling(self.action))


class _ForEach(Processor):
    def __init__(self, call: Callable[[Any, Any, str], Any]) -> None:
        self._call = call
        self._position: tuple[str | None, int] = (None, UNKNOWN)
        self._nth = 0

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        self._call(record.key, record.value, self._idempotency_key())

    def _idempotency_key(self) -> str:
        """Return the place of this call: ``topic/partition/offset/node/n`` of an input, ``partition/node/n`` of none."""
        context = self.context
        topic, partition, offset = context.record_metadata
        if topic is None:
            # Punctuations have no place of their own; the node's clock, which is kept, counts them.
            return f"{context.partition}/{context.name}/{context.observe(context.observed_time_ms + 1)}"
        self._nth = self._nth + 1 if self._position == (topic, offset) else 0
        self._position = (topic, offset)
        return f"{topic}/{partition}/{offset}/{context.name}/{self._nth}"


def calling(action: Callable[..., Any]) -> Callable[[Any, Any, str], Any]:
    """Return the action as a function of key, value and idempotency key. Raises `TopologyError` if it is none."""
    if not callable(action):
        raise TopologyError(f"foreach({action!r}): give it a function")
    try:
        takes = signature(action)
    except (TypeError, ValueError):  # a builtin does not say; print, for one
        return lambda key, value, _: action(key, value)
    named = "idempotency_key" in takes.parameters
    if named and _fits(takes, None, None, idempotency_key=""):
        return lambda key, value, idempotency_key: action(key, value, idempotency_key=idempotency_key)
    if not named and _fits(takes, None, None):
        return lambda key, value, _: action(key, value)
    if _fits(takes, None, None, ""):
        return action
    message = f"foreach: the action takes {takes}, but it is called with (key, value) or (key, value, idempotency_key)"
    raise TopologyError(message)


def _fits(takes: Signature, *args: Any, **kwargs: Any) -> bool:
    try:
        takes.bind(*args, **kwargs)
    except TypeError:
        return False
    return True
