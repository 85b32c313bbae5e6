"""Break production code deliberately, in this process only, by replacing a piece of a function's source."""

from __future__ import annotations

import inspect
import sys
import textwrap
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

_SOURCES: dict[Any, str] = {}


@dataclass(frozen=True)
class Rewrite:
    """Replaces ``old`` by ``new`` in the source of ``location`` (``module:function`` or ``module:Class.method``).

    `apply` raises `LookupError` unless ``old`` occurs exactly once, because a mutant without a change proves nothing.
    """

    location: str
    old: str
    new: str

    def apply(self) -> None:
        """Replace the function wherever it is referenced."""
        module_name, _, path = self.location.partition(":")
        module = import_module(f"rewindow.{module_name}")
        owner: Any = module
        *classes, name = path.split(".")
        for part in classes:
            owner = getattr(owner, part)
        before = inspect.unwrap(getattr(owner, name))
        after = self._compiled(module, before, name)
        if classes:
            setattr(owner, name, after)
        else:
            _replace_everywhere(before, after)

    def _compiled(self, module: ModuleType, before: FunctionType, name: str) -> Any:
        source = _SOURCES.get(before) or textwrap.dedent(inspect.getsource(before))
        if source.count(self.old) != 1:
            message = f"{self.location} has {self.old!r} {source.count(self.old)} times: fix the mutant"
            raise LookupError(message)
        made: dict[str, Any] = {}
        text = source.replace(self.old, self.new)
        exec(compile(text, f"<mutant of {self.location}>", "exec"), vars(module), made)  # noqa: S102
        _SOURCES[made[name]] = text  # so that it can be rewritten again
        return made[name]


def _replace_everywhere(before: object, after: object) -> None:
    """Replace ``before`` by ``after`` in our modules and in dictionaries of these modules."""
    for name, module in list(sys.modules.items()):
        if not name.startswith(("rewindow", "tests")):
            continue
        for attribute, value in list(vars(module).items()):
            if value is before:
                setattr(module, attribute, after)
            elif isinstance(value, dict):
                for key, item in list(value.items()):
                    if item is before:
                        value[key] = after
