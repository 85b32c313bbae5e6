"""The epochs that a row's run and the runs before it took, and the logs that they read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rewindow.app.why.output import Output
from rewindow.contracts.tasks import Epoch
from rewindow.control.plan.branches import CommittedRun
from rewindow.control.plan.planner import check_has_landings
from rewindow.control.plan.tasks import run_epochs
from rewindow.engine.worker.provenance.behind import Search
from rewindow.engine.worker.provenance.extent import Extent
from rewindow.engine.worker.provenance.logs import LogRecords
from rewindow.engine.worker.provenance.replay import ReadLog
from rewindow.errors import ConfigError
from rewindow.streams.ordering import Rows
from rewindow.streams.record import UNKNOWN, TopicPartition


@dataclass(frozen=True)
class History:
    """The chain of runs up to ``last``, whose logs are read again."""

    output: Output
    last: CommittedRun

    def check(self) -> None:
        """Raise `SourceError` (66) if the logs no longer have what the runs read, `ConfigError` (78) if only Spark reads them."""
        check_has_landings(self.last, self.output.job.feed, self.output.branch)
        for topic in self.output.traced(0).external:
            table = self.output.tables.log_table(self.output.job.feed, topic)
            if table is not None:
                message = (
                    f"the log {topic!r} can only be read by Spark, because {table.why}: `why` opens the files of logs"
                )
                raise ConfigError(message)

    @cached_property
    def runs(self) -> tuple[CommittedRun, ...]:
        """The runs, oldest first."""
        return self.output.state.chain_to(self.last.spec.run)

    @cached_property
    def epochs(self) -> tuple[Epoch, ...]:
        """The epochs that they took, in order."""
        return tuple(epoch for run in self.runs for epoch in run_epochs(run.spec, self.output.job.feed))

    @cached_property
    def records(self) -> LogRecords:
        """The records that they took."""
        job, tables = self.output.job, self.output.tables
        taken = {number for run in self.runs for number in run.spec.epochs}

        def bounds(topic: str, partition: int, epoch: int) -> tuple[int, int]:
            return job.feed.epoch_range(epoch, TopicPartition(topic, partition)) if epoch in taken else (0, 0)

        return LogRecords(
            job.code.load_logs(),
            bounds,
            lambda topic, partition, start, end: tables.log_files(
                job.feed, TopicPartition(topic, partition), start, end
            ),
        )

    def end(self, topic: str, partition: int) -> int:
        """Return the offset after the last record that the runs took."""
        return max((self.records.bounds(topic, partition, epoch.number)[1] for epoch in self.epochs), default=0)

    def reading(
        self, search: Search, extent: Extent, key: Any, candidates: dict[tuple[str, int], dict[int, int]]
    ) -> ReadLog:
        """Return a function that reads what a extent needs until the search is done, and then only the candidates.

        ``candidates`` maps topics and partitions to offsets with their timestamps.
        """
        records = self.records

        def read(topic: str, partition: int, epoch: int) -> Iterator[Rows]:
            next_offset = -1
            if not search.is_over(epoch):
                for rows in records.epoch(topic, partition, epoch, extent, key, lambda: search.is_done):
                    yield rows
                    next_offset = rows.offsets[-1] + 1
            start, end = records.bounds(topic, partition, epoch)
            known = candidates.get((topic, partition), {})
            left = [offset for offset in sorted(known) if max(start, next_offset) <= offset < end]
            if left and search.is_done:
                offsets, timestamps, keys, values = zip(*records.at(topic, partition, left), strict=True)
                before = self._newest_before(topic, partition, epoch)
                newest = [max(before, one) for one in records.newest(topic, partition, epoch, left)]
                yield Rows(offsets, timestamps, newest, keys, values)

        return read

    def _newest_before(self, topic: str, partition: int, epoch: int) -> int:
        """Return the highest timestamp of a topic-partition in the landings before an epoch."""
        landings = self.output.job.feed.landings[: epoch - 1]
        landed = landings[-1].ranges.get(TopicPartition(topic, partition)) if landings else None
        return landed.max_timestamp if landed else UNKNOWN
