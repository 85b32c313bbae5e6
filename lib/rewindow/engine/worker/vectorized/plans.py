"""The plans of vectorized sub-topologies with windows or a join. A plan has everything that the tasks need, as values.

The nodes that follow final results or a join (`where`, `select` and Python functions, then a table or a repartition topic)
are a *suffix*. The processors of record execution send results through the suffix one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rewindow.dsl.operators.select import Select, Where
from rewindow.dsl.operators.stateless import Filter, FlatMap, FlatMapValues, KeyedOnly, Map, MapValues, Peek, SelectKey
from rewindow.dsl.operators.stream_join import StreamJoin
from rewindow.dsl.operators.stream_table_join import StreamTableJoin
from rewindow.dsl.operators.table_join import TableJoinSide
from rewindow.engine.worker.vectorized.arrays import NotVectorizableError, is_decimal
from rewindow.engine.worker.vectorized.batches import InternalSource, internal_sources, name_at
from rewindow.engine.worker.vectorized.folds import Fold
from rewindow.engine.worker.vectorized.prefix_operators import PrefixOperator
from rewindow.engine.worker.vectorized.result_sizes import ResultSizes
from rewindow.engine.worker.vectorized.row_functions import Calls
from rewindow.streams.nodes import SinkNode, SourceNode
from rewindow.streams.serde.schema import Column, Shape, row_shape, scalar_shape
from rewindow.streams.serde.types_to_columns import LogShapes
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.topology import SubTopology, Topology
from rewindow.streams.windows.calendar import CalendarWindows
from rewindow.streams.windows.session_sliding import SessionWindows
from rewindow.streams.windows.time import TimeWindows

_FUNCTIONS = (Filter, Map, FlatMap, MapValues, FlatMapValues, SelectKey, Peek)
_ON_COLUMNS = (Where, Select)
OPERATORS = (*_ON_COLUMNS, *_FUNCTIONS, KeyedOnly)
"""The suppliers of nodes that may follow results. Their processors have no state and use no clock."""
_KEY_TYPES = frozenset(("string", "long", "boolean", "binary"))


@dataclass(frozen=True, slots=True)
class Suppressing:
    """A suppress below the windows: its node, its buffer, and the buffer's key and value shapes."""

    node: str
    store: str
    shapes: tuple[Shape, Shape]


@dataclass(frozen=True, slots=True)
class FinalResultsPlan:
    """The plan of windowed aggregates that send final results."""

    topic: str
    lag_ms: int
    """How long (ms) nodes above the topic may hold records back. The topic's watermark is lowered by this time (D22)."""
    window_node: str
    suppress: Suppressing | None
    """The suppress below the windows. If None, the windows themselves send their results when they close."""
    sink: SinkNode
    windows: TimeWindows | CalendarWindows | SessionWindows
    store: StoreBuilder
    internal: InternalSource | None
    """The repartition topic that the tasks read. If None, they read a log of the feed."""
    key: Shape
    log_value: Shape
    """The shape of the values that are read from the topic."""
    value: Shape
    """The shape of the values that reach the windows."""
    folds: tuple[Fold, ...]
    prefix: tuple[PrefixOperator, ...]
    """The operators between the log and the windows."""
    reads: frozenset[str]
    """The names of the columns that the prefix reads or, if there is no prefix, that the folds read."""
    names: tuple[str, ...]
    """The names of the aggregates; empty for a single unnamed aggregate."""
    store_shapes: tuple[Shape, Shape]
    sink_shapes: tuple[Shape, Shape]
    suffix: Suffix | None = None
    """The nodes that follow the final results. If None, the final results are written to a table unchanged."""
    result_shapes: tuple[Shape, Shape] | None = None
    """The shapes of the keys and values of the final results that go into a suffix."""

    @property
    def read_indexes(self) -> list[int]:
        """The indexes of the log's value columns that have to be read."""
        count = len(self.log_value.columns)
        return [index for index in range(count) if name_at(self.log_value, index) in self.reads]

    @property
    def functions_in_front(self) -> list[str]:
        """The names of the nodes with Python functions before the windows. The functions are called for each record."""
        return [name for operator in self.prefix if isinstance(operator, Calls) for name in operator.names]

    @property
    def functions_behind(self) -> list[str]:
        """The names of the nodes with Python functions after the windows. The functions are called for each final result."""
        return self.suffix.functions if self.suffix else []

    @property
    def has_functions(self) -> bool:
        """Whether tasks call code of the job."""
        return bool(self.functions_in_front or self.functions_behind)

    @property
    def is_single(self) -> bool:
        """Whether a result is a single unnamed aggregate, which may be null, instead of a row."""
        return not self.names

    @property
    def sizes(self) -> ResultSizes:
        """Computes the encoded sizes of results."""
        return ResultSizes(self.folds, self.names)

    @property
    def closing_node(self) -> str:
        """The node that sends final results; its clock decides when a window closes."""
        return self.suppress.node if self.suppress else self.window_node

    @property
    def starts_at_first_value(self) -> bool:
        """Whether a group has no state before its first value that is not null."""
        return self.is_single and self.folds[0].is_null_at_first

    @property
    def takes_nulls(self) -> bool:
        """Whether vectorized execution can handle null values.

        It cannot handle them in two cases, both with session windows. In the first case, a group has no state before its
        first value. Stores do not contain sessions without state. In the second case, a suppress follows the windows. The
        sizes of tombstones are then computed as if results contained no nulls.
        """
        if not isinstance(self.windows, SessionWindows):
            return True
        return not self.starts_at_first_value and (self.suppress is None or self.sizes.are_texts)


