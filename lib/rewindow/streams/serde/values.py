"""Plain data: what comes back from a checkpoint equal and of the same class, and how declared rows do.

Undeclared values are kept as canonical JSON. Numbers, text, bytes, Decimal, None, lists, tuples, dicts (in the order
of their keys' texts), and rewindow's own tuples come back as they were. A class of somebody else's would come back as
another (a Counter as a dict, a NamedTuple as a bare row), so it is refused when it is put, not found out after a restart.
"""

from __future__ import annotations

import typing
from collections.abc import Sequence
from decimal import Decimal
from types import UnionType
from typing import Any, NamedTuple

from rewindow.errors import ConfigError, DataError
from rewindow.streams.record import row_class
from rewindow.streams.serde.canonical_json import TAGGED, by_text
from rewindow.streams.serde.coercion import Keep, fit_double, fit_text

_ATOMS = frozenset((int, bool, bytes, Decimal, type(None)))
_FROZEN = _ATOMS | {str, float}


class Kind(NamedTuple):
    """How values of one type are kept as JSON: normalised on the way in, rebuilt (if need be) on the way out."""

    keep: Keep
    rebuild: Keep | None = None


def keep_undeclared(value: Any) -> Any:
    """Return a value as canonical JSON gives it back; what can be changed in place is copied.

    Raises `DataError` for a class that would come back as another.
    """
    cls = value.__class__
    if cls in _ATOMS:
        return value
    if cls is str:
        return fit_text(value)
    if cls is float:
        return value or 0.0  # -0.0 too
    if cls is list:
        return [keep_undeclared(item) for item in value]
    if cls is dict:
        return by_text({keep_undeclared(key): keep_undeclared(item) for key, item in value.items()})
    if cls is tuple or cls in TAGGED or (hasattr(cls, "_fields") and cls is row_class(cls._fields)):
        return same_tuple(value, [keep_undeclared(item) for item in value])
    message = (
        f"{value!r} is a {cls.__name__}, which would come back from a checkpoint as plain data: declare it if it is a "
        "NamedTuple, or keep numbers, text, bytes, Decimal, lists, tuples and dicts"
    )
    raise DataError(message)


def same_tuple(value: Any, items: Sequence[Any]) -> Any:
    """Return a tuple with these items: itself if they are its own."""
    for one, other in zip(value, items, strict=True):
        if one is not other:
            return tuple(items) if value.__class__ is tuple else value._make(items)
    return value


def is_frozen(value: Any) -> bool:
    """Return whether nothing can change a value in place."""
    if isinstance(value, tuple):
        for item in value:  # noqa: SIM110 - a generator would cost more than all the rest
            if item.__class__ not in _FROZEN and not is_frozen(item):
                return False
        return True
    return value.__class__ in _FROZEN


def copied(value: Any) -> Any:
    """Return plain data that shares nothing that can be changed; itself if nothing can change it."""
    cls = value.__class__
    if cls in _FROZEN or (isinstance(value, tuple) and is_frozen(value)):
        return value
    if cls is list:
        return [copied(item) for item in value]
    if cls is dict:
        return {key: copied(item) for key, item in value.items()}
    return same_tuple(value, [copied(item) for item in value]) if isinstance(value, tuple) else value


def kind_of(declared: Any) -> Kind:
    """Return how values of a type are kept inside JSON. What is not declared is plain."""
    declared = without_none(declared)
    if declared is float:
        return Kind(fit_double)
    if is_row_type(declared) and declared not in TAGGED:
        return _row_kind(declared)
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin is list:
        return list_kind(kind_of(arguments[0]))
    if origin is dict:
        return _dict_kind(kind_of(arguments[0]), kind_of(arguments[1]))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _tuple_kind(kind_of(arguments[0]), None)
    if origin is tuple:
        return _tuple_kind(None, [kind_of(argument) for argument in arguments])
    return Kind(keep_undeclared)


def is_row_type(declared: Any) -> bool:
    """Return whether a type is a NamedTuple class."""
    return isinstance(declared, type) and issubclass(declared, tuple) and hasattr(declared, "_fields")


def hints_of(row_type: type[Any]) -> dict[str, Any]:
    """Return the declared types of a NamedTuple's fields. Raises `ConfigError` if their names are nowhere to be found."""
    try:
        return typing.get_type_hints(row_type)
    except NameError as error:
        message = f"the types of {row_type.__name__} cannot be found ({error}): define them at the top of the module"
        raise ConfigError(message) from error


