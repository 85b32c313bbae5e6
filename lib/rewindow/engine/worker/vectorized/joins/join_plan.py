"""The plan of a vectorized join: everything that its tasks need to know, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rewindow.dsl.operators.stream_join import StreamJoin
from rewindow.dsl.operators.stream_table_join import StreamTableJoin
from rewindow.dsl.operators.table_join import TableJoinSide
from rewindow.engine.worker.vectorized.batches import InternalSource, name_at
from rewindow.engine.worker.vectorized.prefix_operators import PrefixOperator
from rewindow.engine.worker.vectorized.row_functions import Calls
from rewindow.engine.worker.vectorized.window_plan import Suffix
from rewindow.streams.nodes import SinkNode
from rewindow.streams.serde.schema import Shape
from rewindow.streams.state.stores import StoreBuilder


@dataclass(frozen=True, slots=True)
class JoinInput:
    """One of the two topics that are joined."""

    topic: str
    internal: InternalSource | None
    """The repartition topic that is read; None: a log of the feed."""
    key: Shape
    log_value: Shape
    """The shape of the values that are read."""
    value: Shape
    """The shape of the values that reach the join."""
    prefix: tuple[PrefixOperator, ...]
    """The operators between the topic and the join."""
    reads: frozenset[str]
    """The names that the prefix reads, or the join if there is no prefix."""

    @property
    def read_indexes(self) -> list[int]:
        """The indexes of the topic's value columns that are read."""
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
    """An input that is kept as a table: the node and the store that keep it, and whether it is the left input."""

    node: str
    store: str
    is_left: bool
    updates: TableJoinSide | None = None
    """How its updates are joined with the other table; None if they only change it."""


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """The plan of a join of two topics."""

    node: str
    supplier: StreamJoin | StreamTableJoin | None
    """None for a join of two tables."""
    tables: tuple[JoinedTable, ...]
    """The inputs that are tables."""
    lag_ms: int
    """How long nodes above the topics may hold records back: the watermark is lowered by that (D22)."""
    inputs: tuple[JoinInput, JoinInput]
    """In the order that decides ties between topics (L1)."""
    left: int
    """The index of the left input; the other one is the table or the right input."""
    stores: Mapping[str, JoinStore]
    """In the order of the sub-topology."""
    sink: SinkNode
    sink_shapes: tuple[Shape, Shape]
    suffix: Suffix | None
    """What follows the join; None: its results go to a table as they are."""

    @property
    def key(self) -> Shape:
        """The shape of the keys of both inputs."""
        return self.inputs[self.left].key

    @property
    def has_functions(self) -> bool:
        """Whether tasks call code of the job: always, because a joiner is code of the job."""
        return True
