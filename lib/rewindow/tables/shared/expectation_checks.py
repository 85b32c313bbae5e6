"""Observe the new rows of an output with Arrow, batch by batch: nulls, repeated keys, bounds and allowed values.

Each batch is read once, with only the needed columns. Only the columns that must be unique, and the first offending rows,
stay in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.expectations import MOST_EXAMPLES, Expectation, Kind, Observation
from rewindow.contracts.instants import instant
from rewindow.streams.serde.schema import Column
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.content_hash import canonical_values

_ORDER = ("_epoch", "_partition", "_offset")
"""The columns by which output rows are ordered. So the first offending row does not depend on how rows are divided into
files."""

_TIMES = ("window_start", "window_end", "_timestamp")

Failing = Callable[[Mapping[str, Any]], Any]
"""A function that gets the columns of a batch by name, and returns a mask of the offending rows."""


def needed_columns(expectations: Iterable[Expectation], keys: Sequence[str]) -> list[str]:
    """Return the columns that must be read to observe these expectations. ``keys``: the key columns of the output."""
    named = [name for expectation in expectations for name in expectation.columns]
    return list(dict.fromkeys([*keys, *named, *_ORDER]))


def observe_rows(
    expectations: Sequence[Expectation],
    columns: Sequence[Column],
    keys: Sequence[str],
    batches: Iterable[pa.RecordBatch],
) -> list[Observation]:
    """Return an observation for each expectation on values, in the order of ``expectations``.

    ``columns``, ``keys``: all columns and the key columns of the output. The bounds and allowed values of an expectation must
    have the type of its column.
    """
    types = {column.name: column.type for column in arrow_schema(columns)}
    observers = [_observer(expectation, types, keys) for expectation in expectations]
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        for observer in observers:
            observer.take(batch)
    return [observer.observation(rows) for observer in observers]


def _observer(expectation: Expectation, types: Mapping[str, pa.DataType], keys: Sequence[str]) -> _Failing | _Repeated:
    if expectation.kind is Kind.UNIQUE:
        return _Repeated(expectation, expectation.columns or tuple(keys))
    shown = list(dict.fromkeys([*keys, *expectation.columns]))
    if expectation.kind is Kind.NOT_NULL:
        return _Failing(
            expectation,
            shown,
            partial(_is_null, expectation.columns),
            f"have a null in {' or '.join(expectation.columns)}",
            "none",
        )
    (column,) = expectation.columns
    if expectation.kind is Kind.VALUES:
        allowed = pa.array(expectation.allowed, types[column])
        expected = ", ".join(map(str, expectation.allowed))
        return _Failing(expectation, shown, partial(_is_other, column, allowed), f"have another {column}", expected)
    return _Failing(
        expectation,
        shown,
        partial(_is_outside, expectation, types[column]),
        f"have {column} out of bounds",
        bounds_of(expectation),
    )


def bounds_of(expectation: Expectation) -> str:
    """Return the bounds of an expectation in words."""
    if expectation.minimum is None or expectation.maximum is None:
        return f"at most {expectation.maximum}" if expectation.minimum is None else f"at least {expectation.minimum}"
    return f"{expectation.minimum} to {expectation.maximum}"


def _is_null(names: Sequence[str], columns: Mapping[str, Any]) -> Any:
    masks = [pc.is_null(columns[name]) for name in names]
    whole = masks[0]
    for mask in masks[1:]:
        whole = pc.or_(whole, mask)
    return whole


def _is_other(name: str, allowed: pa.Array, columns: Mapping[str, Any]) -> Any:
    return pc.and_(pc.is_valid(columns[name]), pc.invert(pc.is_in(columns[name], value_set=allowed)))


def _is_outside(expectation: Expectation, column_type: pa.DataType, columns: Mapping[str, Any]) -> Any:
    values = columns[expectation.columns[0]]
    low, high = (
        None if bound is None else pa.scalar(bound, column_type) for bound in (expectation.minimum, expectation.maximum)
    )
    masks = [
        *([pc.less(values, low)] if low is not None else []),
        *([pc.greater(values, high)] if high is not None else []),
    ]
    if high is not None and pa.types.is_floating(column_type):
        # NaN counts as the largest number, but `pc.greater` would return false for it.
        masks.append(pc.is_nan(values))
    whole = pc.fill_null(masks[0], fill_value=False)
    for mask in masks[1:]:
        whole = pc.or_(whole, pc.fill_null(mask, fill_value=False))
    return whole


@dataclass
class _Failing:
    """A counter of the rows that ``failing`` selects. It keeps the first ones.

    ``fault`` and ``expected`` are texts for people.
    """

    expectation: Expectation
    shown: Sequence[str]
    failing: Failing
    fault: str
    expected: str
    count: int = 0
    first: pa.Table | None = None

    def take(self, batch: pa.RecordBatch) -> None:
        """Observe a batch."""
        mask = self.failing({name: batch.column(name) for name in self.expectation.columns})
        failed = pc.sum(mask).as_py() or 0
        if failed:
            self.count += failed
            rows = pa.Table.from_batches([batch]).select([*self.shown, *_missing(self.shown)]).filter(mask)
            self.first = _first(rows if self.first is None else pa.concat_tables([self.first, rows]), _ORDER)

    def observation(self, rows: int) -> Observation:
        """Return what was observed in this many rows."""
        return observation(
            self.expectation,
            self.count,
            f"{self.count} of {counted(rows, 'row')} {self.fault}",
            self.expected,
            examples_of(self.first.select(self.shown) if self.first is not None else None),
        )


@dataclass
class _Repeated:
    """A counter of rows whose values in the columns ``names`` occurred before. Nulls are equal."""

    expectation: Expectation
    names: Sequence[str]
    parts: list[pa.RecordBatch] = field(default_factory=list)

    def take(self, batch: pa.RecordBatch) -> None:
        """Observe a batch."""
        self.parts.append(batch.select(list(self.names)))

    def observation(self, rows: int) -> Observation:
        """Return what was observed in this many rows."""
        shown, repeated, too_many = None, 0, 0
        if self.parts:
            # The columns are numbered, because a user's column may have the same name as the column with the counts.
            by_number = [str(number) for number in range(len(self.names))]
            rows_given = pa.Table.from_batches(self.parts)
            values = pa.table([canonical_values(column) for column in rows_given.columns], by_number)
            groups = values.group_by(by_number, use_threads=False).aggregate([([], "count_all")])
            groups = groups.filter(pc.greater(groups["count_all"], 1)).select([*by_number, "count_all"])
            repeated, too_many = groups.num_rows, (pc.sum(groups["count_all"]).as_py() or 0) - groups.num_rows
            count = next(name for name in ("rows", "times", "repeated rows") if name not in self.names)
            shown = _first(groups, by_number).rename_columns([*self.names, count])
        value_name = "a key" if not self.expectation.columns else f"({', '.join(self.names)})"
        observed = f"{too_many} of {counted(rows, 'row')} repeat {value_name}" + (
            f" ({counted(repeated, 'value')})" if repeated else ""
        )
        return observation(self.expectation, too_many, observed, "none", examples_of(shown))


def observation(
    expectation: Expectation, failed: int, observed: str, expected: str, examples: Sequence[str] = ()
) -> Observation:
    """Return the observation of an expectation."""
    return Observation(
        expectation.output,
        expectation.name,
        expectation.kind.value,
        expectation.on_fail.value,
        failed,
        observed,
        expected,
        tuple(examples),
    )


def counted(count: int, word: str) -> str:
    """Return a count and its noun, such as ``1 row`` or ``2,000 rows``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def examples_of(rows: pa.Table | None) -> list[str]:
    """Return a text for each row, with timestamps and the bounds of windows as times."""
    dicts = rows.to_pylist() if rows is not None else []
    return [", ".join(f"{name}={_text(name, value)}" for name, value in row.items()) for row in dicts]


def _missing(shown: Sequence[str]) -> Iterator[str]:
    return (name for name in _ORDER if name not in shown)


def _first(rows: pa.Table, order: Sequence[str]) -> pa.Table:
    """Return the first `MOST_EXAMPLES` rows in the order of these columns."""
    if rows.num_rows <= 1:
        return rows
    # The sort is stable, so the rows of one record stay in the order in which the task sent them.
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in order])[:MOST_EXAMPLES])


def _text(name: str, value: Any) -> str:
    if isinstance(value, int) and name in _TIMES:
        return instant(value)
    return value.hex() if isinstance(value, bytes) else str(value)
