"""Checks of the functions that a verb is given: do they accept its arguments, and which types are they annotated to return?"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

from rewindow.errors import ConfigError, TopologyError
from rewindow.streams.serde.normalizers import unannotated
from rewindow.streams.serde.schema import shape_of
from rewindow.streams.state.stores import StoreBuilder


def shown(given: object) -> str:
    """Return a value as text for a message: functions, classes and stores by name, other objects without their addresses."""
    if isinstance(given, StoreBuilder):
        return repr(given.name)
    name = getattr(given, "__name__", None)
    return name if callable(given) and isinstance(name, str) else re.sub(r" at 0x[0-9a-f]+", "", repr(given))


def function_of(given: Any, verb: str, *arguments: str) -> Any:
    """Check ``given``, the function that was passed to a verb and is called with ``arguments``; return it.

    Raises `TopologyError`, with file and line, if it is not callable or does not accept that many arguments. If ``arguments``
    is empty, their number is not checked.
    """
    if not callable(given):
        raise TopologyError(
            "function-not-callable", "{verb}({given}): give it a function", verb=verb, given=shown(given)
        )
    if arguments:
        _check_takes(given, verb, arguments)
    return given


def _check_takes(function: Callable[..., Any], verb: str, arguments: tuple[str, ...]) -> None:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        # Classes and functions written in C may have no signature.
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        code = getattr(inspect.unwrap(function), "__code__", None)
        location = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
        name = getattr(function, "__name__", type(function).__name__)
        raise TopologyError(
            "function-parameters-wrong",
            "{verb}: {function} takes {signature}, but is called with ({arguments}): change its parameters",
            verb=verb,
            function=("the lambda" if name == "<lambda>" else name) + location,
            signature=str(signature),
            arguments=", ".join(arguments),
        ) from error


def returned_type(function: Callable[..., Any]) -> Any:
    """Return a function's annotated result type; None if it has no annotation, or if the type does not map to columns."""
    return _with_columns(_annotated_result(function))


def returned_pair(function: Callable[..., Any]) -> tuple[Any, Any]:
    """Return ``(key type, value type)`` of a function annotated with ``tuple[key, value]``. An unknown type is None."""
    annotated = unannotated(_annotated_result(function))
    parts = typing.get_args(annotated) if typing.get_origin(annotated) is tuple else ()
    return (_with_columns(parts[0]), _with_columns(parts[1])) if len(parts) == 2 else (None, None)


def _annotated_result(function: Callable[..., Any]) -> Any:
    try:
        return typing.get_type_hints(function, include_extras=True).get("return")
    except (NameError, TypeError):
        return None


def _with_columns(annotated: Any) -> Any:
    """Return the type if it maps to columns, else None. Values of an annotated type without columns are stored as JSON text.

    Raises `TopologyError` for an invalid decimal type.
    """
    try:
        shape_of(annotated, "value")
    except TopologyError:
        raise
    except ConfigError:
        return None
    return annotated