def source_types(topology: Topology, source: SourceNode, logs: LogShapes) -> _SourceTypes:
    """Return the shapes of a source's records. Raises `NotVectorizableError` for keys that `KeyTable` cannot number."""
    internal = internal_sources(topology, logs).get(source.topic) if source.is_internal else None
    if source.is_internal and internal is None:
        raise NotVectorizableError(f"every task reads all partitions of {source.topic}")
    key, value = (internal.key, internal.value) if internal else logs[source.topic]
    for column in key.columns:
        if column.type not in _KEY_TYPES:
            raise NotVectorizableError(
                f"the key column {column.name} is {column.type}, not one of {', '.join(sorted(_KEY_TYPES))}"
                f"{' (declare the type of a new key: key=...)' if internal and column.type == 'json' else ''}"
            )
    if not key.is_bare and key.row_type is None:
        raise NotVectorizableError(
            f"the keys of {source.topic} are windows: select_key what to group by, or to join by"
        )
    return _SourceTypes(internal, key, value)


@dataclass(frozen=True, slots=True)
class Suffix:
    """The nodes that follow results, as a sub-topology of their own. Its source stands for the results."""

    part: SubTopology
    sink_shapes: tuple[Shape, Shape]

    @property
    def functions(self) -> list[str]:
        """The names of the nodes with Python functions."""
        return [node.name for node in self.part.nodes if isinstance(getattr(node, "supplier", None), _FUNCTIONS)]


def suffix_of(part: SubTopology, nodes: Sequence[Any], sink_shapes: tuple[Shape, Shape]) -> Suffix:
    """Return a suffix of ``nodes``, which follow results in ``part``. The last node is the sink."""
    (results,) = nodes[0].parents
    source = SourceNode(results, topic=results)
    return Suffix(replace(part, nodes=(source, *nodes), stores=()), sink_shapes)


def shape_of_results(folds: Sequence[Fold], names: Sequence[str]) -> Shape:
    """Return the shape of results as Python values.

    Raises `NotVectorizableError` for lists, and for decimals, because a decimal in a column may have another scale than the
    sum.
    """
    types = [fold.result_type for fold in folds]
    if unfit := [kind for kind in types if kind == "json" or is_decimal(kind)]:
        raise NotVectorizableError(f"the nodes behind the final results read results of type {unfit[0]}")
    if not names:
        return scalar_shape("value", types[0])
    return row_shape([Column(name, kind) for name, kind in zip(names, types, strict=True)])


class _SourceTypes(NamedTuple):
    """The shapes of the keys and values of a topic. ``internal``: the repartition topic; None for a log of the feed."""

    internal: InternalSource | None
    key: Shape
    value: Shape


@dataclass(frozen=True, slots=True)
class JoinInput:
    """One of the two topics that are joined."""

    topic: str
    internal: InternalSource | None
    """The repartition topic that the tasks read. If None, they read a log of the feed."""
    key: Shape
    log_value: Shape
    """The shape of the values that are read from the topic."""
    value: Shape
    """The shape of the values that reach the join."""
    prefix: tuple[PrefixOperator, ...]
    """The operators between the topic and the join."""
    reads: frozenset[str]
    """The names of the columns that the prefix reads or, if there is no prefix, that the join reads."""

    @property
    def read_indexes(self) -> list[int]:
        """The indexes of the topic's value columns that have to be read."""
        count = len(self.log_value.columns)
        return [index for index in range(count) if name_at(self.log_value, index) in self.reads]

    @property
    def names(self) -> list[str]:
        """The names of the columns that reach the join."""
        return [name_at(self.value, index) for index in range(len(self.value.columns))]

    @property
    def functions(self) -> list[str]:
        """The names of the nodes with Python functions."""
        return [name for operator in self.prefix if isinstance(operator, Calls) for name in operator.names]


@dataclass(frozen=True, slots=True)
class JoinStore:
    """A store with the shapes of its changelog."""

    builder: StoreBuilder
    shapes: tuple[Shape, Shape]


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table that is an input of a join: its node and its store, and whether it is the left input."""

    node: str
    store: str
    is_left: bool
    updates: TableJoinSide | None = None
    """The join of the table's updates with the other table. If None, updates only change the table and send no results."""


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """The plan of a join of two topics."""

    node: str
    supplier: StreamJoin | StreamTableJoin | None
    """The supplier of the join's node; None for a join of two tables."""
    tables: tuple[JoinedTable, ...]
    """The inputs that are tables."""
    lag_ms: int
    """How long (ms) nodes above the topics may hold records back. The watermark is lowered by this time (D22)."""
    inputs: tuple[JoinInput, JoinInput]
    """The inputs. If records of both inputs have equal order keys, the record of the first input is processed first (L1)."""
    left: int
    """The index of the left input in ``inputs``. The other input is the table or the right input."""
    stores: Mapping[str, JoinStore]
    """The stores by name, in the order of the sub-topology."""
    sink: SinkNode
    sink_shapes: tuple[Shape, Shape]
    suffix: Suffix | None
    """The nodes that follow the join. If None, its results are written to a table unchanged."""

    @property
    def key(self) -> Shape:
        """The shape of the keys of both inputs."""
        return self.inputs[self.left].key

    @property
    def has_functions(self) -> bool:
        """Whether tasks call code of the job. This is always true, because a joiner is code of the job."""
        return True
