"""Find state that a processor keeps in its own fields, which are new at each landing. Works on syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from rewindow.app.shared_state import CHANGES, with_bases

_BASES: Final = (
    "Processor",
    "BatchProcessor",
    "FixedKeyProcessor",
    "LegacyProcessor",
    "Transformer",
    "ValueTransformer",
    "ValueTransformerWithKey",
)
_BEGIN: Final = frozenset(("init", "__init__"))
_END: Final = frozenset(("close", "__del__"))


def changed_fields(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the field of each change that a processor's method makes to what its `init` has set.

    A field that no `init` sets is not state: nothing can read it before the same record has set it.
    """
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in classes.values():
        family = with_bases(node, classes)
        if not any(_is_processor(base) for member in family for base in member.bases):
            continue
        kept = {name for member in family for name in _initial(member)}
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name not in _BEGIN | _END and method.args.args:
                me = method.args.args[0].arg
                yield from ((line, f"{me}.{name}") for line, name in _changes(method, me) if name in kept)


def _is_processor(base: ast.expr) -> bool:
    return (base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")) in _BASES


def _initial(node: ast.ClassDef) -> Iterator[str]:
    """Yield the attributes that a class or its `init` gives a value."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name in _BEGIN and statement.args.args:
            me = statement.args.args[0].arg
            yield from (name for one in ast.walk(statement) for name in _fields(_targets(one), me))
        else:
            yield from (one.id for one in _targets(statement) if isinstance(one, ast.Name))


def _changes(method: ast.FunctionDef, me: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(method):
        if isinstance(node, ast.stmt):
            for target in _targets(node):
                inner = target.value if isinstance(target, ast.Subscript) else target
                yield from ((node.lineno, name) for name in _fields([inner], me))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            yield from ((node.lineno, name) for name in _fields([node.func.value], me))


def _targets(node: ast.AST) -> Sequence[ast.expr]:
    """Return what a statement assigns or deletes."""
    if isinstance(node, ast.Assign | ast.Delete):
        parts = [part.elts if isinstance(part, ast.Tuple | ast.List) else [part] for part in node.targets]
        return [one for part in parts for one in part]
    declares_only = isinstance(node, ast.AnnAssign) and node.value is None
    return [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) and not declares_only else []


def _fields(targets: Sequence[ast.expr], me: str) -> Iterator[str]:
    for target in targets:
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == me:
            yield target.attr
