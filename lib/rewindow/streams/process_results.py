"""A processor's ``process`` must return None. A value that is returned instead of forwarded would be lost unnoticed."""

from __future__ import annotations

import dis
from collections.abc import Callable
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, isasyncgen, iscoroutine, isgenerator
from types import CodeType
from typing import Any

from rewindow.errors import ConfigError
from rewindow.streams.record import Record

_RETURNS_AN_OBJECT = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR


def returns_nothing(process: Callable[[Record], Any]) -> bool:
    """Return whether a method's bytecode shows that it always returns None, so that its results need not be checked."""
    # A call of a generator function or coroutine returns an object, whatever its bytecode returns.
    code = getattr(process, "__code__", None)
    return code is not None and not code.co_flags & _RETURNS_AN_OBJECT and _returns_none(code)


def with_checked_results(process: Callable[[Record], Any]) -> Callable[[Record], None]:
    """Return a function that calls ``process`` and raises `ConfigError` (78) if the result is not None."""

    def take(record: Record) -> None:
        result = process(record)
        if result is not None:
            refuse_result(process, result)

    return take


def refuse_unstarted(process: Callable[..., Any], result: object) -> None:
    """Raise `ConfigError` (78) if ``result`` is a generator or coroutine, because the code of ``process`` then has not run."""
    if isgenerator(result) or iscoroutine(result) or isasyncgen(result):
        refuse_result(process, result)


def refuse_result(process: Callable[[Any], Any], result: object, *, send: str = "self.context.forward(record)") -> None:
    """Raise `ConfigError` (78) for a result that is not None. ``send`` is the call that the message recommends."""
    if iscoroutine(result):
        # Otherwise Python would warn that the coroutine was never awaited.
        result.close()
    code = getattr(process, "__code__", None)
    location = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    raise ConfigError(
        "process-returned-value",
        "{function} returned an instance of {type}, which is lost: send records with {call}, and return nothing",
        function=getattr(process, "__qualname__", "process") + location,
        type=type(result).__name__,
        call=send,
    )


# The result is cached, because each epoch calls this function for the same methods.
@lru_cache(maxsize=1024)
def _returns_none(code: CodeType) -> bool:
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
    for before, step in zip([None, *steps], steps, strict=False):
        if step.opname == "RETURN_CONST" and step.argval is not None:
            return False
        if step.opname == "RETURN_VALUE" and (
            before is None or before.opname != "LOAD_CONST" or before.argval is not None
        ):
            return False
    return True
