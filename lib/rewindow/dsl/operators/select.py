"""The nodes of `KStream.where` and `KStream.select`. Unlike functions, their texts can be evaluated on whole columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from keyword import iskeyword
from typing import Any, ClassVar

from rewindow.dsl.operators.conditions import Condition
from rewindow.dsl.operators.expressions import Computed, Expression, Literal, Name, Reader
from rewindow.errors import ConfigError, DataError
from rewindow.streams.nodes import LeavesOut
from rewindow.streams.processor import Processor
from rewindow.streams.record import Record, maker, row_class
from rewindow.streams.serde.types_to_columns import NamedType, NumberType, RowType

Fields = tuple[tuple[str, Expression], ...]
"""Pairs ``(name, expression)``, one for each field."""


@dataclass(frozen=True, slots=True)
class Select:
    """Replace each value by a row. A null value gives a row of nulls."""

    keeps_key: ClassVar[bool] = True

    fields: Fields

    def __call__(self) -> Processor:
        return _Select(self.fields)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        shown = (name if str(expression) == name else f"{expression} as {name}" for name, expression in self.fields)
        return f"select({', '.join(shown)})"


def read_fields(text: str) -> Fields:
    """Parse the text of a `select`. Raises `ConfigError`, which names the wrong token or the invalid field name."""
    return _Reader(text, "select").whole()


def type_of(fields: Fields, key: Any, value: Any) -> RowType:
    """Return the declared type of the rows, given the types of key and value."""
    return RowType(tuple((name, _type_of(expression, key, value)) for name, expression in fields))


@dataclass(frozen=True, slots=True)
class Where:
    """Keep the records for which a condition is true. If it is false or null, the record is dropped."""

    keeps_key: ClassVar[bool] = True
    leaves_out: ClassVar[LeavesOut] = LeavesOut.BY_CONDITION

    condition: Condition

    def __call__(self) -> Processor:
        return _Where(self.condition)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"where({self.condition})"


def _type_of(expression: Expression, key: Any, value: Any) -> Any:
    if isinstance(expression, Literal):
        return type(expression.constant)
    if isinstance(expression, Name):
        return NamedType(key, value, expression.name)
    parts = _type_of(expression.left, key, value), _type_of(expression.right, key, value)
    return NumberType(parts, str(expression))


class _Select(Processor):
    def __init__(self, fields: Fields) -> None:
        self._makes = [expression.value for _, expression in fields]
        self._row = maker(row_class(tuple(name for name, _ in fields)))

    def process(self, record: Record) -> None:
        look = partial(_look_in, record, "select")
        self.context.forward(record.with_value(self._row(tuple([make(look) for make in self._makes]))))


class _Reader(Reader):
    def whole(self) -> Fields:
        fields = [self._field()]
        while self._takes(","):
            fields.append(self._field())
        if self._next():
            raise self._wrong("a `,` is missing before")
        names = [name for name, _ in fields]
        for name, count in Counter(names).items():
            if count > 1:
                raise ConfigError(
                    "selected-field-twice",
                    "select({text!r}): two fields are called {field!r}: rename one of them",
                    text=self._shown,
                    field=name,
                )
        return tuple(fields)

    def _field(self) -> tuple[str, Expression]:
        self._terms = 0
        made = self._expression()
        if self._takes("as"):
            name = self._term()
        elif isinstance(made, Computed | Literal):
            raise self._wrong(f"`{made}` needs a name, as in `{made} as total`, before")
        else:
            name = made
        if not isinstance(name, Name) or iskeyword(name.name) or name.name.startswith("_"):
            raise ConfigError(
                "selected-name-invalid",
                "select({text!r}): {name!r} cannot be a column's name: it must be an identifier, not a Python keyword, and "
                "not begin with '_'",
                text=self._shown,
                name=str(name),
            )
        return name.name, made


class _Where(Processor):
    def __init__(self, condition: Condition) -> None:
        self._condition = condition

    def process(self, record: Record) -> None:
        if self._condition.truth(partial(_look_in, record, "where")):
            self.context.forward(record)


def _look_in(record: Record, verb: str, name: str) -> Any:
    """Return the value of a name in a record. Raises `DataError` for an unknown name; the error lists the known names."""
    fields = getattr(record.value, "_fields", ())
    if name in fields:
        return getattr(record.value, name)
    if name in ("key", "value", "timestamp"):
        return getattr(record, name)
    if record.value is None:
        # The fields of a null row are null, as in the evaluation on whole columns.
        return None
    raise DataError(
        "field-not-in-record",
        "{verb}(...): there is no field {field!r}: use one of {fields}",
        verb=verb,
        field=name,
        fields=", ".join([*fields, "key", "value", "timestamp"]),
    )
