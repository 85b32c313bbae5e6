"""The version of the code that a run executes: a digest of each project function, class and constant that its job reaches.

The topology itself is data (`Topology.describe`) and is compared as data. `Topology.describe` does not cover the functions and
classes in the nodes. The version covers their syntax, what they refer to in the project's modules, and the values in closures,
defaults and partial calls.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import inspect
import itertools
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from rewindow.control.plan.spec import version_of
from rewindow.control.project_source import Module, Source, Unit, digest
from rewindow.streams.nodes import ProcessorNode, SinkNode
from rewindow.streams.punctuation import PunctuationType

if TYPE_CHECKING:
    from rewindow.streams.topology import Topology

_ATOMS = (str, bytes, int, float, complex, bool, type(None), Decimal, Fraction, Enum)


class ReachedCode(NamedTuple):
    """The parts of the project's code that the nodes of a topology reach."""

    version: dict[str, str]
    """The digests of the parts, by name. For code of libraries, only the name counts. Each attempt records the libraries'
    versions."""
    unaligned_schedules: list[str]
    """``file:line`` of each call that makes a schedule on stream time without an alignment (D2).

    The code is not executed here, so a type that a call computes is unknown.
    """


def reached_code(topology: Topology, root: Path) -> ReachedCode:
    """Read the code that a topology's nodes reach. ``root`` is the folder from which the project's modules are imported.

    Raises `ConfigError` (78) for a module whose source cannot be read.
    """
    reached = _Reached(Source(root), root)
    for node in topology.nodes.values():
        if isinstance(node, ProcessorNode):
            reached.add(node.supplier, f"node {node.name!r}")
        elif isinstance(node, SinkNode) and node.partitioner is not None:
            reached.add(node.partitioner, f"node {node.name!r}")
    lines = {
        (module.shown, call.lineno)
        for module, nodes in reached.syntax
        for node in nodes
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and _is_unaligned(call, sys.modules.get(module.name))
    }
    return ReachedCode(dict(sorted(reached.digests.items())), [f"{file}:{line}" for file, line in sorted(lines)])


def _is_unaligned(call: ast.Call, module: ModuleType | None) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "schedule":
        return False
    names = {keyword.arg for keyword in call.keywords}
    # A call without a type has the old form, schedule(interval).
    type_ = next((k.value for k in call.keywords if k.arg == "type"), call.args[1] if len(call.args) > 1 else None)
    is_stream = ast.unparse(type_).endswith("STREAM_TIME") if type_ else "context" in ast.unparse(call.func.value)
    if isinstance(type_, ast.Name):
        is_stream = getattr(module, type_.id, None) is PunctuationType.STREAM_TIME
    return is_stream and names.isdisjoint({"start_time", "time_shift", None})


def function_version(function: object, root: Path) -> str:
    """Return the version (`version_of`) of the project's code that one function reaches."""
    reached = _Reached(Source(root), root)
    reached.add(function, "a function")
    return version_of(reached.digests)


