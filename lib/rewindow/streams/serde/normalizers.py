"""Coercion of values to column types, and normalizers of values of any type, used for tables, checkpoints and tests alike.

A value that does not have the class of its column is refused. Values are never rounded, truncated or reinterpreted. There is
one exception: an integer up to 2^53 in a ``double`` column becomes a float, because such integers are exact as floats. A
decimal gets the column's scale, and -0.0 becomes 0.0. Stores coerce values when they are put, so that a run reads the same
values with and without a restart.

A normalized value is restored from a checkpoint as an equal value of the same class. Undeclared values are stored as
canonical JSON. Numbers, str, bytes, Decimal, None, lists, tuples, dicts (ordered by the texts of their keys) and rewindow's
own tuples are restored unchanged. An instance of a user's class would be restored as another class (a Counter as a dict, a
NamedTuple as a `row_class` tuple). So it is refused when it is put.
"""

from __future__ import annotations

import typing
from array import array
from collections.abc import Callable, Collection, Sequence
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from functools import cache
from types import UnionType
from typing import Any, NamedTuple

from rewindow.errors import ConfigError, DataError
from rewindow.streams.record import row_class
from rewindow.streams.serde.canonical_json import TAGGED, by_text

_ATOMS = frozenset((int, bool, bytes, Decimal, type(None)))
_FROZEN = _ATOMS | {str, float}
Normalizer = Callable[[Any], Any]
"""A function that returns a value as it would be restored from a checkpoint. It raises `DataError` for a value that would not
be equal."""
EXACT_FLOATS = 2**53
_LEAST, _MOST = -(2**63), 2**63 - 1
_CLASSES: dict[str, type[Any]] = {
    "string": str,
    "json": str,
    "long": int,
    "double": float,
    "boolean": bool,
    "binary": bytes,
}


def class_of(column_type: str) -> type[Any]:
    """Return the class that the values of a column have, unless they are None."""
    return Decimal if column_type.startswith("decimal(") else _CLASSES[column_type]


def exact_context(precision: int = 38) -> Context:
    """Return a decimal context that raises instead of rounding."""
    return Context(prec=precision, traps=[Inexact, InvalidOperation, Overflow])


@cache
def coercer(column_type: str) -> Normalizer:
    """Return the function that coerces values to a column type. It raises `DataError` for a value that does not fit."""
    if column_type.startswith("decimal("):
        precision, scale = column_type[len("decimal(") : -1].split(",")
        return _decimal_coercer(int(precision), int(scale))
    return _COERCERS.get(column_type) or _class_coercer(column_type)


def coerce_text(value: Any) -> Any:
    """Return a str or None unchanged. Raises `DataError` for another class, and for a str that UTF-8 cannot encode."""
    if value.__class__ is str:
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                "text-with-surrogate",
                "the text {text} has half of a surrogate pair, which UTF-8 cannot write: remove it",
                text=repr(value),
            ) from error
        return value
    return None if value is None else _refuse(value, "string")


def coerce_long(value: Any) -> Any:
    """Return a 64-bit integer or None unchanged. Raises `DataError` for anything else."""
    if value.__class__ is int and _LEAST <= value <= _MOST:
        return value
    return None if value is None else _refuse(value, "long")


def coerce_double(value: Any) -> Any:
    """Return a float or None. Integers up to 2^53 are converted. Raises `DataError` for anything else."""
    if value.__class__ is float:
        return value or 0.0  # -0.0 becomes 0.0
    if value.__class__ is int and -EXACT_FLOATS <= value <= EXACT_FLOATS:
        return float(value)
    return None if value is None else _refuse(value, "double")


_COERCERS: dict[str, Normalizer] = {"string": coerce_text, "long": coerce_long, "double": coerce_double}


def are_all(values: Collection[Any], cls: type[Any]) -> bool:
    """Return whether all values have exactly this class."""
    # This is much faster than a set of the values' classes.
    return list(map(type, values)).count(cls) == len(values)


def stay_as_they_are(values: Collection[Any], normalize: Normalizer) -> bool:
    """Return True only if ``normalize`` would return each value unchanged. This is much faster than calling it for each.

    The result may be False although all values would be unchanged.
    """
    if not values or normalize not in _CLASS_OF or not are_all(values, _CLASS_OF[normalize]):
        return False
    if normalize is coerce_long:
        try:
            # This raises OverflowError for an integer beyond 64 bits. It is faster than computing minimum and maximum.
            array("q", values)
        except OverflowError:
            return False
        return True
    if normalize is coerce_text:
        return "".join(values).isascii()
    # -0.0 must be normalized. If all values are truthy, none of them is 0.0 or -0.0.
    return bool(all(values))


_CLASS_OF: dict[Normalizer, type[Any]] = {coerce_text: str, coerce_long: int, coerce_double: float}


def _class_coercer(column_type: str) -> Normalizer:
    wanted = class_of(column_type)

    def coerce(value: Any) -> Any:
        return value if value is None or value.__class__ is wanted else _refuse(value, column_type)

    return coerce


