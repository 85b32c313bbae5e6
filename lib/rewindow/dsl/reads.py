"""What the functions and conditions of a topology read, checked against the columns of the logs before any record is read.

Only what must fail is reported: a field that an argument of a known type lacks, and a comparison of text with numbers.
Functions are not run. Their bytecode tells which attributes they take of their arguments.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from rewindow.dsl.operators.conditions import Compare, Condition, compares_in, names_in
from rewindow.dsl.operators.expressions import Literal
from rewindow.errors import ConfigError
from rewindow.streams.record import Record, Windowed
from rewindow.streams.serde.binding import LogShapes, LogType, WindowedType, bind
from rewindow.streams.serde.schema import Shape, named_key

_CLASSES: Mapping[str, type[Any]] = {
    "string": str,
    "long": int,
    "double": float,
    "boolean": bool,
    "binary": bytes,
}
_SHOWN = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    bytes: "bytes",
    Decimal: "a decimal",
}
_NUMBERS = (int, float, Decimal, bool)
_ASKS = frozenset(("hasattr", "getattr", "isinstance", "type", "_fields"))
"""A function that uses one of these may know what it reads better than its declaration."""


class RecordOf(NamedTuple):
    """The declared type of an argument that is a whole record."""

    key: Any
    value: Any


class _Known(NamedTuple):
    """The class of an argument; for a whole record those of its parts."""

    of: Any
    parts: Mapping[str, _Known | None] = {}


@dataclass(frozen=True, slots=True)
class FunctionReads:
    """A function that a node calls with arguments of these declared types; None: unknown."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def check(self, logs: LogShapes) -> None:
        """Raise `ConfigError` for an attribute that an argument cannot have, naming file and line."""
        function = inspect.unwrap(self.function)
        code = getattr(function, "__code__", None)
        if not isinstance(function, FunctionType) or code is None or not _ASKS.isdisjoint(code.co_names):
            return
        if code.co_exceptiontable and not code.co_flags & inspect.CO_GENERATOR:
            return  # it may catch its own mistake
        names = code.co_varnames[: code.co_argcount]
        known = {name: _known(one, logs) for name, one in zip(names, self.arguments, strict=False)}
        for of, attribute, line in _attributes(code, {name: one for name, one in known.items() if one is not None}):
            if not hasattr(of, attribute):
                raise ConfigError(
                    f"{code.co_filename}:{line}: {_lacks(of, attribute, self._if_key(of, attribute, logs))}"
                )

    def _if_key(self, of: Any, attribute: str, logs: LogShapes) -> str:
        """Return how a function gets the key if it looks for its name in the rows of a log; else ``""``."""
        whole = [one for one in self.arguments if isinstance(one, RecordOf)]
        rows = [one for one in (*self.arguments, *(one.value for one in whole)) if _is_of_log(one, "value", logs)]
        names = [name for one in rows if logs[one.topic][1].row_type is of for name in logs[one.topic][0].names]
        if any(_is_of_log(one.key, "key", logs) for one in whole):
            fix = "write record.key"
        elif any(_is_of_log(one, "key", logs) for one in self.arguments):
            fix = "which is the function's first argument"
        elif self.arguments[0] in rows:
            fix = "which with_key=True gives the function, too"
        else:
            fix = "not a field of the value"
        return named_key(attribute, names, fix)


@dataclass(frozen=True, slots=True)
class ConditionReads:
    """A condition on records of these declared types."""

    condition: Condition
    key: Any
    value: Any

    def check(self, logs: LogShapes) -> None:
        """Raise `ConfigError` for a name that no record has, or a comparison of text with numbers."""
        value = _shape(self.value, logs)
        if value is None or not (value.is_bare or value.row_type):
            return
        fields = {} if value.row_type is None else {column.name: column.type for column in value.columns}
        known = {*fields, "key", "value", "timestamp"}
        for name in names_in(self.condition):
            if name not in known:
                names = ", ".join([*fields, "key", "value", "timestamp"])
                key = _shape(self.key, logs)
                fix = named_key(name, key.names if key is not None else (), "write key") or _near(name, known)
                if isinstance(self.value, LogType):
                    fix += " (the log's own times are called timestamp)"
                message = f"where({self.condition}): there is no field {name!r} (there are {names}){fix}"
                raise ConfigError(message)
        own: dict[str, type[Any] | None] = {"timestamp": int}
        own |= {"value": _class_of(value.columns[0].type)} if value.is_bare else {}
        types = own | {name: _class_of(column_type) for name, column_type in fields.items()}
        for compare in compares_in(self.condition):
            _check_types(self.condition, compare, types)


@dataclass(frozen=True, slots=True)
class EqualKeys:
    """The declared keys of two sides that meet. ``what`` they do, for errors."""

    what: str
    left: Any
    right: Any

    def check(self, logs: LogShapes) -> None:
        """Raise `ConfigError` for keys of different types, which are never equal and may be in different partitions."""
        shapes = (_shape(self.left, logs), _shape(self.right, logs))
        if shapes[0] is None or shapes[1] is None:
            return
        types = [[column.type for column in shape.columns] for shape in shapes if shape is not None]
        if types[0] == types[1] or any("json" in of or any(one.startswith("decimal") for one in of) for of in types):
            return
        left, right = (", ".join(_SHOWN.get(_class_of(one) or object, one) for one in of) for of in types)
        message = (
            f"{self.what}: the keys of its sides are {left} and {right}, so no record finds one of the other side: "
            "convert one side with select_key"
        )
        raise ConfigError(message)


