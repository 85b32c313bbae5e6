"""The data from which the health of a branch is computed: ledgers, task reports and stores. Commands read this data beforehand.

A value that a command has not read is `Unknown`, with the reason. A result that depends on an unknown value never counts as good.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rewindow.control.plan.compatibility import topics_of
from rewindow.control.plan.spec import OUTPUT, Commit, JobBinding
from rewindow.errors import RewindowError, one_line
from rewindow.streams.metrics import DROPS, sum_by_reason
from rewindow.streams.record import UNKNOWN, TopicPartition
from rewindow.streams.settings import StreamTimeFrom

if TYPE_CHECKING:
    from rewindow.contracts.staged_files import TaskReport
    from rewindow.control.ingest.landings import Feed, Landing
    from rewindow.control.plan.job_state import Branch, CommittedRun
    from rewindow.streams.timing import TimedNode

Value = TypeVar("Value")
Columns = Mapping[str, Sequence[Any]]
"""Maps each column of a store to its values, in the order of the store's rows."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that a command has not read or could not read, with the reason in words."""

    reason: str


DETAILED_RUNS = 400
"""Task reports are read for at most this many of the newest runs, because each run has its own file of reports."""
NOT_READ = Unknown("this command does not read it")


def known(read: Callable[[], Value]) -> Value | Unknown:
    """Return what ``read`` returns; if it raises an error, return `Unknown` with the error as the reason."""
    try:
        return read()
    except RewindowError as error:
        return Unknown(str(error))
    except Exception as error:  # noqa: BLE001 - one unknown value must not hide the others
        return Unknown(f"{type(error).__name__}: {one_line(error)}")


class StepTimes(NamedTuple):
    """When each step of a run ended (epoch ms): the execution, the entry in the journal, the last publication.

    None if unknown.
    """

    executed_ms: int | None
    staged_ms: int | None
    published_ms: int | None


class FeedRules(NamedTuple):
    """Settings in a feed's file: `lag`, by which the watermark stays behind the newest record (in ms), and the feed's logs."""

    lag_ms: int
    logs: AbstractSet[str]


@dataclass(frozen=True, slots=True)
class Held:
    """Landed records of a topic-partition that the feed's watermark holds back. The newest of them is at ``until_ms``."""

    topic: str
    partition: int
    records: int
    until_ms: int


@dataclass(frozen=True)
class Inputs:
    """What a command has read about a branch and some of its ``runs``. The last of these runs is the head.

    * ``read_rules`` reads the feed's file. Reading takes longer than a small run, so it is called only if a result needs the
      rules.
    * ``reports`` maps each run id to the task reports of the run, oldest run first. ``before_reports`` are the task reports of
      the run before the head.
    * ``stores`` maps each store to its columns after the head. Stores that were not read are left out.
    * ``lagging`` maps each target to how many commits its table lacks.
    * ``planned_at`` maps each run id to the time of the run's PLAN row (epoch ms). ``steps`` maps each run id to the times of
      the run's steps.
    * ``accepted`` has the ids of runs that were on hold and that somebody accepted.
    """

    branch: Branch
    feed: Feed
    runs: Sequence[CommittedRun]
    read_rules: Callable[[], FeedRules | Unknown] = lambda: NOT_READ
    reports: Mapping[int, Sequence[TaskReport]] | Unknown = NOT_READ
    before_reports: Sequence[TaskReport] = ()
    stores: Mapping[str, Columns] = field(default_factory=dict)
    lagging: Mapping[str, int] | Unknown = NOT_READ
    planned_at: Mapping[int, int] = field(default_factory=dict)
    accepted: AbstractSet[int] = frozenset()
    steps: Mapping[int, StepTimes] = field(default_factory=dict)
    will_follow: bool = False
    """Whether, by the job's present file, the feed's watermark will advance the job's clocks in the next run and all later
    ones."""

    @cached_property
    def rules(self) -> FeedRules | Unknown:
        """The rules in the feed's file."""
        return self.read_rules()

    @property
    def head(self) -> CommittedRun:
        """The run whose state is shown."""
        return self.runs[-1]

    @property
    def is_newest(self) -> bool:
        """Whether the head is the branch's last run."""
        return self.branch.head is not None and self.branch.head.spec.run == self.head.spec.run

    @cached_property
    def before(self) -> CommittedRun | None:
        """The run before the head in the branch's chain of runs; None if the head is the first run."""
        index = self.branch.index_of(self.head.spec.run) or 1
        return self.branch.runs[index - 2] if index > 1 else None

    @property
    def last_landing(self) -> Landing | None:
        """The last landing of the feed."""
        return self.feed.landings[-1] if self.feed.landings else None

    @cached_property
    def known_reports(self) -> Mapping[int, Sequence[TaskReport]]:
        """The task reports that are known, by run id."""
        return {} if isinstance(self.reports, Unknown) else self.reports

    @cached_property
    def metrics(self) -> Sequence[Mapping[str, Any]]:
        """The metrics of all runs whose reports are known."""
        return [row for reports in self.known_reports.values() for report in reports for row in report.metrics]

    @cached_property
    def tasks(self) -> Mapping[tuple[int, int], Mapping[str, Any]] | Unknown:
        """The state of each task after the head, by (sub-topology, partition): offsets, clocks and schedules, but no stores."""
        if isinstance(self.reports, Unknown):
            return self.reports
        of_head = self.reports.get(self.head.spec.run, ())
        return {(report.sub_topology, report.partition): report.state for report in of_head if report.state}

    @property
    def known_tasks(self) -> Mapping[tuple[int, int], Mapping[str, Any]]:
        """The states in `tasks`; empty if they are unknown."""
        return {} if isinstance(self.tasks, Unknown) else self.tasks

    @property
    def timed(self) -> Sequence[TimedNode] | Unknown:
        """The nodes of the head's topology whose results wait until a clock reaches a time."""
        if self.head.spec.binding.timed is None:
            return Unknown(f"run {self.head.spec.name} is of an older version, which did not record which nodes wait")
        return self.head.spec.binding.timed

    @property
    def known_timed(self) -> Sequence[TimedNode]:
        """The nodes in `timed`; empty if they are unknown."""
        return () if isinstance(self.timed, Unknown) else self.timed

    @cached_property
    def topics(self) -> AbstractSet[str]:
        """The topics that the job reads. Its feed may have more."""
        return topics_read(self.head.spec.binding)

    @property
    def follows_watermark(self) -> bool:
        """Whether the feed's watermark advances the clocks of the job in addition to the records."""
        return self.head.spec.binding.semantics.get("stream_time_from") == StreamTimeFrom.WATERMARK.value

    @cached_property
    def newest(self) -> Mapping[TopicPartition, int]:
        """Maps each topic-partition to the time of its newest landed record, even if no run has processed this record."""
        ranges = self.last_landing.ranges.items() if self.last_landing else ()
        return {tp: landed.max_timestamp for tp, landed in ranges if landed.max_timestamp >= 0}

    def newest_read(self, timed: TimedNode, partition: int) -> int:
        """Return the time of a partition's newest record in all logs that a node's task reads; `UNKNOWN` without records."""
        return max((time for tp, time in self.newest.items() if timed.reads(tp, partition)), default=UNKNOWN)

    @cached_property
    def waits_for(self) -> Mapping[TopicPartition, int] | Unknown:
        """The topic-partitions for which the last landing's watermark waits, each with the time of its newest record.

        The watermark waits neither for idle topic-partitions nor for logs that the feed no longer has. The result is empty if
        something else determines the watermark: only `lag`, the job that makes the feed's records, or `land --watermark`.
        """
        landing, rules = self.last_landing, self.rules
        if landing is None or not self.newest:
            return {}
        if isinstance(rules, Unknown):
            return rules
        present = {
            tp: time for tp, time in sorted(self.newest.items()) if tp.topic in rules.logs and tp not in landing.idle
        }
        least = min(present.values(), default=UNKNOWN)
        if not least - rules.lag_ms <= landing.watermark_ms < max(self.newest.values()) - rules.lag_ms:
            return {}
        return {tp: time for tp, time in present.items() if time == least}

    def seconds_of(self, run: CommittedRun) -> float | None:
        """Return the seconds from a run's plan to its commit; None if the time of the plan is not known."""
        planned = self.planned_at.get(run.spec.run)
        if planned is None or not planned <= run.recorded_at:
            return None
        return (run.recorded_at - planned) / 1000