def _decimal_coercer(precision: int, scale: int) -> Normalizer:
    context, quantum = exact_context(precision), Decimal(1).scaleb(-scale)

    def coerce(value: Any) -> Any:
        if value is None:
            return None
        if value.__class__ is not Decimal or not value.is_finite():
            return _refuse(value, f"decimal({precision},{scale})")
        try:
            return value.quantize(quantum, context=context) if value else quantum * 0
        except DecimalException:
            return _refuse(value, f"decimal({precision},{scale})")

    return coerce


def _refuse(value: Any, column_type: str) -> Any:
    raise DataError(
        "value-type-wrong",
        "{given} ({type}) does not fit the type {declared}",
        given=repr(value),
        type=type(value).__name__,
        declared=column_type,
    )


class JsonType(NamedTuple):
    """The conversion of a type's values to JSON and back. ``normalize`` is applied before encoding, ``rebuild`` after decoding.

    If ``rebuild`` is None, decoded values need no rebuilding.
    """

    normalize: Normalizer
    rebuild: Normalizer | None = None


def normalize_undeclared(value: Any) -> Any:
    """Return a value as it would be decoded from its canonical JSON. Lists and dicts are copied.

    Raises `DataError` for a value whose class would not be restored.
    """
    cls = value.__class__
    if cls in _ATOMS:
        return value
    if cls is str:
        return coerce_text(value)
    if cls is float:
        return value or 0.0  # -0.0 becomes 0.0
    if cls is list:
        return [normalize_undeclared(item) for item in value]
    if cls is dict:
        return by_text({normalize_undeclared(key): normalize_undeclared(item) for key, item in value.items()})
    if cls is tuple or cls in TAGGED or (hasattr(cls, "_fields") and cls is row_class(cls._fields)):
        return same_tuple(value, [normalize_undeclared(item) for item in value])
    raise DataError(
        "value-type-undeclared",
        "{given} is a {type}, which would come back from a checkpoint as plain data: declare it if it is a "
        "NamedTuple, or keep numbers, text, bytes, Decimal, lists, tuples and dicts",
        given=repr(value),
        type=cls.__name__,
    )


def same_tuple(value: Any, items: Sequence[Any]) -> Any:
    """Return a tuple of the class of ``value`` with these items; ``value`` itself if it has the same items."""
    for item, other in zip(value, items, strict=True):
        if item is not other:
            return tuple(items) if value.__class__ is tuple else value._make(items)
    return value


def is_frozen(value: Any) -> bool:
    """Return whether a value is immutable, including its parts."""
    if isinstance(value, tuple):
        for item in value:  # noqa: SIM110 - a generator would cost more than the rest
            if item.__class__ not in _FROZEN and not is_frozen(item):
                return False
        return True
    return value.__class__ in _FROZEN


def are_frozen(values: Collection[Any]) -> bool:
    """Return whether all values are immutable."""
    return set(map(type, values)) <= _FROZEN or all(map(is_frozen, values))


def copied(value: Any) -> Any:
    """Return a deep copy of a value; the value itself if it is immutable."""
    cls = value.__class__
    if cls in _FROZEN or (isinstance(value, tuple) and is_frozen(value)):
        return value
    if cls is list:
        return [copied(item) for item in value]
    if cls is dict:
        return {key: copied(item) for key, item in value.items()}
    return same_tuple(value, [copied(item) for item in value]) if isinstance(value, tuple) else value


def json_type_of(declared: Any) -> JsonType:
    """Return the `JsonType` of a declared type."""
    declared = unannotated(declared)
    if declared is float:
        return JsonType(coerce_double)
    if is_row_type(declared) and declared not in TAGGED:
        return _row_type(declared)
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin is list:
        return list_type(json_type_of(arguments[0]))
    if origin is dict:
        return _dict_type(json_type_of(arguments[0]), json_type_of(arguments[1]))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _tuple_type(json_type_of(arguments[0]), None)
    if origin is tuple:
        return _tuple_type(None, [json_type_of(argument) for argument in arguments])
    return JsonType(normalize_undeclared)


def is_row_type(declared: Any) -> bool:
    """Return whether a type is a NamedTuple class."""
    return isinstance(declared, type) and issubclass(declared, tuple) and hasattr(declared, "_fields")


def hints_of(row_type: type[Any]) -> dict[str, Any]:
    """Return the declared types of a NamedTuple's fields. Raises `ConfigError` if their names cannot be resolved."""
    try:
        return typing.get_type_hints(row_type, include_extras=True)
    except NameError as error:
        raise ConfigError(
            "row-types-unresolved",
            "the types of {type} cannot be resolved ({reason}): define them at the top of the module",
            type=row_type.__name__,
            reason=str(error),
        ) from error


def without_none(hint: Any) -> Any:
    """Return ``T`` for ``T | None``, because every column is nullable. Return None for a union of several other types."""
    if typing.get_origin(hint) in (typing.Union, UnionType):
        others = [argument for argument in typing.get_args(hint) if argument is not type(None)]
        return others[0] if len(others) == 1 else None
    return hint