class _Reached:
    """The digests of the code that the objects of a topology reach. Each object is visited once."""

    def __init__(self, source: Source, root: Path) -> None:
        self.digests: dict[str, str] = {}
        self.syntax: list[tuple[Module, Sequence[ast.AST]]] = []
        self._source, self._root = source, root
        self._added: dict[int, object] = {}

    def add(self, value: object, where: str) -> None:
        """Add the code that a value in a node reaches, and the values inside it. ``where``: the node, used to name digests."""
        if id(value) in self._added:
            return
        # The reference keeps the value alive, so that no other object gets its id.
        self._added[id(value)] = value
        if isinstance(value, FunctionType):
            self._function(value, where)
        elif isinstance(value, type):
            self._class(value, where)
        elif isinstance(value, MethodType):
            self.add(value.__func__, where)
            self.add(value.__self__, where)
        elif isinstance(value, functools.partial):
            self.add(value.func, where)
            self._values(where, {"partial arguments": (value.args, value.keywords)})
        elif isinstance(value, Mapping):
            for item in value.values():
                self.add(item, where)
        elif isinstance(value, list | tuple):
            for item in value:
                self.add(item, where)
        elif dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                self.add(getattr(value, field.name), where)
        elif not isinstance(value, _ATOMS) and self._module_of(type(value)) is not None:
            self.add(type(value), where)
            self._values(f"{type(value).__qualname__} of {where}", vars(value) if hasattr(value, "__dict__") else {})
        elif callable(value):
            self._library(value, where)

    def _function(self, function: FunctionType, where: str) -> None:
        wrapped = inspect.unwrap(function)
        if wrapped is not function:
            self.add(wrapped, where)
        module = self._module_of(function)
        if module is None:
            self._library(function, where)
        else:
            nodes = _syntax_of(module.tree, function.__code__)
            self.syntax.append((module, nodes))
            if function.__qualname__ in module.bindings:
                self._units({Unit(module.name, function.__qualname__): digest(*nodes)})
            else:
                label = "lambda" if function.__name__ == "<lambda>" else f"function {function.__name__}"
                self._note(f"{label} of {where} in {module.shown}", digest(*nodes))
            self._units(self._source.reached(module, nodes))
        if module is not None or function.__closure__:
            name = "lambda" if function.__name__ == "<lambda>" else function.__name__
            closure = function.__closure__ or ()
            held = {
                variable: captured.cell_contents
                for variable, captured in zip(function.__code__.co_freevars, closure, strict=True)
                if not _is_empty(captured)
            }
            defaults = {"defaults": (function.__defaults__, function.__kwdefaults__)}
            self._values(f"{name} of {where}", {**held, **(defaults if any(defaults["defaults"]) else {})})

    def _class(self, cls: type, where: str) -> None:
        module = self._module_of(cls)
        if module is None:
            self._library(cls, where)
            return
        top = cls.__qualname__.partition(".")[0]
        if top in module.bindings:
            self._units(self._source.reached(module, [ast.Name(top, ast.Load())]))
            return
        nodes = [
            statement
            for statement in ast.walk(module.tree)
            if isinstance(statement, ast.ClassDef) and statement.name == cls.__name__
        ]
        self.syntax.append((module, nodes))
        self._note(f"class {cls.__name__} of {where} in {module.shown}", digest(*nodes))
        self._units(self._source.reached(module, nodes))

    def _values(self, where: str, values: Mapping[str, object]) -> None:
        """Add values in closures, defaults or attributes: plain data by their text, other values by the code that they reach."""
        for name, value in values.items():
            text = _text(value)
            if text is not None:
                self._note(f"value of {name!r} in {where}", hashlib.sha256(text.encode()).hexdigest()[:16])
            else:
                self.add(value, where)

    def _library(self, value: Any, where: str) -> None:
        """Record a function or class of a library by its name."""
        # Functions and classes of rewindow are part of the topology's description.
        named = value if hasattr(value, "__qualname__") else type(value)
        module = getattr(named, "__module__", None) or "builtins"
        if module.partition(".")[0] != "rewindow":
            self._note(f"{where} calls {module}.{named.__qualname__}", "library")

    def _note(self, name: str, part_digest: str) -> None:
        """Record a digest. If another digest has the name, append a number to the name."""
        # A node may have several lambdas.
        names = (name if number == 1 else f"{name} ({number})" for number in itertools.count(1))
        self.digests[next(numbered for numbered in names if numbered not in self.digests)] = part_digest

    def _units(self, units: Mapping[Unit, str]) -> None:
        for unit, part_digest in units.items():
            module = self._source.module(unit.module)
            if module is not None:
                self.syntax.append((module, module.bindings.get(unit.name, [])))
                self.digests[f"{unit.name} in {module.shown}"] = part_digest

    def _module_of(self, value: Any) -> Module | None:
        """Return the project's module that defines a function or class; None for a library's."""
        module = self._source.module(getattr(value, "__module__", None) or "")
        if module is None or not isinstance(value, FunctionType):
            return module
        return module if Path(value.__code__.co_filename).resolve() == module.file.resolve() else None


def _syntax_of(tree: ast.Module, code: CodeType) -> list[ast.AST]:
    """Return the syntax trees of a function."""
    # Several lambdas may be on one line. The columns of the code show which of them it is.
    if code.co_name == "<lambda>":
        lambdas = [
            node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
        ]
        # The first instructions of a function have an empty span or none, so they are left out.
        spans = [(a, b, c, d) for a, b, c, d in code.co_positions() if a and b and d and (a, c) != (b, d)]
        holding = [node for node in lambdas if all(_contains(node.body, *span) for span in spans)]
        return [*(holding[-1:] or lambdas)]
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == code.co_name
        and code.co_firstlineno in {node.lineno, *(decorator.lineno for decorator in node.decorator_list)}
    ]


def _contains(node: ast.expr, line: int, end_line: int, column: int | None, end_column: int) -> bool:
    start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return start <= (line, column or 0) and (end_line, end_column) <= end


def _text(value: object) -> str | None:
    """Return plain data as a text that is the same in every process; None for other values."""
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if isinstance(value, _ATOMS):
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, list | tuple):
        return _joined(type(value).__name__, [_text(item) for item in value])
    if isinstance(value, set | frozenset):
        return _joined("set", sorted(_text(item) or "" for item in value) if all(map(_text, value)) else [None])
    if isinstance(value, dict):
        return _joined("dict", [_text(item) for pair in value.items() for item in pair])
    return None


def _joined(kind: str, texts: Sequence[str | None]) -> str | None:
    return None if any(text is None for text in texts) else f"{kind}({','.join(text or '' for text in texts)})"


def _is_empty(captured: Any) -> bool:
    try:
        captured.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return True
    return False
