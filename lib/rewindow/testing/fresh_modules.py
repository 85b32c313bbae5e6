"""Build a topology again from freshly imported modules, as the process of a later run does.

State that code kept in its modules, classes, default arguments and caches is then lost, as it is between two runs.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from rewindow.errors import ConfigError
from rewindow.streams.topology import Topology

Build = Callable[[], Topology]

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def can_be_found_again(build: Callable[..., Any]) -> bool:
    """Return whether a fresh import of the function's module would give this function again."""
    function = build.func if isinstance(build, partial) else build
    return (
        isinstance(function, FunctionType)
        and function.__qualname__.isidentifier()
        and function.__module__ != "__main__"
    )


class Rebuilding:
    """Builds a topology repeatedly, each time from freshly imported modules."""

    def __init__(self, build: Build) -> None:
        """Build the topology for the first time, from the modules that the test has imported.

        Raises `ConfigError` for a function that cannot be found again.
        """
        if not can_be_found_again(build):
            raise ConfigError(
                "cut-function-not-importable",
                "a cut cannot build the topology again with {function}: pass a function at the top level of a module, or "
                "functools.partial of one, or the topology itself",
                function=repr(build),
            )
        self._build = build
        self._function: Any = build.func if isinstance(build, partial) else build
        self._in_use: dict[str, ModuleType] = {}
        """The freshly imported modules of the present topology, by name. Empty before the first call of `again`."""
        self.topology = build()

    def again(self) -> Topology:
        """Build the topology from freshly imported modules. Warn about the variables that held state in the present modules.

        Raises `ConfigError` if the module cannot be imported again, or if the function builds another topology.
        """
        where, name = self._function.__module__, self._function.__name__
        with without_modules(partial(is_of_project, _root_of(sys.modules[where]))) as known:
            try:
                build: Build = getattr(importlib.import_module(where), name)
            except (ImportError, AttributeError) as error:
                raise ConfigError(
                    "module-not-importable-again",
                    "{module} cannot be imported again: {reason}: pass a function at the top level of a module, or "
                    "functools.partial of one of the project",
                    module=where,
                    reason=str(error),
                ) from error
            if isinstance(self._build, partial):
                build = partial(build, *self._build.args, **self._build.keywords)
            fresh = {one: module for one, module in sys.modules.items() if one in known}
            lost = [at for one in sorted(fresh) for at in _lost(one, self._in_use.get(one, known[one]), fresh[one])]
            topology = build()
        if topology.fingerprint() != self.topology.fingerprint():
            raise ConfigError(
                "topology-differs-when-rebuilt",
                "{module}:{function} builds another topology in a new process: let it depend on constants only",
                module=where,
                function=name,
            )
        self._in_use, self.topology = fresh, topology
        if lost:
            message = f"the cut lost what {', '.join(lost)} held, as every new process does: keep state in a store"
            warnings.warn(message, RuntimeWarning, stacklevel=4)
        return topology


@contextmanager
def without_modules(is_hidden: Callable[[str, ModuleType], bool]) -> Iterator[dict[str, ModuleType]]:
    """In this block, imports do not find the modules that ``is_hidden`` selects. Yields these modules by name.

    After the block, imports find these modules again. Their fresh versions, which the block has imported, are removed.
    """
    known = {name: module for name, module in list(sys.modules.items()) if is_hidden(name, module)}
    for one in known:
        del sys.modules[one]
    try:
        yield known
    finally:
        for one in [name for name, module in list(sys.modules.items()) if is_hidden(name, module)]:
            del sys.modules[one]
        sys.modules.update(known)


def is_of_project(root: Path, name: str, module: ModuleType) -> bool:
    """Return whether a module's code is below a folder, and belongs neither to rewindow nor to an installed package."""
    is_own = name.partition(".")[0] not in {"rewindow", "__main__"}
    return is_own and any(_is_below(root, path) for path in _paths(module))


def _root_of(module: ModuleType) -> Path:
    file = Path(module.__file__ or "")
    return file.parents[module.__name__.count(".") + (file.name == "__init__.py")]


def _paths(module: ModuleType) -> Iterator[str]:
    """Yield the file of a module; for a package without a file, its folders."""
    file = getattr(module, "__file__", None)
    if file is not None:
        yield file
    else:
        yield from map(str, getattr(module, "__path__", ()))


def _is_below(root: Path, path: str) -> bool:
    # Paths are compared as text, because a cut checks every module of the process. With `Path`s, this took half of a
    # transcript's time.
    return path.startswith(f"{root}{os.sep}") and "site-packages" not in path and not path.endswith((".so", ".pyd"))


def _lost(name: str, before: ModuleType, fresh: ModuleType) -> Iterator[str]:
    """Yield the names in a module whose value differs from the value in a fresh import of the module."""
    for variable, value in list(vars(before).items()):
        if variable.startswith("__") or variable not in vars(fresh):
            continue
        at, other = f"{name}.{variable}", vars(fresh)[variable]
        if isinstance(value, type) and value.__module__ == name:
            inner = [(one, held) for one, held in list(vars(value).items()) if not one.startswith("__")]
            yield from (f"{at}.{one}" for one, held in inner if _differs(held, vars(other).get(one)))
        elif _differs(value, other):
            yield at


def _differs(value: Any, fresh: Any) -> bool:
    if hasattr(value, "cache_info"):
        return bool(value.cache_info().currsize)
    if isinstance(value, FunctionType):
        return _held_by(value) != _held_by(fresh)
    if isinstance(value, type | ModuleType) or callable(value):
        return False
    return _text(value) != _text(fresh)


def _held_by(function: Any) -> str:
    """Return, as text, a function's default arguments and the values that were set on it as attributes."""
    attributes = {
        name: one for name, one in vars(function).items() if isinstance(one, int | str | float | list | dict | set)
    }
    return _text([function.__defaults__, function.__kwdefaults__, attributes])


def _text(value: Any) -> str:
    """Return a value as text without memory addresses. If an object has no `repr` of its own, the text has its fields."""
    text = _ADDRESS.sub("", repr(value))
    is_bare = vars(object)["__repr__"] is getattr(type(value), "__repr__", None)
    return f"{text} {_ADDRESS.sub('', repr(vars(value)))}" if is_bare and hasattr(value, "__dict__") else text
