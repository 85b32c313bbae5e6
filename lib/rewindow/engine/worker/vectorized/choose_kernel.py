"""Choose the fold of an aggregate, and the value columns that it reads."""

from __future__ import annotations

from typing import Any

from rewindow.dsl.operators.aggregates import Collect, Count, First, Last, Max, Mean, Min, Sum, described
from rewindow.engine.worker.vectorized.canonical_json import Texts
from rewindow.engine.worker.vectorized.collect import CollectFold
from rewindow.engine.worker.vectorized.errors import NotVectorizableError
from rewindow.engine.worker.vectorized.folds import CountFold, Fold
from rewindow.engine.worker.vectorized.kernels import fold_of
from rewindow.streams.serde.schema import Shape


def fold_for(aggregate: Any, value: Shape, name: str) -> Fold:
    """Return the fold of an aggregate. Raises `NotVectorizableError` if there is none."""
    if type(aggregate) is Count:
        return CountFold(name)
    if type(aggregate) is Collect:
        return CollectFold(name, _collected(aggregate, value))
    if type(aggregate) not in (Sum, Min, Max, Mean, First, Last):
        raise NotVectorizableError(f"the aggregate {described(aggregate)} has no kernel")
    if value.row_type is None and not value.is_bare:
        raise NotVectorizableError(
            f"{described(aggregate)} needs values of a declared type: give map_values(..., value=...)"
        )
    if aggregate.field is None and not value.is_bare:
        raise NotVectorizableError(f"{described(aggregate)} of whole rows has no kernel")
    index = 0 if aggregate.field is None else value.names.index(aggregate.field)
    kind = value.columns[index].type
    fold = fold_of(aggregate, index, kind, name)
    if fold is None:
        raise NotVectorizableError(f"{described(aggregate)} of type {kind} has no kernel")
    return fold


def _collected(aggregate: Collect, value: Shape) -> Texts:
    """Return what is collected: one value column, or rows of all columns."""
    if aggregate.field is None and value.row_type is not None:
        return Texts(tuple(range(len(value.columns))), value.columns, is_row=True)
    index = 0 if aggregate.field is None else value.names.index(aggregate.field)
    return Texts((index,), (value.columns[index],), is_row=False)


def indexes_of(fold: Fold) -> tuple[int, ...]:
    """Return the indexes of the value columns that a fold reads."""
    if isinstance(fold.operand, Texts):
        return fold.operand.indexes
    return () if fold.operand is None else (fold.operand,)
