"""Find expressions of the pure layers whose value depends on the iteration order of a set. Works on syntax, without types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

_USES_ORDER: Final = frozenset(
    (
        *("list", "tuple", "dict", "iter", "next", "enumerate", "zip", "map", "filter", "reversed"),
        *("deque", "chain", "join", "fromkeys", "extend", "str", "repr", "dumps"),
    )
)
"""Functions and methods whose result depends on the order of their arguments."""

_MAKES_SETS: Final = frozenset(["union", "intersection", "difference", "symmetric_difference", "copy"])
"""Methods of a set that return a set."""


def iterated_sets(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield each expression of a module that is a set and whose order something depends on."""
    names = _names_of_sets(tree)
    for node in ast.walk(tree):
        yield from (iterated for iterated in _iterated(node) if _is_set(iterated, names))


def _iterated(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions whose iteration order affects the value of a node."""
    if isinstance(node, ast.For | ast.comprehension):
        yield node.iter
    elif isinstance(node, ast.YieldFrom | ast.Starred | ast.FormattedValue):
        yield node.value
    elif isinstance(node, ast.Call):
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if called in _USES_ORDER:
            yield from node.args
        elif called == "pop" and not node.args and isinstance(node.func, ast.Attribute):
            yield node.func.value


def _is_set(node: ast.expr, sets: frozenset[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id in {"set", "frozenset"}
        return isinstance(node.func, ast.Attribute) and node.func.attr in _MAKES_SETS and _is_set(node.func.value, sets)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.Sub | ast.BitXor):
        return any(_is_set(side, sets) or _is_keys(side) for side in (node.left, node.right))
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in sets


def _is_keys(node: ast.expr) -> bool:
    """Return whether an expression is ``x.keys()``; operators on two of them give a set."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"


def _names_of_sets(tree: ast.AST) -> frozenset[str]:
    """Return the names that a module binds to sets only, by value or by annotation."""
    bound: dict[str, bool] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                name = ast.unparse(target)
                bound[name] = bound.get(name, True) and _is_set(node.value, frozenset())
        elif isinstance(node, ast.AnnAssign):
            bound[ast.unparse(node.target)] = _annotates_set(node.annotation)
        elif isinstance(node, ast.arg) and node.annotation is not None:
            bound[node.arg] = bound.get(node.arg, True) and _annotates_set(node.annotation)
    return frozenset(name for name, is_set in bound.items() if is_set)


def _annotates_set(annotation: ast.expr) -> bool:
    named = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return ast.unparse(named).split(".")[-1] in {"set", "frozenset", "Set", "AbstractSet", "MutableSet"}
