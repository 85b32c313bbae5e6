"""Find state that code keeps where no checkpoint sees it: in modules, classes, defaults and closures. Works on syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from rewindow.app.shared_names import FUNCTIONS, Body, Function, Kind, ModuleNames, Shared, own_nodes
from rewindow.control.project_source import Module, Source

CHANGES: Final = frozenset(
    (
        *(
            "append",
            "appendleft",
            "extend",
            "extendleft",
            "insert",
            "remove",
            "pop",
            "popleft",
            "clear",
            "sort",
            "reverse",
        ),
        *(
            "rotate",
            "add",
            "discard",
            "update",
            "setdefault",
            "popitem",
            "move_to_end",
            "subtract",
            "difference_update",
        ),
        *("intersection_update", "symmetric_difference_update", "__setitem__", "__delitem__", "__next__"),
    )
)
"""Methods of the built-in containers that change them."""
_CHANGES_ARGUMENT: Final = frozenset(
    (
        *("next", "setattr", "delattr", "heappush", "heappop", "heapify", "heapreplace", "heappushpop"),
        *("insort", "insort_left", "insort_right"),
    )
)
"""Functions that change their first argument."""
_MUTABLE: Final = frozenset(
    (
        *("list", "dict", "set", "bytearray", "defaultdict", "OrderedDict", "Counter", "deque", "ChainMap"),
        *("count", "cycle", "iter", "array"),
    )
)
"""Functions that return something that can change."""


def shared_state(module: Module, source: Source) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each place where a function changes what outlives its call."""
    shared = Shared(ModuleNames(module, source))
    for body in _bodies(module.tree, None, frozenset()):
        for node in own_nodes(body.function):
            if isinstance(node, ast.Global):
                yield node.lineno, f"global {', '.join(node.names)}"
            elif isinstance(node, ast.Nonlocal) and any(_is_of_builder(name, body) for name in node.names):
                yield node.lineno, f"nonlocal {', '.join(node.names)}"
            elif isinstance(node, ast.expr) and _changes(node, shared, body):
                yield node.lineno, f"changes shared state ({ast.unparse(node)[:60]})"


def mutable_defaults(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield each default of a parameter that can change: all calls share it."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            given = [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
            yield from (one for one in given if _is_mutable(one))


def _is_mutable(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        return name in _MUTABLE
    return isinstance(
        node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp | ast.GeneratorExp
    )


def _changes(node: ast.expr, shared: Shared, body: Body) -> bool:
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        kind = shared.kind(node.value, body)
        return kind is Kind.DATA or (kind is Kind.NAMESPACE and isinstance(node, ast.Attribute))
    if not isinstance(node, ast.Call):
        return False
    called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if called in CHANGES and isinstance(node.func, ast.Attribute):
        return shared.kind(node.func.value, body) is Kind.DATA
    if called in _CHANGES_ARGUMENT and node.args:
        kind = shared.kind(node.args[0], body)
        return kind is Kind.DATA or (kind is Kind.NAMESPACE and called in {"setattr", "delattr"})
    return False


def _is_of_builder(name: str, body: Body) -> bool:
    around = body.around
    while around is not None and name not in around.names:
        around = around.around
    return around is not None and around.builds


def _bodies(node: ast.AST, around: Body | None, attributes: frozenset[str]) -> Iterator[Body]:
    """Yield the functions in a syntax tree, outermost first."""
    classes = {one.name: one for one in ast.iter_child_nodes(node) if isinstance(one, ast.ClassDef)}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            body = Body(child, around, attributes)
            yield body
            yield from _bodies(child, body, frozenset())
        elif isinstance(child, ast.ClassDef):
            yield from _bodies(child, around, _class_attributes(with_bases(child, classes)))
        else:
            yield from _bodies(child, around, attributes)


def with_bases(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """Return a class and its base classes among those beside it."""
    found = [node]
    for one in found:
        bases = [classes.get(base.id) for base in one.bases if isinstance(base, ast.Name)]
        found += [base for base in bases if base is not None and base not in found]
    return found


def _class_attributes(family: list[ast.ClassDef]) -> frozenset[str]:
    """Return the attributes with a value that classes have and none of their methods assigns to an instance."""
    bound, assigned = set[str](), set[str]()
    for statement in [one for member in family for one in member.body]:
        if isinstance(statement, ast.Assign):
            bound |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and _has_value(statement):
            bound.add(statement.target.id)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            stores = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute)]
            assigned |= {
                one.attr for one in stores if isinstance(one.ctx, ast.Store) and _is_first(one.value, statement)
            }
    return frozenset(bound - assigned)


def _has_value(statement: ast.AnnAssign) -> bool:
    """Return whether a class gives an attribute a value; a dataclass's ``field(...)`` is made for each instance."""
    value = statement.value
    is_field = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "field"
    return value is not None and not is_field


def _is_first(node: ast.expr, method: Function) -> bool:
    return isinstance(node, ast.Name) and bool(method.args.args) and node.id == method.args.args[0].arg
