"""Jobs, their records in memory, and the test driver, for the provenance of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from rewindow import Topology
from rewindow.contracts.tasks import Epoch
from rewindow.engine.worker.provenance.behind import Behind, LogRow, Search, Wanted, find
from rewindow.engine.worker.provenance.extent import Extent, extents, own_key
from rewindow.engine.worker.provenance.task_replay import Drop, ReadLog, Sent, Traced, encoded
from rewindow.streams.ordering import Rows
from rewindow.streams.record import Record
from rewindow.streams.serde.schema import scalar_shape
from rewindow.streams.settings import Semantics, TaskConfig
from rewindow.testing import TopologyTestDriver

Input = tuple[str, str, int, int]
"""Topic, key, value and timestamp."""

SEMANTICS = Semantics(wall_clock="run")


@dataclass(frozen=True)
class Scene:
    """A job with one partition, and the records of its epochs; the last epoch ends the input."""

    topology: Topology
    epochs: Sequence[Sequence[Input]]

    @property
    def traced(self) -> Traced:
        topics = {one.topic for part in self.topology.sub_topologies() for one in part.sources if not one.is_internal}
        logs = {topic: (scalar_shape("key", "json"), scalar_shape("value", "json")) for topic in topics}
        config = TaskConfig("", SEMANTICS, watermark_lags=self.topology.watermark_lags())
        return Traced(self.topology, logs, config, 1, "out", 0)

    @property
    def ends(self) -> list[Epoch]:
        ends = [Epoch(number, -1) for number in range(1, len(self.epochs) + 1)]
        return [*ends, Epoch(len(ends) + 1, -1, is_final=True)]

    def log(self, topic: str) -> list[LogRow]:
        """Return the log of a topic."""
        own = [one for epoch in self.epochs for one in epoch if one[0] == topic]
        return [LogRow(offset, at, key, value) for offset, (_, key, value, at) in enumerate(own)]

    def at(self, topic: str, partition: int, offsets: Sequence[int]) -> list[LogRow]:
        """See `Records`."""
        assert partition == 0
        return [self.log(topic)[offset] for offset in offsets]

    def reading(self, search: Search | None = None, extent: Extent = Extent(), key: Any = None) -> ReadLog:  # noqa: B008 - frozen
        """Return a function that reads what a extent needs."""

        def read(topic: str, _partition: int, epoch: int) -> Iterator[Rows]:
            start = sum(one[0] == topic for before in self.epochs[: epoch - 1] for one in before)
            number = sum(one[0] == topic for one in self.epochs[epoch - 1]) if epoch <= len(self.epochs) else 0
            rows = self.log(topic)[start : start + number]
            running = accumulate((row.timestamp for row in rows), max)
            for row, order_ms in zip(rows, list(running), strict=True):
                is_near = order_ms >= (extent.since_ms or 0) and (not extent.is_of_key or row.key == key)
                if extent.clocks and search is not None:
                    is_near &= row.key == key or row.timestamp > search.clock_of(extent.clocks)
                if is_near and not (search and search.is_over(epoch)):
                    yield Rows([row.offset], [row.timestamp], [order_ms], [row.key], [row.value])

        return read

    def rows(self) -> tuple[list[Sent], list[Drop]]:
        """Return all rows of the output, and the dropped records."""
        sent: list[Sent] = []
        drops: list[Drop] = []
        self.traced.replay(self.ends, self.reading(), sent.append, drops.append)
        return sent, drops

    def behind(self, sent: Sent, before: int) -> list[Behind]:
        """Return what is behind a row, found in each way; ``before``: how many equal rows of its epoch precede it."""
        traced = self.traced
        wanted = Wanted(encoded(traced.shapes, sent.record), sent.epoch, before)
        found = [
            find(traced, self.ends, self._read_of(extent, own_key(sent.record.key)), self, wanted)
            for extent in extents(traced, sent.record.key, sent.record.timestamp)
        ]
        assert None not in found
        return [one for one in found if one is not None]

    def driven(self, behind: Behind) -> list[Record]:
        """Return what the test driver sends for nothing but the named records."""
        driver = TopologyTestDriver(self.topology, semantics=SEMANTICS)
        for one in behind.named:
            _, at, key, value = self.log(one.topic or "")[one.offset]
            driver.pipe(one.topic or "", key, value, at)
        if behind.sent.topic is None:
            driver.finish()
        return driver.read("out")

    def _read_of(self, extent: Extent, key: Any) -> Callable[[Search], ReadLog]:
        return lambda search: self.reading(search, extent, key)