def without_none(hint: Any) -> Any:
    """Return ``T`` for ``T | None``: every column is nullable."""
    if typing.get_origin(hint) in (typing.Union, UnionType):
        others = [argument for argument in typing.get_args(hint) if argument is not type(None)]
        return others[0] if len(others) == 1 else None
    return hint


def as_row(value: Any, row_type: type[Any]) -> Any:
    """Return a row: the value itself, or one made of a bare tuple or of another row with the same fields, as a log's are.

    Raises `DataError` for anything else.
    """
    if value.__class__ is row_type:
        return value
    fields = row_type._fields
    if (value.__class__ is tuple and len(value) == len(fields)) or getattr(value, "_fields", None) == fields:
        return row_type._make(value)
    message = (
        f"{value!r} ({type(value).__name__}) was given where {row_type.__name__}({', '.join(fields)}) is declared: "
        "give one, a row with its fields or a tuple of its length"
    )
    raise DataError(message)


def row_keep(row_type: type[Any], keeps: Sequence[Keep]) -> Keep:
    """Return what keeps rows of a class, each item by its own function; a row that stays the same is not made anew.

    It raises `DataError` naming the field.
    """
    if len(keeps) == 2:
        return _pair_keep(row_type, *keeps)

    def keep(value: Any) -> Any:
        if value is None:
            return None
        row = value if value.__class__ is row_type else as_row(value, row_type)
        try:
            for one, item in zip(keeps, row, strict=True):
                if one(item) is not item:
                    return _kept_anew(row, keeps)
        except DataError:
            return _kept_anew(row, keeps)  # raises it again, with the field's name
        return row

    return keep


def _pair_keep(row_type: type[Any], keep_first: Keep, keep_second: Keep) -> Keep:
    def keep(value: Any) -> Any:
        if value is None:
            return None
        row = value if value.__class__ is row_type else as_row(value, row_type)
        first, second = row
        try:
            if keep_first(first) is first and keep_second(second) is second:
                return row
        except DataError:
            pass  # it is raised again, with the field's name
        return _kept_anew(row, (keep_first, keep_second))

    return keep


def _kept_anew(row: Any, keeps: Sequence[Keep]) -> Any:
    items = []
    for name, keep, item in zip(row._fields, keeps, row, strict=True):
        try:
            items.append(keep(item))
        except DataError as error:
            message = f"field {name!r}: {error}"
            raise DataError(message) from error
    return row._make(items)


def _row_kind(row_type: type[Any]) -> Kind:
    hints = hints_of(row_type)
    kinds = [kind_of(hints.get(field)) for field in row_type._fields]

    def rebuild(value: Any) -> Any:
        return None if value is None else row_type._make(_rebuilt(value, kinds))

    return Kind(row_keep(row_type, [kind.keep for kind in kinds]), rebuild)


def list_kind(item: Kind) -> Kind:
    """Return how a list of values of one kind is kept."""

    def keep(value: Any) -> Any:
        return [item.keep(one) for one in value] if value.__class__ is list else keep_undeclared(value)

    rebuild = item.rebuild
    if rebuild is None:
        return Kind(keep)
    return Kind(keep, lambda value: [rebuild(one) for one in value] if value.__class__ is list else value)


def _dict_kind(key: Kind, item: Kind) -> Kind:
    def keep(value: Any) -> Any:
        if value.__class__ is not dict:
            return keep_undeclared(value)
        return by_text({key.keep(one): item.keep(other) for one, other in value.items()})

    def rebuild(value: Any) -> Any:
        if value.__class__ is not dict:
            return value
        return {_rebuilt([one], [key])[0]: _rebuilt([other], [item])[0] for one, other in value.items()}

    return Kind(keep, rebuild if key.rebuild or item.rebuild else None)


def _tuple_kind(each: Kind | None, several: Sequence[Kind] | None) -> Kind:
    def kinds_for(value: Any) -> Sequence[Kind]:
        return [each] * len(value) if each is not None else several or []

    def fits(value: Any) -> bool:
        return value.__class__ is tuple and len(kinds_for(value)) == len(value)

    def keep(value: Any) -> Any:
        if not fits(value):
            return keep_undeclared(value)
        return same_tuple(value, [kind.keep(item) for kind, item in zip(kinds_for(value), value, strict=True)])

    def rebuild(value: Any) -> Any:
        return tuple(_rebuilt(value, kinds_for(value))) if fits(value) else value

    return Kind(keep, rebuild if any(kind.rebuild for kind in several or [each or Kind(keep)]) else None)


def _rebuilt(items: Sequence[Any], kinds: Sequence[Kind]) -> list[Any]:
    return [item if kind.rebuild is None else kind.rebuild(item) for kind, item in zip(kinds, items, strict=True)]
