"""The clocks of a task that has one topic and two nodes with clocks, and what it counts."""

from __future__ import annotations

import dataclasses

from rewindow.contracts.tasks import Epoch
from rewindow.engine.worker.vectorized.slots import Array
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import PROCESS, RECORD_LATENESS, SIMULATED_TIME, TASK, Metrics
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.semantics import Semantics, StreamTimeFrom, WallClock


class Clocks:
    """What `streams.task` keeps beside stores: times, positions, metrics. Nothing here fires, so nothing is scheduled."""

    def __init__(self, topic: str, state: TaskState | None, semantics: Semantics) -> None:
        """Take up the clocks of a checkpoint."""
        self._topic, self._semantics = topic, semantics
        self._state = state or TaskState()
        self.metrics = Metrics()
        self.stream_time_ms = self._state.stream_time_ms
        self._wall_clock_ms = self._state.wall_clock_ms
        self._partition_time_ms = self._state.partition_times.get(topic, UNKNOWN)
        self.offset = self._state.offsets.get(topic, 0)
        self._node_times = dict(self._state.node_times)
        self._began_ms = self._wall_clock_ms
        """What the wall clock showed when the epoch began, or when it was first known in it."""

    def take(self, timestamps: Array, stream_times: Array) -> None:
        """Take records: their timestamps, and the stream time at each."""
        self.offset += len(timestamps)
        self.stream_time_ms = int(stream_times[-1])
        highest = int(timestamps.max())
        self._partition_time_ms = max(self._partition_time_ms, highest)
        if self._semantics.wall_clock is WallClock.STREAM_TIME:
            self._glide(int(timestamps[0]))
            self._glide(highest)
        count = len(timestamps)
        self.metrics.measure(TASK, "", PROCESS).record_many(count, count, 1, 1)
        self.count_lateness(TASK, "", stream_times - timestamps)

    def count_lateness(self, level: str, node: str, late_by: Array) -> None:
        """Count by how much some records are late (KIP-328)."""
        summary = (int(late_by.sum()), int(late_by.min()), int(late_by.max()))
        self.metrics.measure(level, node, RECORD_LATENESS).record_many(len(late_by), *summary)

    def observed(self, node: str) -> int:
        """Return a node's own clock."""
        return self._node_times.get(node, UNKNOWN)

    def observe(self, node: str, time_ms: int) -> None:
        """Move a node's own clock forward."""
        if time_ms > self.observed(node):
            self._node_times[node] = time_ms

    def end_epoch(self, epoch: Epoch) -> int:
        """Move the clocks to an epoch's end; return what the nodes learn of it, -1 for nothing."""
        if epoch.clock_to_ms != UNKNOWN:
            self._glide(epoch.clock_to_ms)
        if self._semantics.wall_clock is WallClock.STREAM_TIME:
            self._glide(epoch.watermark_ms)
        if self._wall_clock_ms > self._began_ms:
            self.metrics.measure(TASK, "", SIMULATED_TIME).record(self._wall_clock_ms - self._began_ms)
        self._began_ms = self._wall_clock_ms
        follows = self._semantics.stream_time_from is StreamTimeFrom.WATERMARK
        told_ms = epoch.watermark_ms if follows else UNKNOWN
        self.stream_time_ms = max(self.stream_time_ms, told_ms)
        return MAX_MS if epoch.is_final else told_ms

    def state(self, emitted: dict[str, int], store_clocks: dict[str, int], held: dict[str, int]) -> TaskState:
        """Return what the task remembers besides its stores."""
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

    def _glide(self, now_ms: int) -> None:
        if self._wall_clock_ms == UNKNOWN:
            self._began_ms = now_ms
        self._wall_clock_ms = max(self._wall_clock_ms, now_ms)
