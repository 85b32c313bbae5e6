"""The task: one partition number over all topics of one sub-topology. READ THIS FIRST.

Rules of this file:

1. All events of a task happen here, in one order. This code uses no file, table, real clock or thread. `streams.clocks`
   advances the simulated clocks and fires schedules.
2. For each record: due wall-clock punctuations fire -> stream time advances -> the record passes through the whole graph,
   depth first -> due stream-time punctuations fire.
3. At an epoch's end: the wall clock advances to the watermark; where time follows the watermark (D22), stream time
   advances and each node, upstream first, handles the watermark; then due stream-time punctuations fire; then all
   processors are closed.
4. Only stores, schedules and clocks outlive an epoch. So a run may end after any epoch without an effect on later results.
5. The same events, checkpoint and configuration give the same output and the same checkpoint (L6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from rewindow.errors import InvariantError
from rewindow.streams.assembly import Assembly, assemble, check_suppliers, connections
from rewindow.streams.batch_processor import batch_limits, batched_sources
from rewindow.streams.checkpoint import Checkpoint, TaskState, held_in, open_stores
from rewindow.streams.clocks import Clocks
from rewindow.streams.error_context import explained
from rewindow.streams.error_policy import error_policies
from rewindow.streams.limits import CHECK_EVERY, check_stores
from rewindow.streams.metrics import PROCESS, RECORD_LATENESS
from rewindow.streams.nodes import SinkNode
from rewindow.streams.ordering import Event, Rows, events, merge, ordered_rows, rows_from, same_topic
from rewindow.streams.record import MAX_MS, UNKNOWN, make_record
from rewindow.streams.settings import Semantics, StreamTimeFrom, TaskConfig
from rewindow.streams.sink import Sink, Write, open_sinks
from rewindow.streams.state.spill import Disk
from rewindow.streams.state.stores import Store
from rewindow.streams.task_context import Drop, TaskContext
from rewindow.streams.topic_replay import BatchReplay, RecordReplay
from rewindow.streams.topology import SubTopology


class Task:
    """Replays the epochs of one partition through one sub-topology.

    For each epoch, call `replay` or `replay_rows`, then `end_epoch`.
    """

    def __init__(
        self,
        part: SubTopology,
        partition: int,
        *,
        writers: Callable[[SinkNode], Sink | Write],
        config: TaskConfig | None = None,
        checkpoint: Checkpoint | None = None,
        dropped: Drop | None = None,
        disk: Disk | None = None,
    ) -> None:
        """Restore a task from its checkpoint, or start a new one.

        ``writers`` returns the writer of a sink node. ``dropped`` receives the records at which a node with an error policy
        failed and, if ``keeps_dropped`` is set, late, skipped and expired records. ``disk`` provides local files for stores
        that spill. If it is None, stores stay in memory.
        """
        config, checkpoint = config or TaskConfig(), checkpoint or Checkpoint()
        state, settings = checkpoint.state, config.settings
        self._part, self._config, self._limits = part, config, settings.limits
        self._stores = open_stores(part.stores, checkpoint, disk)
        self._task_context = TaskContext(
            partition,
            state,
            connections(part, self._stores),
            dropped if settings.keeps_dropped else None,
            dropped,
            config.job,
        )
        self._policies = error_policies(part, settings, self._task_context, self._stores)
        self._task_context.nodes_with_policy = self._policies
        self._task_context.limits = settings.limits
        limits = batch_limits(part, self._policies, keeps_dropped=settings.keeps_dropped)
        self._batched = batched_sources(part, limits)
        """The sources whose records go to a node in batches: the node's name by the source's rank."""
        self._task_context.retain_clocks([node.name for node in part.nodes])
        self._topics = [source.topic for source in part.sources]
        self._offsets = [state.offsets.get(topic, 0) for topic in self._topics]
        self._sinks = open_sinks(part, writers, self._task_context, state.emitted, settings.limits)
        # As in Kafka, records of a global table advance no clock. This is so because no timestamp exceeds the partition time
        # that is set here.
        times = [
            MAX_MS if source.is_global else state.partition_times.get(source.topic, UNKNOWN) for source in part.sources
        ]
        self._clocks = Clocks(self._task_context, config.semantics, times, settings.limits)
        self._assembly: Assembly | None = None
        self._ending = ("epoch", 0)
        self._is_checked = False

    @property
    def metrics_rows(self) -> list[dict[str, Any]]:
        """The metrics of this task since it was created."""
        return self._task_context.metrics.as_rows()

    @property
    def task_context(self) -> TaskContext:
        """The task's clocks, schedules and metrics, for drivers and tests."""
        return self._task_context

    @property
    def offsets(self) -> dict[str, int]:
        """The next offset to read from each topic."""
        return dict(zip(self._topics, self._offsets, strict=True))

    @property
    def stores(self) -> Mapping[str, Store]:
        """The stores by name."""
        return self._stores

    def replay(self, events: Iterable[Event]) -> None:
        """Process events of the current epoch, in order.

        Raises `DataError`, which names record and node, if user code fails.
        """
        with explained(self._task_context):
            self._replay_all(events)

    def replay_rows(self, topics: Sequence[Iterable[Rows]]) -> None:
        """Process all records of the current epoch, given as an iterable of rows per topic, in the order of ranks.

        This is equivalent to `replay` of the merged events, but faster, because the rows of a single topic need no merging, and
        batch processors get many records at once (`streams.topic_replay`).
        """
        with explained(self._task_context):
            if len(topics) == 1:
                for rows in ordered_rows(topics[0]):
                    self._replay_rows(0, rows)
                return
            merged = merge([events(rank, rows) for rank, rows in enumerate(topics)])
            if not self._batched:
                self._replay_all(merged)
                return
            for rank, run in same_topic(merged):
                if rank in self._batched:
                    self._replay_rows(rank, rows_from(run))
                else:
                    self._replay(run)
                    self._check_stores()

    def end_epoch(self, watermark_ms: int, *, is_final: bool = False, number: int = 0) -> None:
        """Close the epoch. ``watermark_ms`` is its watermark in milliseconds since 1970, -1 if it has none.

        ``is_final``: whether no epoch will follow (D18). ``number`` is the epoch's number. The ids of calls made at the
        epoch's end contain it (`streams.record_context`).
        """
        with explained(self._task_context):
            self._end_epoch(watermark_ms, is_final=is_final, number=number)

    def advance_wall_clock(self, now_ms: int) -> None:
        """Set the wall clock to ``now_ms``, and fire each due schedule once, with the clock as argument (D8, `WallClock.RUN`)."""
        with explained(self._task_context):
            self._open()
            self._clocks.jump(now_ms)

    def state(self) -> TaskState:
        """Return the state for a checkpoint. The checkpoint also contains the changes of the stores (`Store.take_changes`)."""
        return TaskState(
            **self._task_context.live_state(),
            partition_times={
                source.topic: time_ms
                for source, time_ms in zip(self._part.sources, self._clocks.partition_times, strict=True)
                if not source.is_global
            },
            offsets=self.offsets,
            emitted={topic: sink.number for topic, sink in self._sinks.items()},
            store_clocks={name: store.clock_ms for name, store in self._stores.items()},
            held=held_in(self._stores),
        )

    def _replay_all(self, events: Iterable[Event]) -> None:
        events = iter(events)
        while self._replay(islice(events, CHECK_EVERY)):
            self._check_stores()

    def _replay(self, events: Iterable[Event]) -> int:
        """Process events; return their number."""
        entries = self._open().entries
        task_context, record_context, clocks = self._task_context, self._task_context.record_context, self._clocks
        partition_times, offsets, topics = clocks.partition_times, self._offsets, self._topics
        stream_queue = clocks.stream_queue
        stream_ms = task_context.stream_time_ms
        last_order_ms, taken, late, late_ms, latest_ms, least_ms = UNKNOWN, 0, 0, 0, 0, MAX_MS
        # This loop runs for each record. So values that seldom change are looked up only when they change.
        current_rank, last_rank, last_offset = UNKNOWN, UNKNOWN, UNKNOWN
        for order_ms, rank, offset, timestamp, key, value in events:
            if order_ms < last_order_ms:
                raise InvariantError(
                    "event-order-violated",
                    "{topic}: the record at offset {offset} comes too late, because a record that follows it in its epoch was "
                    "taken already",
                    topic=topics[rank],
                    offset=offset,
                )
            last_order_ms = order_ms
            # A clock can advance only at a new highest timestamp of the topic.
            if timestamp == order_ms and timestamp > partition_times[rank]:
                clocks.take(rank, timestamp)
                stream_ms, current_rank = task_context.stream_time_ms, UNKNOWN
            late_by_ms = stream_ms - timestamp
            if late_by_ms > 0 and partition_times[rank] != MAX_MS:
                late += 1
                late_ms += late_by_ms
                if late_by_ms > latest_ms:
                    latest_ms = late_by_ms
                if late_by_ms < least_ms:
                    least_ms = late_by_ms
            if rank != current_rank:
                if taken:
                    offsets[last_rank] = last_offset + 1
                current_rank, take, record_context.topic = rank, entries[rank], topics[rank]
            last_rank, last_offset = rank, offset
            # The record and its context share one int object, which `Forwarding.forward` compares by identity.
            own: Any = timestamp
            record_context.offset, record_context.timestamp, record_context.order_ms = offset, own, order_ms
            taken += 1
            take(make_record((key, value, own, ())))
            if stream_queue.next_due_ms <= stream_ms:
                stream_queue.fire(stream_ms, clocks.punctuate)
                current_rank = UNKNOWN
        if taken:
            offsets[last_rank] = last_offset + 1
            task_context.metrics.measure("task", "", PROCESS).record_many(taken, taken, 1, 1)
            least_ms = least_ms if late == taken else 0
            task_context.metrics.measure("task", "", RECORD_LATENESS).record_many(taken, late_ms, least_ms, latest_ms)
        return taken

    def adopt(self, semantics: Semantics) -> None:
        """Use other semantics of time from the next epoch on, as if a job's file had been changed between two runs."""
        self._config = replace(self._config, semantics=semantics)
        self._clocks.adopt(semantics)

    def _replay_rows(self, rank: int, rows: Rows) -> None:
        """Process consecutive records of one topic: in batches if their node gets batches, otherwise one by one."""
        assembly, topic, context = self._open(), self._topics[rank], self._task_context
        if rank not in self._batched:
            RecordReplay(assembly.entries[0], topic, self._clocks, context, self._check_stores).replay(rows)
        else:
            processor = assembly.processors[self._batched[rank]]
            BatchReplay(processor, rank, topic, self._clocks, context, self._limits).replay(rows)
            self._check_stores()
        self._offsets[rank] = rows.offsets[-1] + 1

    def _check_stores(self) -> None:
        check_stores(self._part, self._stores, self._limits, self._task_context)

    def _end_epoch(self, watermark_ms: int, *, is_final: bool, number: int) -> None:
        assembly = self._open()
        self._task_context.record_context.leave_event(self._task_context.stream_time_ms, MAX_MS)
        self._ending = ("epoch", number)
        self._clocks.glide(watermark_ms)
        if self._config.semantics.stream_time_from is StreamTimeFrom.WATERMARK and watermark_ms != UNKNOWN:
            self._take_watermark(assembly, watermark_ms)
        if is_final:
            self._finish(assembly, number)
        self._close(assembly)

    def _take_watermark(self, assembly: Assembly, watermark_ms: int) -> None:
        lag = max((self._config.watermark_lags.get(source.name, 0) for source in self._part.sources), default=0)
        # Nodes in earlier sub-topologies may hold records back for up to ``lag``. So stream time stays that far behind.
        if watermark_ms >= lag:
            self._clocks.move_stream_time(watermark_ms - lag)
        self._notify_nodes(assembly, watermark_ms)
        self._clocks.fire_stream_time()

    def _finish(self, assembly: Assembly, number: int) -> None:
        self._ending = ("final", number)
        self._clocks.fire_last()
        self._notify_nodes(assembly, MAX_MS)

    def _notify_nodes(self, assembly: Assembly, watermark_ms: int) -> None:
        record_context = self._task_context.record_context
        for name, processor in assembly.processors.items():
            lowered = (
                watermark_ms if watermark_ms == MAX_MS else watermark_ms - self._config.watermark_lags.get(name, 0)
            )
            if lowered >= 0:
                # The end of time must not become a record's timestamp, because it would advance the clocks of all nodes below.
                record_context.timestamp = lowered if lowered < MAX_MS else max(self._task_context.stream_time_ms, 0)
                record_context.order_ms, record_context.firing = MAX_MS, self._ending
                processor.on_watermark(lowered)

    def _open(self) -> Assembly:
        """Create and initialise the processors of this epoch, upstream first."""
        if self._assembly is not None:
            return self._assembly
        if not self._is_checked:
            check_suppliers(self._part)
            self._is_checked = True
        task_context = self._task_context
        assembly = self._assembly = assemble(self._part, task_context, self._sinks, self._policies)
        task_context.schedules.processors = assembly.processors
        for name, processor in assembly.processors.items():
            task_context.record_context.leave_event(task_context.stream_time_ms, UNKNOWN)
            task_context.schedules.begin_init(name)
            processor.init(assembly.contexts[name])
            task_context.schedules.end_init(name)
        task_context.begin_time()
        return assembly

    def _close(self, assembly: Assembly) -> None:
        self._task_context.record_context.leave_event(self._task_context.stream_time_ms, MAX_MS)
        self._check_stores()
        self._clocks.end_epoch()
        self._task_context.end_time()
        for context in assembly.contexts.values():
            context.close()
        for processor in assembly.processors.values():
            processor.close()
        self._assembly = None
