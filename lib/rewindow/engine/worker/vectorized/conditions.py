"""Evaluate conditions on whole columns, with the semantics of `dsl.operators.conditions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.dsl.operators.conditions import Both, Condition, IsNull, Not
from rewindow.dsl.operators.expressions import Literal, Name

_CLASSES: Mapping[str, type[Any]] = {"long": int, "double": float, "string": str, "boolean": bool}
_ARROW: Mapping[str, Any] = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal}
_SWAPPED = {">": "<", ">=": "<="}
_EXACT = 2**53
LONGS = range(-(2**63), 2**63)


def problem_of(condition: Condition, types: Mapping[str, str]) -> str:
    """Return why a condition cannot be evaluated on columns of these types; empty if it can."""
    if isinstance(condition, Both):
        return problem_of(condition.left, types) or problem_of(condition.right, types)
    if isinstance(condition, Not):
        return problem_of(condition.one, types)
    terms = [condition.term] if isinstance(condition, IsNull) else [condition.left, condition.right]
    for term in terms:
        if isinstance(term, Name) and types.get(term.name) not in _CLASSES:
            return f"{term.name} is {types.get(term.name, 'no column')}"
    if isinstance(condition, IsNull):
        return "" if isinstance(condition.term, Name) else f"{condition} asks of a literal"
    kinds = {types[term.name] for term in terms if isinstance(term, Name)}
    if len(kinds) != 1:
        return f"{condition} compares {' and '.join(sorted(kinds)) or 'literals'}"
    (kind,) = kinds
    if all(_fits(term.constant, kind) for term in terms if isinstance(term, Literal)):
        return ""
    return f"{condition} compares {kind} with another type"


def mask_of(condition: Condition, columns: Mapping[str, pa.Array]) -> pa.Array:
    """Return a mask of the rows where a condition is true, null where it is unknown."""
    if isinstance(condition, Both):
        left, right = mask_of(condition.left, columns), mask_of(condition.right, columns)
        return pc.or_kleene(left, right) if condition.decides else pc.and_kleene(left, right)
    if isinstance(condition, Not):
        return pc.invert(mask_of(condition.one, columns))
    if isinstance(condition, IsNull):
        return columns[str(condition.term)].is_null()
    left, right, sign = condition.left, condition.right, condition.operator
    if sign in _SWAPPED:
        left, right, sign = right, left, _SWAPPED[sign]
    kind = next(columns[term.name].type for term in (left, right) if isinstance(term, Name))
    return _ARROW[sign](*(_operand(term, columns, kind) for term in (left, right)))


def _operand(term: Name | Literal, columns: Mapping[str, pa.Array], kind: pa.DataType) -> Any:
    return columns[term.name] if isinstance(term, Name) else pa.scalar(term.constant, kind)


def _fits(constant: Any, kind: str) -> bool:
    """Return whether Arrow compares a column with this constant as Python does."""
    if kind == "double" and type(constant) is int:
        return -_EXACT <= constant <= _EXACT
    return type(constant) is _CLASSES[kind] and (kind != "long" or constant in LONGS)
