"""The topology that a transcript names: its function, and what to say if it cannot be imported or built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from rewindow.errors import ConfigError, RewindowError
from rewindow.streams.error_context import line_of
from rewindow.streams.topology import Topology


def named_function(case: str, reference: str | None) -> Callable[..., Topology]:
    """Return the function that ``module:function`` names. Raises `ConfigError` (78) if there is none."""
    if reference is None:
        message = f"{case}: add `topology: module:function`, or pass a topology to check()"
        raise ConfigError(message)
    name, _, function = reference.partition(":")
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        message = f"cannot import {name!r}: {error}. Fix `topology:` or the import"
        raise ConfigError(message) from error
    named: Callable[..., Topology] | None = getattr(module, function, None)
    if not callable(named):
        message = f"{name} has no function {function!r}: fix `topology:` or the module"
        raise ConfigError(message)
    return named


@contextmanager
def building(case: str) -> Iterator[None]:
    """Add the case, and the line of the user's code, to errors of building its topology, which become a `ConfigError`."""
    try:
        yield
    except RewindowError as error:
        error.args = (error.message if case in error.message else f"{case}: {error.message}",)
        error.at_line(line_of(error))
        raise
    except SyntaxError as error:
        message = f"{case}: {error.filename}:{error.lineno}: {error.msg}. Fix that line"
        raise ConfigError(message) from error
    except Exception as error:
        message = f"{case}: the topology cannot be built: {type(error).__name__}: {error}. Fix that line"
        raise ConfigError(message).at_line(line_of(error)) from error