def topics_read(binding: JobBinding) -> set[str]:
    """Return the topics that a job reads."""
    return {topic for part in binding.topology for topic in topics_of(part)}


def not_taken(feed: Feed, last_epoch: int) -> range:
    """Return the numbers of the landings that a branch has not processed.

    ``last_epoch``: the last landing that it has processed.
    """
    return range(last_epoch + 1, len(feed.landings) + 1)


def held_records(feed: Feed, topics: Collection[str] | None = None, *, through: int | None = None) -> list[Held]:
    """Return the landed records that the feed's watermark holds back, in the given topics, or in all topics if None.

    ``through``: the number of the landing as of which to count; by default the last landing.
    """
    landing = feed.landings[(through or len(feed.landings)) - 1] if feed.landings else None
    return [
        Held(*tp, landed.end - landed.release, landed.max_timestamp)
        for tp, landed in sorted(landing.ranges.items() if landing else ())
        if landed.end > landed.release and (topics is None or tp.topic in topics)
    ]


def records_from_feed(binding: JobBinding, consumed: Mapping[str, int]) -> int:
    """Return how many records of its feed a run processed. ``consumed``: the number of processed records by topic."""
    # A record in an internal topic was made from a record of the feed. Counting it would count that record twice.
    written = (node["sink"] for part in binding.topology for node in part["nodes"] if "sink" in node)
    internal = {topic for topic in written if OUTPUT + topic not in binding.tables}
    return sum(records for topic, records in consumed.items() if topic not in internal)


def records_of(run: CommittedRun) -> int:
    """Return how many records of its feed a run processed."""
    return records_from_feed(run.spec.binding, run.commit.consumed)


def rows_by_output(commit: Commit) -> dict[str, int]:
    """Return the number of rows that a run added, by output topic."""
    return {
        target.removeprefix(OUTPUT): total.rows for target, total in commit.targets.items() if target.startswith(OUTPUT)
    }


def rows_of(runs: Iterable[CommittedRun]) -> Counter[str]:
    """Return the number of rows that runs together added, by output topic."""
    rows = Counter[str]()
    for run in runs:
        rows.update(rows_by_output(run.commit))
    return rows


def fewer_rows(before: Counter[str], after: Counter[str]) -> dict[str, list[int]]:
    """Return ``[rows before, rows after]`` for each output that has fewer rows after than before."""
    return {output: [rows, after[output]] for output, rows in before.items() if after[output] < rows}


def dropped_by_reason(metrics: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return how many records a run dropped, by kind and then by reason."""
    rows = list(metrics)
    dropped = {kind: sum_by_reason(rows, name) for name, kind in DROPS.items()}
    return {kind: reasons for kind, reasons in dropped.items() if reasons}
