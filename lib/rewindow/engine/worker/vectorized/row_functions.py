"""Python functions before vectorized windows: `filter`, `map_values`, `flat_map_values` and `peek`.

Each batch is decoded to lists of Python values once, passed through all adjacent functions, and encoded again. If a function
raises an exception or returns another type than the declared one, vectorized execution of the task ends (`UnfitError`). Record
execution then runs the task from its beginning, and its error names the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Any

import numpy as np
import pyarrow as pa

from rewindow.dsl.operators.stateless import Filter, FlatMapValues, MapValues, Peek
from rewindow.engine.worker.arrow_rows import arrow_type, decode
from rewindow.engine.worker.vectorized.arrays import Array, NotVectorizableError, UnfitError, is_decimal
from rewindow.engine.worker.vectorized.batches import Batch, name_at
from rewindow.engine.worker.vectorized.keys import decode_dictionary
from rewindow.errors import ConfigError
from rewindow.streams.serde.normalizers import class_of
from rewindow.streams.serde.schema import Column, Shape
from rewindow.streams.serde.types_to_columns import LogShapes, bind

FUNCTIONS = (Filter, MapValues, FlatMapValues, Peek)
"""The suppliers of the nodes that this module runs."""

Function = Filter | MapValues | FlatMapValues | Peek


@dataclass(frozen=True, slots=True)
class Calls:
    """The functions of adjacent nodes, and the nodes' names.

    ``key`` is the shape of the keys. ``before`` is the shape of the values that the first function gets. ``after`` is the
    shape of the last function's results.
    """

    names: tuple[str, ...]
    functions: tuple[Function, ...]
    key: Shape
    before: Shape
    after: Shape
    wanted: frozenset[str] = frozenset()
    """The columns of the results that later operators read."""

    @property
    def changes_values(self) -> bool:
        """Whether a function makes new values."""
        return any(isinstance(function, MapValues | FlatMapValues) for function in self.functions)

    @property
    def reads_keys(self) -> bool:
        """Whether a function gets the keys."""
        return any(isinstance(function, Filter | Peek) or function.with_key for function in self.functions)

    @property
    def reads(self) -> set[str]:
        """The names of the columns that the functions get."""
        return {name_at(self.before, index) for index in range(len(self.before.columns))}

    def for_readers_of(self, wanted: set[str]) -> Calls:
        """Return the same calls, but with only the ``wanted`` columns of their results encoded.

        Raises `NotVectorizableError` if a function makes a column of JSON or of decimals. Decimals that a function makes may
        have different scales.
        """
        names = frozenset(name_at(self.after, index) for index in range(len(self.after.columns))) & wanted
        if self.changes_values:
            for index, column in enumerate(self.after.columns):
                if name_at(self.after, index) not in names:
                    continue
                if column.type == "json":
                    message = (
                        f"{self.names[-1]}: the type of {column.name} is not declared: give map_values(..., value=...)"
                    )
                    raise NotVectorizableError(message)
                if is_decimal(column.type):
                    message = f"{self.names[-1]}: {column.name} is a Decimal that a function makes"
                    raise NotVectorizableError(message)
        return replace(self, wanted=names)


def bind_calls(nodes: Sequence[Any], key: Shape, before: Shape, logs: LogShapes) -> Calls:
    """Return the calls of adjacent nodes. ``key`` and ``before`` are the shapes of the keys and values that reach the first."""
    after = before
    for node in nodes:
        if isinstance(node.supplier, MapValues | FlatMapValues):
            try:
                after = bind(node.supplier.value, "value", logs)
            except ConfigError as error:
                message = f"{node.name}: {error}"
                raise NotVectorizableError(message) from None
    return Calls(tuple(node.name for node in nodes), tuple(node.supplier for node in nodes), key, before, after)


def apply_calls(calls: Calls, batch: Batch) -> Batch:
    """Call the functions for the records of a batch.

    Raises `UnfitError` if a function raises an exception or returns another type than the declared one.
    """
    columns = [batch.columns[name_at(calls.before, index)] for index in range(len(calls.before.columns))]
    values = list(decode(calls.before, columns, len(batch.timestamps)))
    keys: list[Any] = [None] * len(values)
    if calls.reads_keys:
        keys = list(decode(calls.key, [decode_dictionary(column) for column in batch.keys], len(values)))
    rows: Array | None = None
    for function in calls.functions:
        try:
            keys, values, chosen = _call(function, keys, values)
        except Exception as error:
            # User code may raise anything.
            raise UnfitError from error
        if chosen is not None:
            rows = chosen if rows is None else rows[chosen]
    made = batch if rows is None else batch.taken(rows)
    return made.with_columns(_encode(calls, values)) if calls.changes_values else made


def _call(function: Function, keys: list[Any], values: list[Any]) -> tuple[list[Any], list[Any], Array | None]:
    """Return keys and values of the results, and the row from which each comes (None: one result per row, in order)."""
    # The functions are called in comprehensions, because `map` would end the batch if a function raised StopIteration.
    if isinstance(function, Filter):
        predicate, negate = function.predicate, function.negate
        passed = [bool(predicate(key, value)) is not negate for key, value in zip(keys, values, strict=True)]
        if all(passed):
            return keys, values, None
        return list(compress(keys, passed)), list(compress(values, passed)), np.flatnonzero(passed)
    if isinstance(function, Peek):
        for key, value in zip(keys, values, strict=True):
            function.action(key, value)
        return keys, values, None
    mapper = function.mapper
    if function.with_key:
        results = [mapper(key, value) for key, value in zip(keys, values, strict=True)]
    else:
        results = [mapper(value) for value in values]
    if isinstance(function, MapValues):
        return keys, results, None
    many = [list(iterable) for iterable in results]
    rows = np.repeat(np.arange(len(many)), np.fromiter(map(len, many), np.int64, len(many)))
    return [keys[row] for row in rows.tolist()], list(chain.from_iterable(many)), rows


def _encode(calls: Calls, values: list[Any]) -> dict[str, pa.Array]:
    """Return the wanted columns of the results, by name."""
    shape = calls.after
    if not calls.wanted:
        return {}
    if shape.is_bare:
        return {"value": _column(values, shape.columns[0])}
    if not set(map(type, values)) <= {shape.row_type}:
        raise UnfitError
    items = list(zip(*values, strict=True)) or [()] * len(shape.columns)
    return {
        column.name: _column(items[index], column)
        for index, column in enumerate(shape.columns)
        if column.name in calls.wanted
    }


def _column(items: Sequence[Any], column: Column) -> pa.Array:
    """Return values as a column. Raises `UnfitError` for a value that is not exactly of the column's type."""
    if not set(map(type, items)) <= {class_of(column.type), type(None)}:
        raise UnfitError
    try:
        array = pa.array(items, arrow_type(column.type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
        raise UnfitError from error
    if isinstance(array, pa.ChunkedArray):
        raise UnfitError
    return array