def _check_types(condition: Condition, compare: Compare, types: Mapping[str, type[Any] | None]) -> None:
    """Raise `ConfigError` for a comparison that is never true, or that Python cannot do."""
    pair = [
        type(term.constant) if isinstance(term, Literal) else types.get(term.name)
        for term in (compare.left, compare.right)
    ]
    left, right = pair
    if left is None or right is None or left is right or (left in _NUMBERS and right in _NUMBERS):
        return
    if (
        bool in pair
        and isinstance(compare.right, Literal)
        and compare.right.constant is True
        and compare.operator == "="
    ):
        what = f"{compare.left} is {_SHOWN[left]}, which is not a condition by itself: compare it with something"
    else:
        what = f"{compare.left} is {_SHOWN[left]} and {compare.right} is {_SHOWN[right]}, which cannot be compared"
    is_time = int in pair and str in pair
    hint = " (times are landed as epoch milliseconds)" if is_time else ""
    landed = ". Give the source a `schema` with another type and land again, or change the condition"
    raise ConfigError(f"where({condition}): {what}{hint}{landed}")


def _is_of_log(declared: Any, part: str, logs: LogShapes) -> bool:
    return isinstance(declared, LogType) and declared.part == part and declared.topic in logs


def _shape(declared: Any, logs: LogShapes) -> Shape | None:
    """Return the shape of a declared type; None if it is unknown. What does not bind is reported where it is stored."""
    try:
        return None if declared is None else bind(declared, "value", logs)
    except ConfigError:
        return None


def _known(declared: Any, logs: LogShapes) -> _Known | None:
    if isinstance(declared, RecordOf):
        return _Known(Record, {"key": _known(declared.key, logs), "value": _known(declared.value, logs)})
    if isinstance(declared, WindowedType):
        return _Known(Windowed, {"key": _known(declared.key, logs)})
    shape = _shape(declared, logs)
    if shape is None:
        return None
    of = shape.row_type or (_class_of(shape.columns[0].type) if shape.is_bare else None)
    return None if of is None else _Known(of)


def _class_of(column_type: str) -> type[Any] | None:
    return Decimal if column_type.startswith("decimal(") else _CLASSES.get(column_type)


def _attributes(code: CodeType, known: Mapping[str, _Known]) -> Iterator[tuple[Any, str, int]]:
    """Yield what a function takes of a known argument: the argument's class, the attribute (or ``['key']``) and the line."""
    steps = list(dis.get_instructions(code))
    stored = [name for step in steps for name in _stored(step)]
    current = {name: one for name, one in known.items() if name not in stored}
    at: _Known | None = None
    before: _Known | None = None
    index: Any = None
    for step in steps:
        line = (step.positions.lineno if step.positions else None) or code.co_firstlineno
        if before is not None and isinstance(index, str) and (step.opname == "BINARY_SUBSCR" or step.argrepr == "[]"):
            yield before.of, f"[{index!r}]", line
        before, index = (at, step.argval) if step.opname == "LOAD_CONST" else (None, None)
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if at is not None:
                yield at.of, step.argval, line
            at = None if at is None else at.parts.get(step.argval)
            continue
        for name in _stored(step):
            if at is not None and stored.count(name) == 1 and name not in known:
                current[name] = at
        if step.opname != "CACHE":
            loaded = _loaded(step)
            at = None if loaded is None else current.get(loaded)


def _loaded(step: dis.Instruction) -> str | None:
    """Return the local variable that an instruction leaves on top of the stack."""
    if step.opname.endswith(("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")):
        return str(step.argval[-1] if isinstance(step.argval, tuple) else step.argval)
    return None


def _stored(step: dis.Instruction) -> tuple[str, ...]:
    """Return the local variables that an instruction stores or deletes."""
    if not step.opname.startswith(("STORE_FAST", "DELETE_FAST")):
        return ()
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    return tuple(names) if step.opname == "STORE_FAST_STORE_FAST" else tuple(names[:1])


def _lacks(of: Any, attribute: str, if_key: str) -> str:
    fields = getattr(of, "_fields", None)
    if attribute.startswith("["):
        what = f"a row, not a dict: write its fields as attributes, as in row.{fields[0]}" if fields else _SHOWN[of]
        return f"the value is {what}"
    if fields is None:
        return f"the value is {_SHOWN[of]}, not a row, so it has no field {attribute!r}: use it as it is"
    return f"there is no field {attribute!r} (there are {', '.join(fields)}){if_key or _near(attribute, fields)}"


def _near(name: str, known: Any) -> str:
    near = get_close_matches(name, sorted(known), 1)
    return f": did you mean {near[0]!r}?" if near else ": name one of them"
