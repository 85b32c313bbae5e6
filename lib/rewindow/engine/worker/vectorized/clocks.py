"""The clocks and metrics of a task with one topic and two nodes that have clocks."""

from __future__ import annotations

import dataclasses

import numpy as np

from rewindow.contracts.tasks import Epoch
from rewindow.engine.worker.distinct import distinct
from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.grace_needed import BOUNDS_MS, BUCKETS
from rewindow.streams.metrics import GRACE_NEEDED, NODE, PROCESS, RECORD_LATENESS, SIMULATED_TIME, TASK, Metrics
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.semantics import Semantics, StreamTimeFrom, WallClock


class Clocks:
    """The state of `streams.task` besides stores: clocks, offsets, metrics. There are no punctuations."""

    def __init__(self, topic: str, state: TaskState | None, semantics: Semantics, lag_ms: int = 0) -> None:
        """Resume the clocks of a checkpoint. ``lag_ms`` lowers the topic's watermarks (D22)."""
        self._topic, self._semantics, self._lag_ms = topic, semantics, lag_ms
        self._state = state or TaskState()
        self.metrics = Metrics()
        self.stream_time_ms = self._state.stream_time_ms
        self._wall_clock_ms = self._state.wall_clock_ms
        self._partition_time_ms = self._state.partition_times.get(topic, UNKNOWN)
        self.offset = self._state.offsets.get(topic, 0)
        self._node_times = dict(self._state.node_times)
        self._start_ms = self._wall_clock_ms
        """The wall clock at the start of the epoch, or when it was first known."""

    def take(self, timestamps: Array, stream_times: Array) -> None:
        """Advance the clocks by records, given their timestamps and the stream time at each."""
        self.offset += len(timestamps)
        self.stream_time_ms = int(stream_times[-1])
        highest = int(timestamps.max())
        self._partition_time_ms = max(self._partition_time_ms, highest)
        if self._semantics.wall_clock is WallClock.STREAM_TIME:
            self._advance_wall_clock(int(timestamps[0]))
            self._advance_wall_clock(highest)
        count = len(timestamps)
        self.metrics.measure(TASK, "", PROCESS).record_many(count, count, 1, 1)
        self.count_lateness(TASK, "", stream_times - timestamps)

    def count_lateness(self, level: str, node: str, late_by: Array) -> None:
        """Record the lateness of records (KIP-328)."""
        summary = (int(late_by.sum()), int(late_by.min()), int(late_by.max()))
        self.metrics.measure(level, node, RECORD_LATENESS).record_many(len(late_by), *summary)

    def count_needed_grace(self, node: str, grace_ms: Array) -> None:
        """Count the records that arrived after the end of their last window, by the smallest grace that keeps each."""
        needed = grace_ms[grace_ms > 0]
        if len(needed) == 0:
            return
        buckets = np.searchsorted(BOUNDS_MS, needed)
        for bucket in distinct(buckets):
            mine = needed[buckets == bucket]
            measure = self.metrics.measure(NODE, node, GRACE_NEEDED, BUCKETS[bucket])
            measure.record_many(len(mine), int(mine.sum()), int(mine.min()), int(mine.max()))

    def observed(self, node: str) -> int:
        """Return a node's observed time."""
        return self._node_times.get(node, UNKNOWN)

    def observe(self, node: str, time_ms: int) -> None:
        """Advance a node's observed time."""
        if time_ms > self.observed(node):
            self._node_times[node] = time_ms

    def end_epoch(self, epoch: Epoch) -> int:
        """Advance the clocks to an epoch's end; return the time that nodes observe, -1 for none."""
        if epoch.clock_to_ms != UNKNOWN:
            self._advance_wall_clock(epoch.clock_to_ms)
        if self._semantics.wall_clock is WallClock.STREAM_TIME:
            self._advance_wall_clock(epoch.watermark_ms)
        if self._wall_clock_ms > self._start_ms:
            self.metrics.measure(TASK, "", SIMULATED_TIME).record(self._wall_clock_ms - self._start_ms)
        self._start_ms = self._wall_clock_ms
        follows = self._semantics.stream_time_from is StreamTimeFrom.WATERMARK
        time_ms = max(epoch.watermark_ms - self._lag_ms, UNKNOWN) if follows else UNKNOWN
        self.stream_time_ms = max(self.stream_time_ms, time_ms)
        return MAX_MS if epoch.is_final else time_ms

    def state(self, emitted: dict[str, int], store_clocks: dict[str, int], held: dict[str, int]) -> TaskState:
        """Return the checkpoint of the task, without its stores."""
        return dataclasses.replace(
            self._state,
            stream_time_ms=self.stream_time_ms,
            wall_clock_ms=self._wall_clock_ms,
            partition_times={self._topic: self._partition_time_ms},
            offsets={self._topic: self.offset},
            emitted=emitted,
            node_times=dict(sorted(self._node_times.items())),
            store_clocks=store_clocks,
            held=held,
        )

    def _advance_wall_clock(self, now_ms: int) -> None:
        if self._wall_clock_ms == UNKNOWN:
            self._start_ms = now_ms
        self._wall_clock_ms = max(self._wall_clock_ms, now_ms)
