"""Checks of a topology's functions, conditions and joins against the types of the records, before any record is read.

Only code that is sure to fail is reported: a name that no record has, a comparison that is never true, keys that are never
equal. Functions are not called. Their bytecode shows which attributes of their arguments they read.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from rewindow.dsl.operators.conditions import Compare, Condition, compares_in, names_in
from rewindow.dsl.operators.expressions import Literal
from rewindow.errors import ConfigError
from rewindow.streams.record import Record, Windowed
from rewindow.streams.serde.schema import Shape, named_key
from rewindow.streams.serde.types_to_columns import LogShapes, LogType, WindowedType, bind

_CLASSES: Mapping[str, type[Any]] = {"string": str, "long": int, "double": float, "boolean": bool, "binary": bytes}
_SHOWN = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "a boolean",
    bytes: "bytes",
    Decimal: "a decimal",
}
_NUMBERS = (int, float, Decimal, bool)
_DEFENSIVE = frozenset(("hasattr", "getattr", "isinstance", "type", "_fields"))
"""A function that uses one of these names may handle several types, so it is not checked."""


class ReadsError(ConfigError):
    """The code of a topology reads a name that its records do not have, or compares values that cannot be equal (78)."""


class RecordOf(NamedTuple):
    """The declared type of an argument that is a whole `Record`: the types of its key and value."""

    key: Any
    value: Any


class _Argument(NamedTuple):
    """The class of an argument.

    If it is a record or windowed key, ``parts`` maps its attributes to the classes of their values.
    """

    of: Any
    parts: Mapping[str, _Argument | None] = {}


@dataclass(frozen=True, slots=True)
class FunctionReads:
    """A function that a node calls with arguments of these declared types. A type of None is unknown."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def check(self, logs: LogShapes) -> None:
        """Raise `ReadsError`, with the line in the function, if the function reads an attribute that its argument lacks."""
        function, given = _python_function(self.function, self.arguments)
        if function is None or any(_may_handle_errors(code) for code in _codes(function.__code__)):
            return
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        arguments = {name: _argument(declared, logs) for name, declared in zip(names, given, strict=False)}
        for of, attribute, line in _attributes(code, arguments):
            if not hasattr(of, attribute):
                raise _lacks(of, attribute, self._keys(logs)).at_line(f"{code.co_filename}:{line}")

    def _keys(self, logs: LogShapes) -> list[str]:
        """Return the names of the key columns of the logs whose keys or values the function gets."""
        parts = [part for given in self.arguments for part in (given if isinstance(given, RecordOf) else (given,))]
        topics = [part.topic for part in parts if isinstance(part, LogType) and part.topic in logs]
        return [name for topic in topics for name in logs[topic][0].names]


@dataclass(frozen=True, slots=True)
class ConditionReads:
    """A condition on records whose keys and values have these declared types."""

    condition: Condition
    key: Any
    value: Any

    def check(self, logs: LogShapes) -> None:
        """Raise `ReadsError` for a name that no record has, or a comparison of text with numbers."""
        value = _shape(self.value, logs)
        if value is None or not (value.is_bare or value.row_type):
            return
        fields = {} if value.row_type is None else {column.name: column.type for column in value.columns}
        names = {**fields, "key": "", "value": value.columns[0].type if value.is_bare else "", "timestamp": "long"}
        for name in names_in(self.condition):
            if name not in names:
                key = _shape(self.key, logs)
                fix = named_key(name, key.names if key is not None else (), "write key") or _near(name, names)
                times = " (the log's own times are called timestamp)" if isinstance(self.value, LogType) else ""
                raise ReadsError(
                    "unknown-field",
                    "where({condition}): there is no field {field!r} (there are {fields}){fix}{times}",
                    condition=self.condition,
                    field=name,
                    fields=", ".join(names),
                    fix=fix,
                    times=times,
                )
        for compare in compares_in(self.condition):
            _check_types(self.condition, compare, {name: _class_of(of) for name, of in (names | fields).items()})


@dataclass(frozen=True, slots=True)
class EqualKeys:
    """The declared key types of the two sides of a join. ``what`` is the operation, for errors."""

    what: str
    left: Any
    right: Any

    def check(self, logs: LogShapes) -> None:
        """Raise `ReadsError` for keys with different column types: they are never equal and may be in different partitions."""
        left, right = _shape(self.left, logs), _shape(self.right, logs)
        if left is None or right is None:
            return
        types = [[column.type for column in shape.columns] for shape in (left, right)]
        if types[0] == types[1] or any(of == "json" or of.startswith("decimal") for of in (*types[0], *types[1])):
            return
        shown = [
            ", ".join(_SHOWN.get(_class_of(column_type) or object, column_type) for column_type in of) for of in types
        ]
        raise ReadsError(
            "unequal-keys",
            "{what}: the keys of its sides are {left} and {right}, which are never equal: convert one side with select_key",
            what=self.what,
            left=shown[0],
            right=shown[1],
        )


def _check_types(condition: Condition, compare: Compare, types: Mapping[str, type[Any] | None]) -> None:
    """Raise `ReadsError` for a comparison that is never true, or for which Python raises an error."""
    left, right = (
        type(term.constant) if isinstance(term, Literal) else types.get(term.name)
        for term in (compare.left, compare.right)
    )
    if left is None or right is None or left is right or (left in _NUMBERS and right in _NUMBERS):
        return
    times = " (times are landed as epoch milliseconds)" if {left, right} == {int, str} else ""
    raise ReadsError(
        "unequal-types",
        "where({condition}): {left} is {left_type} and {right} is {right_type}, which cannot be compared{times}. Change the "
        "condition, or the type in the source's `schema`",
        condition=condition,
        left=compare.left,
        left_type=_SHOWN[left],
        right=compare.right,
        right_type=_SHOWN[right],
        times=times,
    )


