"""The epochs that a row's run and earlier runs processed, and the logs that these runs read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from rewindow.app.why.output import Output
from rewindow.contracts.tasks import Epoch, LogFile
from rewindow.control.plan.compatibility import check_has_landings
from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.plan.planned_tasks import run_epochs
from rewindow.engine.worker.provenance.behind import Search
from rewindow.engine.worker.provenance.extent import Extent
from rewindow.engine.worker.provenance.logs import LogRecords, Only
from rewindow.engine.worker.provenance.task_replay import ReadLog
from rewindow.errors import ConfigError
from rewindow.streams.ordering import Rows
from rewindow.streams.record import UNKNOWN, TopicPartition
from rewindow.streams.settings import Semantics
from rewindow.streams.timing import TimedNode

Offsets = Mapping[tuple[str, int], Mapping[int, int]]
"""Maps (topic, partition) to a mapping from the offset of each record to its timestamp."""

Candidates = dict[tuple[str, int], dict[int, int]]
"""Records that may have contributed to a row. Maps (topic, partition) to a mapping from offset to timestamp."""


@dataclass(frozen=True, eq=False)
class History:
    """A run and the earlier runs of its chain. Its methods read the records of these runs from the logs again."""

    output: Output
    last: CommittedRun

    def check(self) -> None:
        """Raise an error if the logs cannot be read as the runs read them.

        `SourceError` (66): the logs lack records. `ConfigError` (78): only Spark can read the logs. `CheckpointError` (76): the
        logs have landings that their ledger lacks.
        """
        output = self.output
        output.tables.later_refusals(output.job, output.state).check_ledgers(output.branch.name)
        check_has_landings(self.last, self.output.job.feed, self.output.branch)
        for topic in self.output.layout.external:
            if why := self.output.tables.only_spark_reads(self.output.job.feed, topic):
                raise ConfigError(
                    "why-log-needs-spark",
                    "the log {topic!r} can only be read by Spark, because {reason}: `why` opens the files of logs",
                    topic=topic,
                    reason=why,
                )

    @cached_property
    def runs(self) -> tuple[CommittedRun, ...]:
        """The runs of the chain, oldest first."""
        return self.output.state.chain_to(self.last.spec.run)

    @property
    def timed(self) -> Sequence[TimedNode]:
        """The nodes that wait for clocks, from the plan of the last run."""
        planned = self.last.spec.binding.timed
        # A plan of an older version does not name these nodes. Then they come from the code.
        return self.output.layout.topology.timed_nodes() if planned is None else planned

    @cached_property
    def epochs(self) -> tuple[Epoch, ...]:
        """The epochs that the runs processed, in order, each with the semantics of its run."""
        return tuple(
            replace(epoch, semantics=Semantics(**run.spec.binding.semantics))
            for run in self.runs
            for epoch in run_epochs(run.spec, self.output.job.feed)
        )

    @cached_property
    def records(self) -> LogRecords:
        """The records of the logs in the epochs that the runs processed."""
        job, tables = self.output.job, self.output.tables
        taken = {number for run in self.runs for number in run.spec.epochs}

        def bounds(topic: str, partition: int, epoch: int) -> tuple[int, int]:
            return job.feed.epoch_range(epoch, TopicPartition(topic, partition)) if epoch in taken else (0, 0)

        @cache
        def listed(topic: str, partition: int) -> Sequence[LogFile]:
            where = TopicPartition(topic, partition)
            end = max(
                (landing.ranges[where].end for landing in job.feed.landings if where in landing.ranges), default=0
            )
            return tables.log_parts(job.feed, where, 0, end)

        return LogRecords(
            job.code.load_logs(),
            bounds,
            lambda topic, partition, start, end: tables.as_files(
                job.feed, [part for part in listed(topic, partition) if part.first < end and part.last >= start]
            ),
        )

    def end(self, topic: str, partition: int) -> int:
        """Return the offset after the last record that the runs processed."""
        return max((self.records.bounds(topic, partition, epoch.number)[1] for epoch in self.epochs), default=0)

    def within(self, extent: Extent, key: Any, partition: int, until: int, candidates: Offsets) -> list[Epoch]:
        """Return the epochs that a replay up to epoch ``until`` needs, and later epochs that contain candidates.

        The result includes the epoch before the first of them, and the epoch before each epoch with candidates, because their
        watermarks may close windows.
        """
        wanted: set[int] = set()
        if extent.is_of_key:
            for topic in self.output.layout.external:
                wanted |= self._epochs_of(topic, partition, self._of_key(topic, partition, key))
            return [epoch for epoch in self.epochs if epoch.number <= until and epoch.number in wanted | {until}]
        for (topic, of_partition), known in candidates.items():
            wanted |= self._epochs_of(topic, of_partition, known)
        first = self._first_since(extent.since_ms)
        later = wanted | {number - 1 for number in wanted}
        return [
            epoch
            for epoch in self.epochs
            if epoch.number >= first - 1 and (epoch.number <= until or epoch.number in later)
        ]

    def reading(self, search: Search, extent: Extent, key: Any, candidates: Offsets) -> ReadLog:
        """Return a function that reads the records of an extent (a set of records to replay) until the search is done.

        After that, it reads only the candidates. Up to the last candidate it also reads records that advance a clock, because
        clocks decide whether a candidate was late.
        """
        records = self.records
        only = Only(key, lambda: search.clock_of(extent.clocks)) if extent.clocks else None

        def read(topic: str, partition: int, epoch: int) -> Iterator[Rows]:
            if extent.is_of_key:
                mine = (
                    []
                    if search.is_over(epoch)
                    else self._inside(topic, partition, epoch, self._of_key(topic, partition, key))
                )
                yield from self._chosen(topic, partition, epoch, mine, UNKNOWN)
                return
            next_offset, own = UNKNOWN, candidates.get((topic, partition), {})
            last = UNKNOWN if only is None else self._last_timed(topic, partition, epoch, own)

            def is_done(offset: int) -> bool:
                return search.is_done and offset > last

            if not search.is_over(epoch) or last != UNKNOWN:
                for rows in records.epoch(topic, partition, epoch, extent.since_ms, is_done, only):
                    yield rows
                    next_offset = rows.offsets[-1] + 1
            if search.is_done:
                known = self._inside(topic, partition, epoch, own)
                left = [offset for offset in known if offset >= next_offset]
                yield from self._chosen(topic, partition, epoch, left, self._newest_before(topic, partition, epoch))

        return read

    def _last_timed(self, topic: str, partition: int, epoch: int, known: Mapping[int, int]) -> int:
        """Return the last offset of an epoch up to which records may advance a clock that decides on a record of ``known``.

        If the next epoch has ``known`` records, this is the end of the epoch. Otherwise it is the last of the ``known`` records
        in the epoch, or `UNKNOWN` if the epoch has none.
        """
        if self._inside(topic, partition, epoch + 1, known):
            return self.records.bounds(topic, partition, epoch)[1]
        return max(self._inside(topic, partition, epoch, known), default=UNKNOWN)

    def _inside(self, topic: str, partition: int, epoch: int, known: Mapping[int, int]) -> list[int]:
        start, end = self.records.bounds(topic, partition, epoch)
        return [offset for offset in sorted(known) if start <= offset < end]

    def _chosen(self, topic: str, partition: int, epoch: int, offsets: list[int], before: int) -> Iterator[Rows]:
        """Yield the records at these offsets of an epoch. ``before``: the newest timestamp before the epoch."""
        if offsets:
            rows = self.records.at(topic, partition, offsets)
            at, timestamps, keys, values = zip(*rows, strict=True)
            newest = [max(before, time) for time in self.records.newest(topic, partition, epoch, offsets)]
            yield Rows(at, timestamps, newest, keys, values)

    @cache  # noqa: B019 - a command makes one history
    def _of_key(self, topic: str, partition: int, key: Any) -> Mapping[int, int]:
        return self.records.of_key(topic, partition, key, (0, self.end(topic, partition)))

    def _epochs_of(self, topic: str, partition: int, known: Mapping[int, int]) -> set[int]:
        """Return the epochs that contain the records of ``known``, a mapping from offset to timestamp."""
        return {self.epoch_of(topic, partition, offset) for offset in known}

    def epoch_of(self, topic: str, partition: int, offset: int) -> int:
        """Return the epoch of a record that the runs processed."""
        ends, numbers = self._ends(topic, partition)
        return numbers[bisect_right(ends, offset)]

    @cache  # noqa: B019 - a command makes one history
    def _ends(self, topic: str, partition: int) -> tuple[list[int], list[int]]:
        """Return two lists, both in the order of the epochs: the offset at which each epoch ends, and its number."""
        numbers = [epoch.number for epoch in self.epochs if not epoch.is_final]
        return [self.records.bounds(topic, partition, number)[1] for number in numbers], numbers

    def _first_since(self, since_ms: int | None) -> int:
        """Return the number of the first landing that has a record at or after ``since_ms``; 1 if there is none."""
        for landing in self.output.job.feed.landings if since_ms is not None else ():
            if any(landed.max_timestamp >= (since_ms or 0) for landed in landing.ranges.values()):
                return landing.number
        return 1

    def _newest_before(self, topic: str, partition: int, epoch: int) -> int:
        """Return the highest timestamp of a topic-partition in the landings before an epoch."""
        landings = self.output.job.feed.landings[: epoch - 1]
        landed = landings[-1].ranges.get(TopicPartition(topic, partition)) if landings else None
        return landed.max_timestamp if landed else UNKNOWN