def unannotated(hint: Any) -> Any:
    """Return ``T`` for ``Annotated[T, ...]`` and for ``T | None``."""
    hint = without_none(hint)
    return unannotated(typing.get_args(hint)[0]) if typing.get_origin(hint) is typing.Annotated else hint


def as_row(value: Any, row_type: type[Any]) -> Any:
    """Return a value as an instance of ``row_type``.

    The value may be such an instance, a plain tuple of the same length, or a named tuple with the same fields, such as a row
    of a log. Raises `DataError` for anything else.
    """
    if value.__class__ is row_type:
        return value
    fields = row_type._fields
    if (value.__class__ is tuple and len(value) == len(fields)) or getattr(value, "_fields", None) == fields:
        return row_type._make(value)
    raise DataError(
        "value-not-declared-row",
        "{given} ({type}) was given where {declared}({fields}) is declared: use one, a row with its fields or a "
        "tuple of its length",
        given=repr(value),
        type=type(value).__name__,
        declared=row_type.__name__,
        fields=", ".join(fields),
    )


def row_normalizer(row_type: type[Any], normalizers: Sequence[Normalizer]) -> Normalizer:
    """Return the normalizer of rows of the class ``row_type``, given the normalizers of its fields.

    The normalizer returns the same object if no field changes. It raises `DataError`, which names the field.
    """
    if len(normalizers) == 2:
        return _pair_normalizer(row_type, *normalizers)

    def normalize(value: Any) -> Any:
        if value is None:
            return None
        row = value if value.__class__ is row_type else as_row(value, row_type)
        try:
            for normalize_item, item in zip(normalizers, row, strict=True):
                if normalize_item(item) is not item:
                    return _normalized_row(row, normalizers)
        except DataError:
            # `_normalized_row` raises the error again, with the field's name.
            return _normalized_row(row, normalizers)
        return row

    return normalize


def _pair_normalizer(row_type: type[Any], normalize_first: Normalizer, normalize_second: Normalizer) -> Normalizer:
    def normalize(value: Any) -> Any:
        if value is None:
            return None
        row = value if value.__class__ is row_type else as_row(value, row_type)
        first, second = row
        try:
            if normalize_first(first) is first and normalize_second(second) is second:
                return row
        except DataError:
            # The error is raised again below, with the field's name.
            pass
        return _normalized_row(row, (normalize_first, normalize_second))

    return normalize


def _normalized_row(row: Any, normalizers: Sequence[Normalizer]) -> Any:
    items = []
    for name, normalize, item in zip(row._fields, normalizers, row, strict=True):
        try:
            items.append(normalize(item))
        except DataError as error:
            error.surrounded(f"field {name!r}: ")
            raise
    return row._make(items)


def _row_type(row_type: type[Any]) -> JsonType:
    hints = hints_of(row_type)
    types = [json_type_of(hints.get(field)) for field in row_type._fields]

    def rebuild(value: Any) -> Any:
        return None if value is None else row_type._make(_rebuilt(value, types))

    return JsonType(row_normalizer(row_type, [one_type.normalize for one_type in types]), rebuild)


def list_type(item: JsonType) -> JsonType:
    """Return the `JsonType` of lists whose items all have the type ``item``."""

    def normalize(value: Any) -> Any:
        return (
            [item.normalize(element) for element in value] if value.__class__ is list else normalize_undeclared(value)
        )

    rebuild = item.rebuild
    if rebuild is None:
        return JsonType(normalize)
    return JsonType(
        normalize, lambda value: [rebuild(element) for element in value] if value.__class__ is list else value
    )


def _dict_type(key: JsonType, item: JsonType) -> JsonType:
    def normalize(value: Any) -> Any:
        if value.__class__ is not dict:
            return normalize_undeclared(value)
        return by_text({key.normalize(name): item.normalize(element) for name, element in value.items()})

    def rebuild(value: Any) -> Any:
        if value.__class__ is not dict:
            return value
        return {_rebuilt([name], [key])[0]: _rebuilt([element], [item])[0] for name, element in value.items()}

    return JsonType(normalize, rebuild if key.rebuild or item.rebuild else None)


def _tuple_type(each: JsonType | None, several: Sequence[JsonType] | None) -> JsonType:
    def types_for(value: Any) -> Sequence[JsonType]:
        return [each] * len(value) if each is not None else several or []

    def fits(value: Any) -> bool:
        return value.__class__ is tuple and len(types_for(value)) == len(value)

    def normalize(value: Any) -> Any:
        if not fits(value):
            return normalize_undeclared(value)
        return same_tuple(
            value, [one_type.normalize(item) for one_type, item in zip(types_for(value), value, strict=True)]
        )

    def rebuild(value: Any) -> Any:
        return tuple(_rebuilt(value, types_for(value))) if fits(value) else value

    return JsonType(
        normalize, rebuild if any(one_type.rebuild for one_type in several or [each or JsonType(normalize)]) else None
    )


def _rebuilt(items: Sequence[Any], types: Sequence[JsonType]) -> list[Any]:
    return [
        item if one_type.rebuild is None else one_type.rebuild(item)
        for one_type, item in zip(types, items, strict=True)
    ]
