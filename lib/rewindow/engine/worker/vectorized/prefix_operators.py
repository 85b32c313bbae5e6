"""The prefix operators between a log and the windows: `where` and `select` on whole columns, and Python functions.

Names mean the same as in record execution (`dsl.operators.select`). A name refers to a field of the preceding `select`. If
there is no `select`, it refers to a field of the log's value. If there is no such field, it refers to the record's key or
timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.dsl.operators.conditions import Both, Condition, IsNull, Not, names_in
from rewindow.dsl.operators.expressions import Expression, Literal, Name, names_of_expression
from rewindow.dsl.operators.select import Fields, Select
from rewindow.engine.worker.arrow_rows import arrow_type
from rewindow.engine.worker.vectorized.arrays import NotVectorizableError, UnfitError
from rewindow.engine.worker.vectorized.batches import Batch, Columns, name_at
from rewindow.engine.worker.vectorized.keys import decode_dictionary
from rewindow.engine.worker.vectorized.row_functions import FUNCTIONS, Calls, apply_calls, bind_calls
from rewindow.streams.serde.schema import Column, Shape, row_shape
from rewindow.streams.serde.types_to_columns import LogShapes

PrefixOperator = Condition | Fields | Calls
_ARITHMETIC: Mapping[str, Any] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_CHECKED: Mapping[str, Any] = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_OWN = frozenset(("key", "timestamp"))
_LITERALS: Mapping[type[Any], str] = {int: "long", float: "double", bool: "boolean", str: "string"}
_CLASSES: Mapping[str, type[Any]] = {"long": int, "double": float, "string": str, "boolean": bool}
_COMPARISONS: Mapping[str, Any] = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal}
_SWAPPED = {">": "<", ">=": "<="}
_EXACT = 2**53
_LONGS = range(-(2**63), 2**63)


def bind_prefix(
    nodes: Sequence[Any], key: Shape, value: Shape, logs: LogShapes
) -> tuple[tuple[PrefixOperator, ...], Shape]:
    """Return the prefix operators of nodes, and the shape of their output.

    Raises `NotVectorizableError`, which names the node, for a node that cannot run on columns.
    """
    prefix: list[PrefixOperator] = []
    for are_functions, adjacent in groupby(nodes, lambda node: isinstance(node.supplier, FUNCTIONS)):
        if are_functions:
            calls = bind_calls(list(adjacent), key, value, logs)
            prefix.append(calls)
            value = calls.after
        else:
            operators, value = _bind_columns(adjacent, key, value)
            prefix += operators
    return tuple(prefix), value


def prune_prefix(prefix: Sequence[PrefixOperator], wanted: set[str]) -> tuple[tuple[PrefixOperator, ...], set[str]]:
    """Drop the fields of a prefix that are not ``wanted``.

    Return the new prefix and the names that it reads from log or record.
    """
    left: list[PrefixOperator] = []
    read: set[str] = set()
    for operator in reversed(prefix):
        if isinstance(operator, Calls):
            calls = operator.for_readers_of(wanted)
            read |= wanted & _OWN
            wanted = calls.reads if calls.changes_values else wanted | calls.reads
            left.append(calls)
        elif isinstance(operator, tuple):
            fields = tuple((name, expression) for name, expression in operator if name in wanted)
            read |= wanted & _OWN
            wanted = {name for _, expression in fields for name in names_of_expression(expression)}
            left.append(fields)
        else:
            wanted = wanted | set(names_in(operator))
            left.append(operator)
    return tuple(reversed(left)), wanted | read


def apply_prefix(prefix: Sequence[PrefixOperator], batch: Batch, *, reads_key: bool) -> Batch:
    """Return the records that a prefix makes from a batch. ``reads_key``: whether an operator reads the bare key as ``key``.

    Raises `UnfitError` for integers that overflow 64 bits, and the errors of `apply_calls`.
    """
    adjacent: list[Condition | Fields] = []
    for operator in prefix:
        if isinstance(operator, Calls):
            batch = apply_calls(operator, _apply_columns(adjacent, batch, reads_key=reads_key))
            adjacent = []
        else:
            adjacent.append(operator)
    return _apply_columns(adjacent, batch, reads_key=reads_key)


def _bind_columns(nodes: Iterable[Any], key: Shape, value: Shape) -> tuple[list[PrefixOperator], Shape]:
    prefix: list[PrefixOperator] = []
    for node in nodes:
        types = _types(key, value)
        if isinstance(node.supplier, Select):
            fields = node.supplier.fields
            try:
                value = row_shape([Column(name, _type_of(expression, types)) for name, expression in fields])
            except NotVectorizableError as error:
                message = f"{node.name}: {error}"
                raise NotVectorizableError(message) from None
            prefix.append(fields)
        else:
            condition: Condition = node.supplier.condition
            if problem := _problem_of(condition, types):
                message = f"{node.name}: {problem}"
                raise NotVectorizableError(message)
            prefix.append(condition)
    return prefix, value


def _apply_columns(operators: Sequence[Condition | Fields], batch: Batch, *, reads_key: bool) -> Batch:
    if not operators:
        return batch
    own = {"timestamp": pa.array(batch.timestamps)}
    if reads_key:
        own["key"] = decode_dictionary(batch.keys[0])
    mask, columns = None, batch.columns
    for operator in operators:
        readable = {**own, **columns}
        if isinstance(operator, tuple):
            columns = {name: _column(expression, readable, len(batch.timestamps)) for name, expression in operator}
        else:
            is_true = pc.fill_null(_mask_of(operator, readable), False)
            mask = is_true if mask is None else pc.and_(mask, is_true)
    return batch.with_columns(columns).filtered(mask)


def _types(key: Shape, value: Shape) -> dict[str, str]:
    types = {"timestamp": "long"}
    if key.is_bare:
        types["key"] = key.columns[0].type
    return types | {name_at(value, index): column.type for index, column in enumerate(value.columns)}


def _type_of(expression: Expression, types: Mapping[str, str]) -> str:
    if isinstance(expression, Name):
        if expression.name not in types:
            message = f"{expression} is not a column"
            raise NotVectorizableError(message)
        return types[expression.name]
    if isinstance(expression, Literal):
        constant = expression.constant
        if type(constant) is int and constant not in _LONGS:
            message = f"{constant} exceeds 64 bits"
            raise NotVectorizableError(message)
        return _LITERALS[type(constant)]
    kinds = {_type_of(expression.left, types), _type_of(expression.right, types)}
    if not kinds <= {"long", "double"}:
        message = f"{expression} computes with {', '.join(sorted(kinds - {'long', 'double'}))}"
        raise NotVectorizableError(message)
    return "double" if "double" in kinds else "long"


def _column(expression: Expression, columns: Columns, rows: int) -> pa.Array:
    if isinstance(expression, Name):
        return columns[expression.name]
    if isinstance(expression, Literal):
        return pa.repeat(pa.scalar(expression.constant, arrow_type(_LITERALS[type(expression.constant)])), rows)
    parts = [_column(operand, columns, rows) for operand in (expression.left, expression.right)]
    if all(part.type == pa.int64() for part in parts):
        try:
            return _CHECKED[expression.operator](*parts)
        except pa.ArrowInvalid as error:
            raise UnfitError from error
    # Python rounds an integer to the nearest float. `safe=False` allows this here.
    return _ARITHMETIC[expression.operator](*(part.cast(pa.float64(), safe=False) for part in parts))


def _problem_of(condition: Condition, types: Mapping[str, str]) -> str:
    """Return why a condition cannot be evaluated on columns of these types; an empty text if it can be."""
    if isinstance(condition, Both):
        return _problem_of(condition.left, types) or _problem_of(condition.right, types)
    if isinstance(condition, Not):
        return _problem_of(condition.negated, types)
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


def _mask_of(condition: Condition, columns: Mapping[str, pa.Array]) -> pa.Array:
    """Return a mask of the rows where a condition is true. The mask is null where the result is unknown."""
    if isinstance(condition, Both):
        left, right = _mask_of(condition.left, columns), _mask_of(condition.right, columns)
        return pc.or_kleene(left, right) if condition.decides else pc.and_kleene(left, right)
    if isinstance(condition, Not):
        return pc.invert(_mask_of(condition.negated, columns))
    if isinstance(condition, IsNull):
        return columns[str(condition.term)].is_null()
    left, right, sign = condition.left, condition.right, condition.operator
    if sign in _SWAPPED:
        left, right, sign = right, left, _SWAPPED[sign]
    kind = next(columns[term.name].type for term in (left, right) if isinstance(term, Name))
    return _COMPARISONS[sign](*(_operand(term, columns, kind) for term in (left, right)))


def _operand(term: Name | Literal, columns: Mapping[str, pa.Array], kind: pa.DataType) -> Any:
    return columns[term.name] if isinstance(term, Name) else pa.scalar(term.constant, kind)


def _fits(constant: Any, kind: str) -> bool:
    """Return whether Arrow compares a column of a type with a constant as Python does."""
    if kind == "double" and type(constant) is int:
        return -_EXACT <= constant <= _EXACT
    return type(constant) is _CLASSES[kind] and (kind != "long" or constant in _LONGS)
