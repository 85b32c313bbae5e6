"""Processors that get records in batches, their context, and the choice of nodes that get batches of several records.

Rules of this file:

1. A batch has two phases. First `process_batch` handles several records. Then the records that it sent pass through the nodes
   below, in the order of the records that caused them. Each passes at the stream time of the record that caused it.
2. So inside `process_batch` there is no current record. A property that depends on the current record is refused, or is
   a column of the batch.
3. A batch ends where a punctuation is due, at an epoch's end, and where the topic changes. It may also end anywhere else, so
   the same records in other batches must give the same outputs and the same state (L2).
4. A processor must not be able to notice what happens between the records of a batch. So a node gets batches of one record
   if another node reads its topic, if a node below uses one of its stores, or if its error policy handles records one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rewindow.errors import DataError, RewindowError, TopologyError
from rewindow.streams.batch import Batch, Columns, check_lengths, check_timestamps
from rewindow.streams.forwarding import invalid_target
from rewindow.streams.nodes import Node, ProcessorNode, SourceNode
from rewindow.streams.process_results import refuse_result
from rewindow.streams.processor import AdaptedProcessor, Processor, ProcessorContext
from rewindow.streams.record import Record, RecordMetadata, To, make_record
from rewindow.streams.state.stores import KEY_VALUE
from rewindow.streams.topology import SubTopology

if TYPE_CHECKING:
    from rewindow.streams.punctuation import Cancellable
    from rewindow.streams.record_context import SeededRandom
    from rewindow.streams.sink import Sink
    from rewindow.streams.task_context import TaskContext


MANY = ""
"""The empty reason. It means that no rule forces the node to get its records one at a time."""
_ONE_BY_ONE = "derive the class from Processor, which gets one record at a time"


class BatchContext(ProcessorContext):
    """The context of a `BatchProcessor`.

    While `process_batch` runs, only properties that are the same for all records may be used.
    """

    __slots__ = ("is_in_batch", "sink")

    def __init__(self, name: str, task_context: TaskContext) -> None:
        super().__init__(name, task_context)
        self.is_in_batch = False
        self.sink: Sink | None = None
        """The node's only child, if that child is a sink that accepts columns; otherwise None."""

    def batch(
        self,
        topic: str | None,
        columns: Columns,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> Batch:
        """Return a batch of records for this node: see `Batch`."""
        return Batch(self.name, topic, self.partition, columns, self._check_to, self._lose, headers)

    def deliver(self, record: Record, to: To | None) -> None:
        """Pass on a record that a batch sent, to the nodes below. The caller has set the event (`RecordContext`)."""
        super().forward(record, to=to)

    def forward(self, record: Record, *, to: To | None = None) -> None:
        """See `ProcessorContext.forward`. Raises `DataError` in `process_batch`: use `Batch.forward` with an index."""
        self._refuse_in_batch("context.forward(record)", "send it with batch.forward(index, record)")
        super().forward(record, to=to)

    def forward_many(self, keys: Sequence[Any], values: Sequence[Any], timestamps: Sequence[int] | None = None) -> None:
        """Send several records to all children, in a punctuation. This is equivalent to one call of `forward` per record.

        By default the records get the timestamp of the punctuation. Raises `DataError` as `forward` does, and if the
        columns differ in length.
        """
        self._refuse_in_batch("context.forward_many(...)", "send them with batch.forward_many(indexes, keys, values)")
        times = [self._record_context.timestamp] * len(keys) if timestamps is None else timestamps
        check_lengths(self.name, keys, values, times)
        check_timestamps(self.name, times[:1] if timestamps is None else times)
        if self.sink is not None and not self.is_closed:
            self.sink.process_many(keys, values, times)
            return
        for key, value, timestamp in zip(keys, values, times, strict=True):
            super().forward(make_record((key, value, timestamp, ())))

    def schedule(self, *args: Any, **kwargs: Any) -> Cancellable:
        """See `ProcessorContext.schedule`. Raises `DataError` in `process_batch`."""
        self._refuse_in_batch("context.schedule(...)", f"schedule in init or in a punctuation, or {_ONE_BY_ONE}")
        return super().schedule(*args, **kwargs)

    @property
    def stream_time_ms(self) -> int:
        """See `ProcessorContext.stream_time_ms`."""
        self._refuse_in_batch("context.stream_time_ms", "read batch.stream_times_ms[index]")
        return super().stream_time_ms

    @property
    def wall_clock_ms(self) -> int:
        """See `ProcessorContext.wall_clock_ms`."""
        self._refuse_in_batch("context.wall_clock_ms", f"read it in a punctuation, or {_ONE_BY_ONE}")
        return super().wall_clock_ms

    @property
    def timestamp(self) -> int:
        """See `ProcessorContext.timestamp`."""
        self._refuse_in_batch("context.timestamp", "read batch.timestamps[index]")
        return super().timestamp

    @property
    def record_metadata(self) -> RecordMetadata:
        """See `ProcessorContext.record_metadata`."""
        self._refuse_in_batch("context.record_metadata", "read batch.topic, batch.partition and batch.offsets[index]")
        return super().record_metadata

    def random(self) -> SeededRandom:
        """See `ProcessorContext.random`."""
        self._refuse_in_batch("context.random()", _ONE_BY_ONE)
        return super().random()

    def uuid(self) -> str:
        """See `ProcessorContext.uuid`."""
        self._refuse_in_batch("context.uuid()", _ONE_BY_ONE)
        return super().uuid()

    def idempotency_key(self) -> str:
        """See `ProcessorContext.idempotency_key`."""
        self._refuse_in_batch("context.idempotency_key()", _ONE_BY_ONE)
        return super().idempotency_key()

    def drop(self, record: Record, name: str, *, reason: str, times: int = 1) -> None:
        """See `ProcessorContext.drop`."""
        self._refuse_in_batch("context.drop(record, ...)", "count it with batch.drop(index, name, reason=...)")
        super().drop(record, name, reason=reason, times=times)

    def _refuse_in_batch(self, attribute: str, instead: str) -> None:
        if self.is_in_batch:
            raise DataError(
                "current-record-missing-in-batch",
                "{node} uses {attribute} in process_batch, where there is no current record: {fix}",
                node=self.name,
                attribute=attribute,
                fix=instead,
            )

    def _check_to(self, to: To) -> None:
        # User code may pass any object.
        given: object = to
        if not isinstance(given, To):
            raise invalid_target(self.name, to)
        if to.child_name is not None:
            self._child(to.child_name)

    def _lose(self, batch: Batch, index: int, name: str, reason: str, times: int) -> None:
        record_context = self._record_context
        before = record_context.offset
        record_context.offset = batch.offsets[index]
        record = Record(batch.keys[index], batch.values[index], batch.timestamps[index])
        super().drop(record, name, reason=reason, times=times)
        record_context.offset = before


class BatchProcessor(AdaptedProcessor):
    """A processor that handles several records at a time, in `process_batch`. Punctuations work as in a `Processor`.

    Some nodes can only get batches of one record. `explain` names these nodes and the reason.
    """

    context: BatchContext
    context_type: ClassVar[type[ProcessorContext]] = BatchContext

    def process_batch(self, batch: Batch) -> None:
        """Handle consecutive records. To send records, call `Batch.forward` with an index. Return nothing."""
        raise NotImplementedError

    def take(self, record: Record) -> None:
        """Handle one record, as a batch of one."""
        context = self.context
        task_context = context._task_context  # noqa: SLF001 - the two classes belong together
        record_context = task_context.record_context
        columns = Columns(
            (record.key,),
            lambda: (record.value,),
            (record.timestamp,),
            (record_context.offset,),
            (task_context.stream_time_ms,),
        )
        batch = context.batch(record_context.topic, columns, record.headers)
        self.run(batch)
        for _, output, to in batch.outputs():
            context.deliver(output, to)

    def run(self, batch: Batch) -> None:
        """Call `process_batch`. Raises `ConfigError` (78) if it returns anything but None."""
        context = self.context
        context.is_in_batch = True
        try:
            result: object = self.process_batch(batch)  # type: ignore[func-returns-value]  # user code may return anything
            if result is not None:
                refuse_result(self.process_batch, result, send="batch.forward(index, record)")
        finally:
            context.is_in_batch = False
            batch.is_closed = True


def refuse_both_forms(node: str, made: type[Processor]) -> None:
    """Raise `TopologyError` (78) if ``made`` is a class whose `process` or ``process_batch`` would never be called."""
    if issubclass(made, BatchProcessor):
        if made.process is not Processor.process:
            raise TopologyError(
                "process-beside-process-batch",
                "node {node!r}: {type} has process and process_batch, and only process_batch would be called: keep one",
                node=node,
                type=made.__name__,
            )
    elif hasattr(made, "process_batch"):
        raise TopologyError(
            "process-batch-never-called",
            "node {node!r}: {type} has process_batch, but is not a BatchProcessor, so nothing would call it: derive the class "
            "from BatchProcessor",
            node=node,
            type=made.__name__,
        )


def batch_limits(part: SubTopology, policies: Collection[str], *, keeps_dropped: bool) -> dict[str, str]:
    """Return, for each node with a `BatchProcessor`, why it gets one record at a time; `MANY` if it gets several.

    ``policies`` has the names of the nodes with an error policy. ``keeps_dropped``: whether dropped records are quarantined.
    """
    nodes = [node for node in part.nodes if isinstance(node, ProcessorNode) and _makes_batches(node)]
    return {node.name: _reason(part, node, policies, keeps_dropped=keeps_dropped) for node in nodes}


def batched_sources(part: SubTopology, limits: Mapping[str, str]) -> dict[int, str]:
    """Return the sources whose records go to a node in batches. The result maps a source's rank to the node's name."""
    readers = {source.name: _children(part, source.name) for source in part.sources}
    return {
        rank: readers[source.name][0].name
        for rank, source in enumerate(part.sources)
        if len(readers[source.name]) == 1 and not source.is_global and limits.get(readers[source.name][0].name) == MANY
    }


def _makes_batches(node: ProcessorNode) -> bool:
    """Return whether a node's supplier makes a `BatchProcessor`."""
    if isinstance(node.supplier, type):
        return issubclass(node.supplier, BatchProcessor)
    try:
        made: object = node.supplier()
    except RewindowError:
        return False
    except Exception:  # noqa: BLE001 - user code; the task reports it when it makes its processors
        return False
    return isinstance(made, BatchProcessor)


def _reason(part: SubTopology, node: ProcessorNode, policies: Collection[str], *, keeps_dropped: bool) -> str:
    kinds = {store.name: store.kind for store in part.stores}
    sources = [other for other in part.sources if other.name in node.parents]
    below = _below(part, node)
    shared = [
        store for other in below if isinstance(other, ProcessorNode) for store in other.stores if store in node.stores
    ]
    if node.name in policies:
        return "its error policy handles records one by one"
    if shared:
        return f"a node below it uses its store {shared[0]!r}"
    if keeps_dropped and any(kinds[store] != KEY_VALUE for store in node.stores):
        return "dropped records are kept, and each that its store drops is named"
    if not sources:
        return f"it gets its records from {', '.join(node.parents)} and not from a topic"
    if all(len(_children(part, source.name)) > 1 for source in sources):
        return f"other nodes read the topic {sources[0].topic!r} too"
    return MANY


def _children(part: SubTopology, name: str) -> list[Node]:
    return [node for node in part.nodes if name in node.parents]


def _below(part: SubTopology, node: Node) -> list[Node]:
    names, below = {node.name}, []
    for other in part.nodes:
        if not isinstance(other, SourceNode) and names.intersection(other.parents):
            names.add(other.name)
            below.append(other)
    return below
