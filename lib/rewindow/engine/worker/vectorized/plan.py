"""The plan of a vectorized sub-topology: everything that its tasks need to know, as values."""

from __future__ import annotations

from dataclasses import dataclass

from rewindow.engine.worker.vectorized.batch import name_at
from rewindow.engine.worker.vectorized.encoded_sizes import ResultSizes
from rewindow.engine.worker.vectorized.folds import Fold
from rewindow.engine.worker.vectorized.internal_source import InternalSource
from rewindow.engine.worker.vectorized.prefix_operators import PrefixOperator
from rewindow.engine.worker.vectorized.row_functions import Calls
from rewindow.engine.worker.vectorized.suffix import Suffix
from rewindow.streams.nodes import SinkNode
from rewindow.streams.serde.schema import Shape
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.windows.session_sliding import SessionWindows
from rewindow.streams.windows.time import TimeWindows


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
    """How long nodes above the topic may hold records back: its watermark is lowered by that (D22)."""
    window_node: str
    suppress: Suppressing | None
    """None: the windows send their results themselves when they close."""
    sink: SinkNode
    windows: TimeWindows | SessionWindows
    store: StoreBuilder
    internal: InternalSource | None
    """The repartition topic that is read; None: a log of the feed."""
    key: Shape
    log_value: Shape
    """The shape of the values that are read."""
    value: Shape
    """The shape of the values that reach the windows."""
    folds: tuple[Fold, ...]
    prefix: tuple[PrefixOperator, ...]
    """The operators between the log and the windows."""
    reads: frozenset[str]
    """The names that the prefix reads, or the folds if there is no prefix."""
    names: tuple[str, ...]
    """The names of the aggregates; empty for a single unnamed one."""
    store_shapes: tuple[Shape, Shape]
    sink_shapes: tuple[Shape, Shape]
    suffix: Suffix | None = None
    """What follows the final results; None: they go to a table as they are."""
    result_shapes: tuple[Shape, Shape] | None = None
    """The shapes in which a suffix gets the final results."""

    @property
    def read_indexes(self) -> list[int]:
        """The indexes of the log's value columns that are read."""
        count = len(self.log_value.columns)
        return [index for index in range(count) if name_at(self.log_value, index) in self.reads]

    @property
    def functions_in_front(self) -> list[str]:
        """The names of the nodes with Python functions that are called for each record, in front of the windows."""
        return [name for operator in self.prefix if isinstance(operator, Calls) for name in operator.names]

    @property
    def functions_behind(self) -> list[str]:
        """The names of the nodes with Python functions that are called for each final result."""
        return self.suffix.functions if self.suffix else []

    @property
    def has_functions(self) -> bool:
        """Whether tasks call code of the job."""
        return bool(self.functions_in_front or self.functions_behind)

    @property
    def is_single(self) -> bool:
        """Whether the result is one unnamed aggregate, which may be null, and not a row."""
        return not self.names

    @property
    def sizes(self) -> ResultSizes:
        """The encoded sizes of results."""
        return ResultSizes(self.folds, self.names)

    @property
    def closing_node(self) -> str:
        """The node that sends final results; its clock decides when a window closes."""
        return self.suppress.node if self.suppress else self.window_node

    @property
    def starts_at_first_value(self) -> bool:
        """Whether a group has no state before its first operand that is not null."""
        return self.is_single and self.folds[0].is_null_at_first

    @property
    def takes_nulls(self) -> bool:
        """Whether vectorized execution can handle null operands.

        It cannot for sessions without a value, which no store contains, nor for sessions above a suppress whose tombstones
        need the sizes of results without nulls.
        """
        if not isinstance(self.windows, SessionWindows):
            return True
        return not self.starts_at_first_value and (self.suppress is None or self.sizes.are_texts)
