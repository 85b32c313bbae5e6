"""Say what an expression in a function refers to: state that outlives the call, or something of the call's own.

State that outlives the call hangs on a module, a class, a function, or a variable of the function that builds the topology.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from rewindow.control.project_source import Module, Source

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_HANDS_OUT: Final = frozenset(["get", "setdefault", "values", "items"])
"""Methods of a dict that return its values, not copies."""
_BUILDS: Final = frozenset(["StreamsBuilder", "Topology"])


class Kind(Enum):
    """What hangs on a name."""

    DATA = auto()
    """A value, which its own methods may change."""
    NAMESPACE = auto()
    """A module, class or function: its attributes may be set, but its methods do not change it."""


def kinds_in(statements: Mapping[str, list[ast.stmt]]) -> dict[str, Kind]:
    """Return the kind of each name that a module binds, given the statements that bind it."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        name: Kind.NAMESPACE if all(isinstance(one, definitions) for one in many) else Kind.DATA
        for name, many in statements.items()
    }


class ModuleNames:
    """The names at the top level of a module, with what it imports from other modules of the project."""

    def __init__(self, module: Module, source: Source) -> None:
        self._module, self._source = module, source
        self._own = kinds_in(module.bindings)

    def kind(self, name: str) -> Kind | None:
        """Return the kind of a name; None for one that the module does not bind."""
        if name in self._own:
            return self._own[name]
        if name not in self._module.imports:
            return None
        base, attribute = self._module.imports[name]
        return Kind.NAMESPACE if attribute is None else self._imported(base, attribute)

    def attribute(self, path: list[str]) -> Kind:
        """Return the kind of an attribute of an imported module (``["state", "seen"]``), or of a class or function."""
        base, attribute = self._module.imports.get(path[0], (None, None))
        if base is None:
            return Kind.DATA  # of a class or function of this module
        parts = [*([attribute] if attribute else []), *path[1:]]
        while parts and self._source.module(f"{base}.{parts[0]}") is not None:
            base, parts = f"{base}.{parts[0]}", parts[1:]
        if not parts or self._source.module(base) is None:
            return Kind.NAMESPACE
        return self._imported(base, parts[0]) if len(parts) == 1 else Kind.DATA

    def _imported(self, base: str, attribute: str) -> Kind:
        module = self._source.module(base)
        found = kinds_in(module.bindings).get(attribute) if module is not None else None
        if found is None and module is not None and attribute in module.imports:
            origin, name = module.imports[attribute]
            return Kind.NAMESPACE if name is None else self._imported(origin, name)
        return found or Kind.NAMESPACE  # of a library: its values are unknown


@dataclass
class Body:
    """A function: its own names, the class that it is a method of, and the function around it."""

    function: Function
    around: Body | None = None
    class_attributes: frozenset[str] = frozenset()
    """Attributes that its class has and no method assigns to ``self``: they are of the class."""
    names: frozenset[str] = frozenset()
    aliases: dict[str, ast.expr] = field(default_factory=dict)
    """Local names that are bound once, to an expression that may be shared."""
    builds: bool = False
    """Whether the function builds a topology: what it binds lives as long as the topology."""

    def __post_init__(self) -> None:
        """Collect the names."""
        arguments = self.function.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        self.builds = any(isinstance(one.annotation, ast.Name) and one.annotation.id in _BUILDS for one in given if one)
        names, bound, outer = {one.arg for one in given if one}, dict[str, list[ast.expr | None]](), set[str]()
        for node in own_nodes(self.function):
            if isinstance(node, ast.Global | ast.Nonlocal):
                outer |= {*node.names}
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.setdefault(node.id, []).append(None)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif (node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")) in _BUILDS:
                self.builds = True
        for node in own_nodes(self.function):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                bound[node.targets[0].id].append(node.value)
            elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
                bound[node.target.id].append(node.iter)
        self.names = frozenset((names | {*bound}) - outer)
        self.aliases = {name: values[1] for name, values in bound.items() if len(values) == 2 and values[1] is not None}

    @property
    def first(self) -> str | None:
        """The name of its first parameter: ``self`` in a method."""
        arguments = self.function.args
        return next((one.arg for one in (*arguments.posonlyargs, *arguments.args)), None)


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body without those of the functions and classes in it."""
    body = function.body if isinstance(function, FUNCTIONS) else []
    waiting: list[ast.AST] = [*body] if isinstance(body, list) else [body]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [*node.decorator_list, *node.args.defaults, *(one for one in node.args.kw_defaults if one)]
        elif isinstance(node, ast.Lambda):
            waiting += [*node.args.defaults, *(one for one in node.args.kw_defaults if one)]
        elif isinstance(node, ast.ClassDef):
            waiting += [*node.decorator_list, *node.bases]
        else:
            waiting += ast.iter_child_nodes(node)


class Shared:
    """Decides which expressions of a module's functions are shared."""

    def __init__(self, module: ModuleNames) -> None:
        self._module = module

    def kind(self, node: ast.expr, body: Body, followed: frozenset[str] = frozenset()) -> Kind | None:
        """Return the kind of state that an expression stands for; None if it is the call's own.

        ``followed`` has the local names whose values were looked at on the way here.
        """
        if _is_own_class(node, body):
            return Kind.NAMESPACE
        if isinstance(node, ast.Name):
            return self._name(node.id, body, followed)
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == body.first and node.attr in body.class_attributes:
                return Kind.DATA
            inner = self.kind(node.value, body, followed)
            return self._attribute(node) if inner is Kind.NAMESPACE else inner
        if isinstance(node, ast.Subscript):
            return self._part(node.value, body, followed)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _HANDS_OUT:
            return self._part(node.func.value, body, followed)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "globals":
            return Kind.DATA
        return None

    def _part(self, whole: ast.expr, body: Body, followed: frozenset[str]) -> Kind | None:
        return Kind.DATA if self.kind(whole, body, followed) is Kind.DATA else None

    def _attribute(self, node: ast.Attribute) -> Kind:
        parts: list[str] = []
        step: ast.expr = node
        while isinstance(step, ast.Attribute):
            parts.insert(0, step.attr)
            step = step.value
        return self._module.attribute([step.id, *parts]) if isinstance(step, ast.Name) else Kind.DATA

    def _name(self, name: str, body: Body, followed: frozenset[str]) -> Kind | None:
        if name in body.names:
            value = body.aliases.get(name) if name not in followed else None
            return None if value is None else self.kind(value, body, followed | {name})
        around = body.around
        while around is not None:
            if name in around.names:
                return Kind.DATA if around.builds else None
            around = around.around
        return self._module.kind(name)


def _is_own_class(node: ast.expr, body: Body) -> bool:
    """Return whether an expression is the class of the method that it is in: ``cls``, ``type(self)``, ``self.__class__``."""
    if isinstance(node, ast.Call):
        is_type = isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1
        return is_type and _is_name(node.args[0], body.first)
    if isinstance(node, ast.Attribute):
        return node.attr == "__class__" and _is_name(node.value, body.first)
    decorators = getattr(body.function, "decorator_list", ())
    return _is_name(node, body.first) and any(_is_name(one, "classmethod") for one in decorators)


def _is_name(node: ast.expr, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name