def _shape(declared: Any, logs: LogShapes) -> Shape | None:
    """Return the shape of a declared type; None if it is unknown."""
    # A type that does not bind is reported when the node's sink or store is bound.
    try:
        return None if declared is None else bind(declared, "value", logs)
    except ConfigError:
        return None


def _argument(declared: Any, logs: LogShapes) -> _Argument | None:
    if isinstance(declared, RecordOf):
        return _Argument(Record, {"key": _argument(declared.key, logs), "value": _argument(declared.value, logs)})
    if isinstance(declared, WindowedType):
        return _Argument(Windowed, {"key": _argument(declared.key, logs)})
    shape = _shape(declared, logs)
    of = None if shape is None else shape.row_type or (_class_of(shape.columns[0].type) if shape.is_bare else None)
    return None if of is None else _Argument(of)


def _class_of(column_type: str) -> type[Any] | None:
    return Decimal if column_type.startswith("decimal(") else _CLASSES.get(column_type)


def _python_function(function: Any, arguments: tuple[Any, ...]) -> tuple[FunctionType | None, tuple[Any, ...]]:
    """Return the Python function that a callable calls, and its positional arguments; None if there is no such function."""
    if isinstance(function, partial):
        return _python_function(function.func, (*(None for _ in function.args), *arguments))
    if isinstance(function, MethodType):
        return _python_function(function.__func__, (None, *arguments))
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType):
        function, arguments = type(function).__call__, (None, *arguments)
    return (function, arguments) if isinstance(function, FunctionType) else (None, ())


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of the functions and comprehensions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _may_handle_errors(code: CodeType) -> bool:
    may_catch = bool(code.co_exceptiontable) and not code.co_flags & inspect.CO_GENERATOR
    return may_catch or not _DEFENSIVE.isdisjoint(code.co_names)


def _attributes(code: CodeType, arguments: Mapping[str, _Argument | None]) -> Iterator[tuple[Any, str, int]]:
    """Yield ``(class, attribute, line)`` for each attribute that a function reads from an argument of that class.

    The attribute is ``['key']`` for a subscript. A local variable that is assigned once, from an argument or an attribute of
    an argument, counts as an argument. Functions and comprehensions in the function are searched, too.
    """
    steps = list(dis.get_instructions(code))
    stored = [name for part in _codes(code) for step in dis.get_instructions(part) for name in _stored(step)]
    variables = {name: argument for name, argument in arguments.items() if name not in stored}
    # `top` is the argument on top of the stack after the last instruction. If that instruction loaded a constant, `below` is
    # the argument below the constant.
    top: _Argument | None = None
    below: _Argument | None = None
    constant: Any = None
    for step in steps:
        line = (step.positions.lineno if step.positions else None) or code.co_firstlineno
        if below and isinstance(constant, str) and (step.opname == "BINARY_SUBSCR" or step.argrepr == "[]"):
            yield below.of, f"[{constant!r}]", line
        below, constant = (top, step.argval) if step.opname == "LOAD_CONST" else (None, None)
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if top is not None:
                yield top.of, step.argval, line
            top = None if top is None else top.parts.get(step.argval)
            continue
        for name in _stored(step):
            if stored.count(name) == 1 and name not in arguments:
                variables[name] = top
        top = variables.get(_loaded(step))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _attributes(inner, {name: variables.get(name) for name in inner.co_freevars})


def _loaded(step: dis.Instruction) -> str:
    """Return the name of the local variable that an instruction loads on top of the stack; an empty text if it loads none."""
    if step.opname == "LOAD_DEREF":
        return str(step.argval)
    if step.opname.endswith(("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")):
        return str(step.argval[-1] if isinstance(step.argval, tuple) else step.argval)
    return ""


def _stored(step: dis.Instruction) -> tuple[str, ...]:
    """Return the names of the local variables that an instruction stores or deletes."""
    if not step.opname.startswith(("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF")):
        return ()
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    return tuple(names) if step.opname == "STORE_FAST_STORE_FAST" else tuple(names[:1])


def _lacks(of: Any, attribute: str, keys: Iterable[str]) -> ReadsError:
    fields = getattr(of, "_fields", None)
    if fields is None:
        return ReadsError(
            "value-is-no-row",
            "the value is {type}, not a row, so it has no field {field!r}: use it as it is",
            type=_SHOWN[of],
            field=attribute,
        )
    if attribute.startswith("["):
        return ReadsError(
            "row-is-no-dict",
            "the value is a row, not a dict: write its fields as attributes, as in row.{field}",
            field=fields[0],
        )
    # The fix `columns:` always helps. `with_key=True` does not: the joiner of a foreign key gets only the key of its first table.
    in_key = "not a field of the value: read the key (`with_key=True`), or land it as a field, too (`columns:`)"
    fix = named_key(attribute, [*keys], in_key) or _near(attribute, fields)
    return ReadsError(
        "unknown-attribute",
        "there is no field {field!r} (there are {fields}){fix}",
        field=attribute,
        fields=", ".join(fields),
        fix=fix,
    )


def _near(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(names), 1)
    return f": did you mean {near[0]!r}?" if near else ": name one of them"
