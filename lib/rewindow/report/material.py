"""What a report is made from: a branch, its feed, and functions that read what only some sections need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branches import Branch, CommittedRun
from rewindow.control.plan.spec import OUTPUT
from rewindow.report.nodes import TimedNode, topics_read
from rewindow.report.run_totals import records_from_feed
from rewindow.streams.record import UNKNOWN, TopicPartition

Columns = Mapping[str, Sequence[Any]]
"""Rows of a store by column."""

DETAILED_RUNS = 400
"""The reports of the tasks are read of so many runs, the last ones of the selected: each is one file."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """When the steps of a run ended: its execution, its entry in the journal, its last publication. None if unknown."""

    executed_ms: int | None
    staged_ms: int | None
    published_ms: int | None


class FeedRules(NamedTuple):
    """What a feed's file says: by how much its watermark is behind its newest record (ms), and its logs (None: unknown)."""

    lag_ms: int = 0
    logs: AbstractSet[str] | None = None


@dataclass(frozen=True)
class Material:
    """The input of a report on ``runs``, the last of which is ``head``.

    ``planned_at`` has the time of each run's PLAN row, by run id. ``read_reports`` returns what a run's tasks reported,
    ``read_store`` a store's columns after the head, or None if the store is too large for a report. ``lagging`` counts
    the commits that tables lack, ``accepted`` has the ids of runs that were published although they had been on hold.
    ``read_steps`` returns when the steps of runs ended, by run id, as far as that is known.
    """

    branch: Branch
    feed: Feed
    runs: Sequence[CommittedRun]
    planned_at: Mapping[int, int]
    lagging: Mapping[str, int]
    read_reports: Callable[[CommittedRun], Sequence[TaskReport]]
    read_store: Callable[[str], Columns | None]
    rules: FeedRules
    read_steps: Callable[[Sequence[CommittedRun]], Mapping[int, StepTimes]] = lambda _runs: {}
    accepted: AbstractSet[int] = frozenset()

    @classmethod
    def of_reports(
        cls,
        branch: Branch,
        feed: Feed,
        runs: Sequence[CommittedRun],
        read_reports: Callable[[CommittedRun], Sequence[TaskReport]],
        *,
        rules: FeedRules,
    ) -> Self:
        """Return what the reports of some runs tell, without stores, tables and times."""
        return cls(branch, feed, runs, {}, {}, read_reports, lambda _store: None, rules=rules)

    @property
    def head(self) -> CommittedRun:
        """The run whose state the report shows."""
        return self.runs[-1]

    @property
    def is_newest(self) -> bool:
        """Whether the head is the branch's last run."""
        return self.branch.head is not None and self.branch.head.spec.run == self.head.spec.run

    @cached_property
    def before(self) -> CommittedRun | None:
        """The run before the head in the branch's chain; None for the first one."""
        index = self.branch.index_of(self.head.spec.run) or 1
        return self.branch.runs[index - 2] if index > 1 else None

    @cached_property
    def reports(self) -> Mapping[int, Sequence[TaskReport]]:
        """The task reports of the last selected runs, by run id, oldest first."""
        return {run.spec.run: self.read_reports(run) for run in self.runs[-DETAILED_RUNS:]}

    @cached_property
    def metrics(self) -> Sequence[Mapping[str, Any]]:
        """The metrics of all runs whose reports are read."""
        return [row for reports in self.reports.values() for report in reports for row in report.metrics]

    @cached_property
    def tasks(self) -> Mapping[tuple[int, int], Mapping[str, Any]]:
        """The small state of each task after the head, by sub-topology and partition."""
        known = self.reports[self.head.spec.run]
        return {(report.sub_topology, report.partition): report.state for report in known if report.state}

    @cached_property
    def topics(self) -> AbstractSet[str]:
        """The topics that the job reads: a feed may have more."""
        return topics_read(self.head.spec.binding.topology)

    @cached_property
    def newest(self) -> Mapping[TopicPartition, int]:
        """The time of the newest record of each topic-partition, also of records that no run has taken. None of those without."""
        ranges = self.feed.landings[-1].ranges.items() if self.feed.landings else ()
        return {one: landed.max_timestamp for one, landed in ranges if landed.max_timestamp >= 0}

    def newest_read(self, timed: TimedNode, partition: int) -> int:
        """Return the time of the newest record of a partition, in the logs that a node's task reads; `UNKNOWN` for none."""
        return max((at for one, at in self.newest.items() if timed.reads(one, partition)), default=UNKNOWN)

    @cached_property
    def waits_for(self) -> Mapping[TopicPartition, int]:
        """The topic-partitions that the watermark of the last landing waits for, each with the time of its newest record.

        It waits neither for idle ones nor for logs that the feed no longer has. Empty, too, if something else decided it: the
        `lag` alone, the job that makes the feed's records, or `land --watermark`.
        """
        if not self.newest:
            return {}
        landing, logs, lag_ms = self.feed.landings[-1], self.rules.logs, self.rules.lag_ms
        present = {
            one: at
            for one, at in sorted(self.newest.items())
            if (logs is None or one.topic in logs) and one not in landing.given_up
        }
        least = min(present.values(), default=UNKNOWN)
        if not least - lag_ms <= landing.watermark_ms < max(self.newest.values()) - lag_ms:
            return {}
        return {one: at for one, at in present.items() if at == least}

    def seconds_of(self, run: CommittedRun) -> float | None:
        """Return the time from a run's plan to its commit; None if the ledger does not tell."""
        planned = self.planned_at.get(run.spec.run)
        if planned is None or not planned <= run.recorded_at:
            return None
        return (run.recorded_at - planned) / 1000


def records_of(run: CommittedRun) -> int:
    """Return how many records a run took from its feed."""
    return records_from_feed(run.spec.binding, run.commit.consumed)


def rows_of(run: CommittedRun) -> int:
    """Return how many rows a run added to output tables."""
    return sum(total.rows for target, total in run.commit.targets.items() if target.startswith(OUTPUT))
