"""What follows final results or a join: `where`, `select` and Python functions, then a table or a repartition topic.

Results pass one by one through the processors of record execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewindow.dsl.operators.select import Select, Where
from rewindow.dsl.operators.stateless import (
    Filter,
    FlatMap,
    FlatMapValues,
    KeyedOnly,
    Map,
    MapValues,
    Peek,
    SelectKey,
)
from rewindow.engine.worker.vectorized.arrays import is_decimal
from rewindow.engine.worker.vectorized.errors import NotVectorizableError
from rewindow.engine.worker.vectorized.folds import Fold
from rewindow.streams.nodes import SourceNode
from rewindow.streams.serde.schema import Column, Shape, row_shape, scalar_shape
from rewindow.streams.topology import SubTopology

ON_COLUMNS = (Where, Select)
FUNCTIONS = (Filter, Map, FlatMap, MapValues, FlatMapValues, SelectKey, Peek)
OPERATORS = (*ON_COLUMNS, *FUNCTIONS, KeyedOnly)
"""The suppliers that may follow results: they have no state and ask for no time."""


@dataclass(frozen=True, slots=True)
class Suffix:
    """The nodes behind results as a part of a topology whose source stands for the results."""

    part: SubTopology
    sink_shapes: tuple[Shape, Shape]

    @property
    def functions(self) -> list[str]:
        """The names of the nodes with Python functions."""
        return [node.name for node in self.part.nodes if isinstance(getattr(node, "supplier", None), FUNCTIONS)]


def suffix_of(part: SubTopology, nodes: Sequence[Any], sink_shapes: tuple[Shape, Shape]) -> Suffix:
    """Return the suffix of the nodes behind results, the sink last."""
    (results,) = nodes[0].parents
    source = SourceNode(results, topic=results)
    return Suffix(replace(part, nodes=(source, *nodes), stores=()), sink_shapes)


def shape_of_results(folds: Sequence[Fold], names: Sequence[str]) -> Shape:
    """Return the shape of results as Python values.

    Raises `NotVectorizableError` for lists, and for decimals, whose scale in a column is not that of the sum.
    """
    types = [fold.result_type for fold in folds]
    if unfit := [kind for kind in types if kind == "json" or is_decimal(kind)]:
        raise NotVectorizableError(f"the nodes behind the final results read results of type {unfit[0]}")
    if not names:
        return scalar_shape("value", types[0])
    return row_shape([Column(name, kind) for name, kind in zip(names, types, strict=True)])
