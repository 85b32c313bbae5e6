"""Which fold an aggregate has, and what of the values it reads."""

from __future__ import annotations

from typing import Any

from rewindow.dsl.operators.aggregates import Count, Max, Mean, Min, Sum, described
from rewindow.dsl.operators.ordered import Collect, First, Last
from rewindow.engine.worker.vectorized.canonical_json import Texts
from rewindow.engine.worker.vectorized.collect import CollectFold
from rewindow.engine.worker.vectorized.folds import CountFold, Fold
from rewindow.engine.worker.vectorized.kernels import fold_of
from rewindow.streams.serde.schema import Shape


class NotVectorizableError(Exception):
    """What runs in record execution only; the text is the reason, for `explain`."""


def fold_for(aggregate: Any, value: Shape, name: str) -> Fold:
    """Return the fold of an aggregate. Raises `NotVectorizableError` if there is none."""
    if type(aggregate) is Count:
        return CountFold(name)
    if type(aggregate) is Collect:
        return CollectFold(name, _texts(aggregate, value))
    if type(aggregate) not in (Sum, Min, Max, Mean, First, Last):
        raise NotVectorizableError(f"the aggregate {described(aggregate)} has no kernel")
    if aggregate.field is None and not value.is_bare:
        raise NotVectorizableError(f"there is no kernel for {described(aggregate)} of whole rows")
    place = 0 if aggregate.field is None else value.names.index(aggregate.field)
    kind = value.columns[place].type
    fold = fold_of(aggregate, place, kind, name)
    if fold is None:
        raise NotVectorizableError(f"there is no kernel for {described(aggregate)} of the type {kind}")
    return fold


def _texts(aggregate: Collect, value: Shape) -> Texts:
    """Return what of the values is collected: one column, or rows of all."""
    if aggregate.field is None and value.row_type is not None:
        return Texts(tuple(range(len(value.columns))), value.columns, is_row=True)
    place = 0 if aggregate.field is None else value.names.index(aggregate.field)
    return Texts((place,), (value.columns[place],), is_row=False)


def places_of(fold: Fold) -> tuple[int, ...]:
    """Return the places of the columns that a fold reads."""
    if isinstance(fold.operand, Texts):
        return fold.operand.places
    return () if fold.operand is None else (fold.operand,)
