"""The node of `KStream.foreach`: an external side effect for each record, at least once, with an idempotency key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Signature, signature
from typing import Any

from rewindow.errors import TopologyError
from rewindow.streams.processor import Processor
from rewindow.streams.record import Record


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

    def process(self, record: Record) -> None:
        self._call(record.key, record.value, self.context.idempotency_key())


def calling(action: Callable[..., Any]) -> Callable[[Any, Any, str], Any]:
    """Return the action as a function of key, value and idempotency key. Raises `TopologyError` for any other signature."""
    if not callable(action):
        raise TopologyError(f"foreach({action!r}): give it a function")
    try:
        accepted = signature(action)
    except (TypeError, ValueError):  # some builtins have no signature
        return lambda key, value, _: action(key, value)
    named = "idempotency_key" in accepted.parameters
    if named and _fits(accepted, None, None, idempotency_key=""):
        return lambda key, value, idempotency_key: action(key, value, idempotency_key=idempotency_key)
    if not named and _fits(accepted, None, None):
        return lambda key, value, _: action(key, value)
    if _fits(accepted, None, None, ""):
        return action
    message = (
        f"foreach: the action takes {accepted}, but it is called with (key, value) or (key, value, idempotency_key)"
    )
    raise TopologyError(message)


def _fits(accepted: Signature, *args: Any, **kwargs: Any) -> bool:
    try:
        accepted.bind(*args, **kwargs)
    except TypeError:
        return False
    return True
