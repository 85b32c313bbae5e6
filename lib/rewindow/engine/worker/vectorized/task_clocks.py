"""The clocks and metrics of a task whose nodes have no schedules."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from rewindow.contracts.tasks import Epoch
from rewindow.engine.worker.arrow_rows import distinct
from rewindow.engine.worker.vectorized.arrays import Array
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import (
    GRACE_BOUNDS_MS,
    GRACE_BUCKETS,
    GRACE_NEEDED,
    NODE,
    PROCESS,
    RECORD_LATENESS,
    SIMULATED_TIME,
    TASK,
    Metrics,
)
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.settings import Semantics, StreamTime, StreamTimeFrom, WallClock


class Clocks:
    """The state of `streams.task` besides stores: clocks, offsets, metrics. There are no punctuations."""

    def __init__(self, topics: Sequence[str], state: TaskState | None, semantics: Semantics, lag_ms: int = 0) -> None:
        """Resume the clocks of a checkpoint. ``lag_ms`` lowers the watermarks of the topics (D22)."""
        self._semantics, self._lag_ms = semantics, lag_ms
        self._state = state or TaskState()
        self.metrics = Metrics()
        self.stream_time_ms = self._state.stream_time_ms
        self._wall_clock_ms = self._state.wall_clock_ms
        self._partition_times = {topic: self._state.partition_times.get(topic, UNKNOWN) for topic in topics}
        self.offsets = {topic: self._state.offsets.get(topic, 0) for topic in topics}
        """The next offset of each topic."""
        self._node_times = dict(self._state.node_times)
        self._start_ms = self._wall_clock_ms
        """The wall clock at the start of the epoch, or when it was first known."""

    def take(self, timestamps: Array, ranks: Array | None = None) -> None:
        """Advance the clocks by records in their order (at least one). ``ranks``: the topic of each; None: there is one."""
        times = self._stream_times(timestamps, ranks)
        self.stream_time_ms = int(times[-1])
        for rank, topic in enumerate(self.offsets):
            own = timestamps if ranks is None else timestamps[ranks == rank]
            self.offsets[topic] += len(own)
            self._partition_times[topic] = max(self._partition_times[topic], int(own.max(initial=UNKNOWN)))
        if self._semantics.wall_clock is WallClock.STREAM_TIME:
            self._advance_wall_clock(int(timestamps[0]))
            self._advance_wall_clock(int(timestamps.max()))
        count = len(timestamps)
        self.metrics.measure(TASK, "", PROCESS).record_many(count, count, 1, 1)
        self.count_lateness(TASK, "", np.maximum(times - timestamps, 0))

    def count_lateness(self, level: str, node: str, late_by: Array) -> None:
        """Record the lateness of records (KIP-328)."""
        summary = (int(late_by.sum()), int(late_by.min()), int(late_by.max()))
        self.metrics.measure(level, node, RECORD_LATENESS).record_many(len(late_by), *summary)

    def count_needed_grace(self, node: str, grace_ms: Array) -> None:
        """Count the records that arrived after the end of their last window, by the smallest grace that keeps each."""
        needed = grace_ms[grace_ms > 0]
        if len(needed) == 0:
            return
        buckets = np.searchsorted(GRACE_BOUNDS_MS, needed)
        for bucket in distinct(buckets):
            mine = needed[buckets == bucket]
            measure = self.metrics.measure(NODE, node, GRACE_NEEDED, GRACE_BUCKETS[bucket])
            measure.record_many(len(mine), int(mine.sum()), int(mine.min()), int(mine.max()))

    def observed(self, node: str) -> int:
        """Return a node's observed time."""
        return self._node_times.get(node, UNKNOWN)

    def observe(self, node: str, time_ms: int) -> None:
        """Advance a node's observed time."""
        if time_ms > self.observed(node):
            self._node_times[node] = time_ms

    def watermark_ms(self, epoch: Epoch) -> int:
        """Return the watermark that nodes observe at an epoch's end, -1 for none."""
        follows = self._semantics.stream_time_from is StreamTimeFrom.WATERMARK
        return max(epoch.watermark_ms - self._lag_ms, UNKNOWN) if follows else UNKNOWN

    def end_epoch(self, epoch: Epoch) -> int:
        """Advance the clocks to an epoch's end; return the time that nodes have observed then, -1 for none."""
        if epoch.clock_to_ms != UNKNOWN:
            self._advance_wall_clock(epoch.clock_to_ms)
        if self._semantics.wall_clock is WallClock.STREAM_TIME:
            self._advance_wall_clock(epoch.watermark_ms)
        if self._wall_clock_ms > self._start_ms:
            self.metrics.measure(TASK, "", SIMULATED_TIME).record(self._wall_clock_ms - self._start_ms)
        self._start_ms = self._wall_clock_ms
        time_ms = self.watermark_ms(epoch)
        self.stream_time_ms = max(self.stream_time_ms, time_ms)
        return MAX_MS if epoch.is_final else time_ms

    def state(self, emitted: dict[str, int], store_clocks: dict[str, int], held: dict[str, int]) -> TaskState:
        """Return the checkpoint of the task, without its stores."""
        return dataclasses.replace(
            self._state,
            stream_time_ms=self.stream_time_ms,
            wall_clock_ms=self._wall_clock_ms,
            partition_times=self._partition_times,
            offsets=self.offsets,
            emitted=emitted,
            node_times=dict(sorted(self._node_times.items())),
            store_clocks=store_clocks,
            held=held,
        )

    def _stream_times(self, timestamps: Array, ranks: Array | None) -> Array:
        """Return the stream time at each record."""
        if ranks is None or self._semantics.stream_time is not StreamTime.MIN:
            return np.asarray(np.maximum(np.maximum.accumulate(timestamps), self.stream_time_ms))
        times = [
            np.maximum(np.maximum.accumulate(np.where(ranks == rank, timestamps, UNKNOWN)), time_ms)
            for rank, time_ms in enumerate(self._partition_times.values())
        ]
        return np.asarray(np.maximum(np.min(times, axis=0), self.stream_time_ms))

    def _advance_wall_clock(self, now_ms: int) -> None:
        if self._wall_clock_ms == UNKNOWN:
            self._start_ms = now_ms
        self._wall_clock_ms = max(self._wall_clock_ms, now_ms)
