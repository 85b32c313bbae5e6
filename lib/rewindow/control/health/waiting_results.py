"""Results that wait for the clock of a node, the reasons why the clock has not advanced further, and the wording of both.

The task reports of the last run contain the clocks and the numbers of buffered results in suppresses. Windows and waiting
records are in stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from rewindow.contracts.instants import instant
from rewindow.control.health.inputs import Columns, Inputs, Unknown, not_taken
from rewindow.control.health.phrases import command_words, counted
from rewindow.errors import FindingMessage
from rewindow.streams.duration import in_words
from rewindow.streams.record import UNKNOWN, TopicPartition, known_time
from rewindow.streams.serde.schema import PARTITION, has_bounds
from rewindow.streams.timing import TimedNode, holding_nodes

MOST_SHOWN = 20
"""At most this many windows are shown, the first to close first. Later windows are only counted."""
_MOST_NAMED = 5
"""The most partitions that a message names."""
BUFFER_TIME = "_buffer_time"
"""The column of a suppress buffer's changelog with the time from which the time limit counts."""
RECORD_TIME = "_record_time"
"""The column of a join store's changelog with the time of the record that waits."""


class Cause(StrEnum):
    """Why the clock of a node has not reached a time."""

    LATER_RUNS = "later_runs"
    """The state shown belongs to an earlier run than the last. Later runs processed later records."""
    NOT_REPLAYED = "not_replayed"
    """Landings that advance the clock wait to be replayed."""
    NO_LATER_RECORD = "no_later_record"
    """No landed record has so late a time."""
    UPSTREAM_JOB = "upstream_job"
    """The feed's watermark stays below the watermark of the job whose output it lands, because that job may hold rows back."""
    LAG = "lag"
    """The `lag` of the feed keeps its watermark behind its newest record."""
    WATERMARK = "watermark"
    """Later records wait for the feed's watermark, which waits for a partition or was declared."""
    PARTITION = "partition"
    """Only records of the node's own partition advance the clock, and none of them has so late a time."""
    FILTERED = "filtered"
    """The partition has later records, but an operator before the node filters or changes them."""
    UNKNOWN = "unknown"
    """Data that would show the cause was not read."""


class Reason(NamedTuple):
    """A cause, and a text that says what holds the clock back and what advances it."""

    cause: Cause
    text: str


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """Waiting results of one window, which are not final yet.

    They become final when the store's clock in ``partitions`` reaches ``closes_at_ms``.

    ``window`` is None for results that `until_time_limit` holds. One object also stands for all waiting records in the store of
    a join. Then ``window`` is None, and ``waits_for`` says what the records wait for. ``closes_at_ms`` is the time at which the
    first of these records is due, and ``last_at_ms`` the time at which the last one is due.
    """

    store: str
    window: tuple[int, int] | None
    closes_at_ms: int
    clock_ms: int | None
    keys: int
    partitions: Sequence[int]
    why: str
    waits_for: str | None = None
    last_at_ms: int | None = None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class OpenWindows:
    """How many results are not final, in how many windows, and the windows that close first (``shown``).

    ``not_read`` names the stores that were not read. ``unknown`` is the reason if it is unknown which nodes hold results.
    """

    results: int
    windows: int
    shown: Sequence[OpenWindow]
    not_read: Sequence[str] = ()
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class Stalled:
    """Results of a node that wait for partitions without new records. No run and no landing of other partitions makes them final.

    ``results`` is the number of results, None if the node does not report it. ``newest_ms`` maps each partition to the time of
    its newest record (epoch ms). ``behind_ms`` is how far the earliest of these times is behind the feed's newest record. With
    ``is_filtered``, a partition has newer records, but an operator before the node filters or changes them.
    """

    node: str
    results: int | None
    newest_ms: Mapping[str, int]
    behind_ms: int
    fix: str
    is_filtered: bool

    @property
    def since_ms(self) -> int:
        """The earliest time in ``newest_ms``."""
        return min(self.newest_ms.values())

    @property
    def what(self) -> str:
        """Which results wait for which partitions, as a sentence without its full stop."""
        return self.message()

    def message(self, beyond: str = "") -> FindingMessage:
        """Return which results wait for which partitions, as a message. ``beyond``: words on how far a limit is exceeded."""
        count = "results" if self.results is None else counted(self.results, "result")
        shown = [*self.newest_ms.items()][:_MOST_NAMED]
        more = f" and {len(self.newest_ms) - len(shown)} more" if len(self.newest_ms) > len(shown) else ""
        since = "no record after {} reached it" if self.is_filtered else "silent since {}"
        if len({time for _, time in shown}) > 1:
            named = ", ".join(f"{name} ({since.format(instant(time))})" for name, time in shown) + more
        else:
            of = "of which " if self.is_filtered else ""
            named = f"{', '.join(name for name, _ in shown)}{more}, {of}{since.format(instant(self.since_ms))}"
        return FindingMessage(
            "results-wait-for-partitions",
            "{results} of {node} {wait} for {partitions}{beyond}",
            results=count,
            node=self.node,
            wait="waits" if self.results == 1 else "wait",
            partitions=named,
            beyond=beyond,
        )

    def __str__(self) -> str:
        """Return which results wait and what makes them final, as sentences without the last full stop."""
        return f"{self.what}. {self.fix}"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "node": self.node,
            "results": self.results,
            "partitions": list(self.newest_ms),
            "since_ms": self.since_ms,
            "behind_ms": self.behind_ms,
            "fix": self.fix,
            "what": self.what,
        }


def clocks_of(inputs: Inputs, timed: TimedNode) -> dict[int, int]:
    """Return the node's clock in each partition; empty if the task reports are not known."""
    return {
        partition: state.get("node_times", {}).get(timed.node, UNKNOWN)
        for (sub_topology, partition), state in inputs.known_tasks.items()
        if sub_topology == timed.sub_topology
    }


def stalled(inputs: Inputs) -> Sequence[Stalled] | Unknown:
    """Return the results that only new records of their own partition make final. Other runs and landings do not.

    Stores are not read, so the times of single results are unknown. A partition's results are returned only if the feed has
    reached a time at which all of them would be final.
    """
    if not inputs.runs or inputs.last_landing is None or inputs.head.spec.final or not inputs.is_newest:
        return []
    timed = inputs.timed
    if isinstance(timed, Unknown):
        return timed
    holding = [*holding_nodes(timed)]
    if isinstance(inputs.tasks, Unknown):
        return inputs.tasks if holding else []
    waiting: dict[tuple[str, bool], list[_Partition]] = {}
    for node in holding:
        for partition, clock in sorted(clocks_of(inputs, node).items()):
            held = _stalled_in(inputs, node, partition, clock)
            if isinstance(held, Unknown):
                return held
            if held is not None:
                waiting.setdefault((node.node, held.by_feed), []).append(held)
    return [_stalled(inputs, node, partitions) for (node, _), partitions in waiting.items()]


class _Partition(NamedTuple):
    """Results of one partition, and the time of the partition's newest record that reached the node.

    ``by_feed``: the results wait because a partition holds back the feed's watermark. ``by_job``: they wait because only
    records of this partition advance the node's clock, and no record has advanced it far enough.
    """

    partition: TopicPartition
    newest_ms: int
    results: int | None
    is_filtered: bool
    by_feed: bool
    by_job: bool


def _stalled_in(inputs: Inputs, timed: TimedNode, partition: int, clock: int) -> _Partition | Unknown | None:
    """Return a node's results in one partition if only new records of some partition can make them final, otherwise None."""
    landing, newest = inputs.feed.landings[-1], max(inputs.newest.values(), default=UNKNOWN)
    results, final_ms = _results(inputs, timed, partition), timed.all_final_at(clock, inputs.head.commit.zone_ends)
    own_ms = _own_time(inputs, timed, partition, clock)
    if clock == UNKNOWN or own_ms is None or results == 0 or newest - landing.held_ms < final_ms:
        return None
    follows = inputs.will_follow or inputs.follows_watermark
    is_taken = len(inputs.feed.landings) == inputs.branch.last_epoch
    # The watermark may have passed `final_ms` while the newest records of this partition are still above it. No run processes
    # these records yet, so they cannot make the results final.
    is_held = landing.watermark_ms < final_ms or (not follows and is_taken and own_ms > landing.watermark_ms)
    by_job = not follows and own_ms < final_ms
    if not (is_held or by_job):
        return None
    if isinstance(inputs.rules, Unknown):
        return inputs.rules
    by_feed = is_held and bool(_waits_for(inputs))
    if newest - inputs.rules.lag_ms < final_ms or not (by_feed or by_job):
        return None
    named = TopicPartition(timed.topics[0] if timed.topics else timed.node, partition)
    return _Partition(named, own_ms, results, own_ms < inputs.newest_read(timed, partition), by_feed, by_job)


def _stalled(inputs: Inputs, node: str, waiting: Sequence[_Partition]) -> Stalled:
    by_feed = waiting[0].by_feed
    counts = [held.results for held in waiting if held.results is not None]
    results = sum(counts) if len(counts) == len(waiting) else None
    newest_ms = _waits_for(inputs) if by_feed else {held.partition: held.newest_ms for held in waiting}
    times = {f"{tp.topic}-{tp.partition}": newest_ms[tp] for tp in sorted(newest_ms)}
    fix = what_moves(inputs, by_feed=by_feed, by_job=any(held.by_job for held in waiting))
    is_filtered = not by_feed and any(held.is_filtered for held in waiting)
    behind_ms = max(inputs.newest.values()) - min(times.values())
    return Stalled(node, results, times, behind_ms, fix, is_filtered)


def _results(inputs: Inputs, timed: TimedNode, partition: int) -> int | None:
    """Return how many results a partition of a node holds; None if the node does not report it."""
    held: Mapping[str, int] = inputs.known_tasks.get((timed.sub_topology, partition), {}).get("held", {})
    return held.get(timed.store, 0) if timed.is_buffer else None


def _own_time(inputs: Inputs, timed: TimedNode, partition: int, clock: int) -> int | None:
    """Return the time to which a partition's landed records advance a node's clock; None if this is known only after a run."""
    if not timed.sub_topology:
        newest = inputs.newest_read(timed, partition)
        # Runs have processed all records up to the watermark, so these records do not advance the clock again. That also holds
        # for records that an operator before the node filtered.
        return max(clock, newest) if newest > inputs.head.commit.watermark_ms else clock
    return None if len(inputs.feed.landings) > inputs.branch.last_epoch else clock


def _waits_for(inputs: Inputs) -> Mapping[TopicPartition, int]:
    return {} if isinstance(inputs.waits_for, Unknown) else inputs.waits_for


def why_open(inputs: Inputs, timed: TimedNode, closes_at: int, clocks: Mapping[int, int]) -> Reason:
    """Return why the node's clock has not reached ``closes_at``. ``clocks`` maps each partition to its clock."""
    if isinstance(inputs.tasks, Unknown):
        return Reason(Cause.UNKNOWN, f"The clock of {timed.node} is unknown: {inputs.tasks.reason}")
    partition, clock = min(clocks.items(), key=lambda item: item[1])
    if clock == UNKNOWN:
        state = f"No record has reached {timed.node} in partition {partition} yet"
    else:
        state = f"The clock of {timed.node} in partition {partition} is at {instant(clock)}, {in_words(closes_at - clock)} short"
    cause, why = _held_back(inputs, timed, partition, closes_at)
    return Reason(cause, f"{state}. {why}")


def _held_back(inputs: Inputs, timed: TimedNode, partition: int, closes_at: int) -> Reason:
    if not inputs.is_newest:
        return Reason(Cause.LATER_RUNS, "Later runs have taken later records")
    landings, waiting = inputs.feed.landings, not_taken(inputs.feed, inputs.head.spec.input.last)
    if waiting and landings[-1].watermark_ms >= closes_at:
        reaching = _reaching(inputs, timed, partition, closes_at)
        if reaching:
            reaching_words = (
                f"{counted(reaching, 'landing')} that {'reaches it waits' if reaching == 1 else 'reach it wait'}"
            )
            command = f"rewindow run {command_words(inputs.head.spec.job, inputs.branch.name)}"
            return Reason(Cause.NOT_REPLAYED, f"{reaching_words} to be replayed: `{command}`")
    if not inputs.newest or (timed.sub_topology and not inputs.follows_watermark):
        return Reason(Cause.NO_LATER_RECORD, "It advances with later records")
    if isinstance(inputs.rules, Unknown):
        return Reason(Cause.UNKNOWN, f"What the feed's watermark waits for is unknown: {inputs.rules.reason}")
    if max(inputs.newest.values()) < closes_at:
        return _not_landed(inputs)
    mine = inputs.newest_read(timed, partition)
    by_watermark = _held_by_watermark(inputs, inputs.rules.lag_ms, mine, closes_at)
    return by_watermark or _held_by_partition(inputs, timed, partition, mine, closes_at)


def _reaching(inputs: Inputs, timed: TimedNode, partition: int, closes_at: int) -> int:
    """Return how many landings that no run has replayed advance a node's clock; 0 if it stays before ``closes_at`` anyway."""
    waiting = inputs.feed.landings[inputs.head.spec.input.last :]
    if timed.sub_topology or inputs.follows_watermark:
        return len(waiting)
    mine = [[landed for tp, landed in landing.ranges.items() if timed.reads(tp, partition)] for landing in waiting]
    if max((landed.max_timestamp for landed in mine[-1]), default=UNKNOWN) < closes_at:
        return 0
    return sum(any(landed.end > landed.start for landed in ranges) for ranges in mine)


def _not_landed(inputs: Inputs) -> Reason:
    """Return the reason that no landed record has so late a time, and why later records alone may not help."""
    none = f"No record that late has been landed: the newest one is at {instant(max(inputs.newest.values()))}"
    if not inputs.follows_watermark:
        return Reason(Cause.NO_LATER_RECORD, none)
    landing = inputs.feed.landings[-1]
    if landing.held_ms:
        below = f"{in_words(landing.held_ms)} below that of the job that makes its records, which may hold them back for so long"
        position = f"The feed's watermark is at {instant(landing.watermark_ms)}, {below}"
        return Reason(Cause.UPSTREAM_JOB, f"{none}. {position}")
    if waited := waited_for(inputs):
        later = f"Later ones alone do not advance the clock, because the feed's watermark {waited}"
        return Reason(Cause.WATERMARK, f"{none}. {later}. {what_moves(inputs, by_feed=True)}")
    return Reason(Cause.NO_LATER_RECORD, none)


def _held_by_watermark(inputs: Inputs, lag_ms: int, mine: int, closes_at: int) -> Reason | None:
    """Return why the feed's watermark holds back later records; None if the watermark is not what stops the clock.

    ``mine`` is the time of the newest record that advances the clock.
    """
    landing, waited = inputs.feed.landings[-1], waited_for(inputs)
    position = f"The feed's watermark is at {instant(landing.watermark_ms)}"
    if landing.held_ms and landing.watermark_ms < closes_at:
        held = f"the job that makes its records may hold them back for {in_words(landing.held_ms)}"
        return Reason(Cause.UPSTREAM_JOB, f"{position}, because {held}")
    if max(inputs.newest.values()) - lag_ms < closes_at:
        return Reason(Cause.LAG, f"The feed's watermark is `lag: {in_words(lag_ms)}` behind its newest record")
    if not (inputs.follows_watermark or mine >= max(closes_at, landing.watermark_ms + 1)):
        return None
    if not waited:
        return Reason(Cause.WATERMARK, f"{position}, and later records wait for it")
    return Reason(Cause.WATERMARK, f"The feed's watermark {waited}. {what_moves(inputs, by_feed=True)}")


def _held_by_partition(inputs: Inputs, timed: TimedNode, partition: int, mine: int, closes_at: int) -> Reason:
    """Return why records of a node's own partition do not advance its clock, in a job whose clocks only records advance."""
    if mine >= closes_at:
        cause = Cause.FILTERED
        why = (
            f"The newest record of partition {partition} is at {instant(mine)}, but did not reach {timed.node}: an operator "
            "before it filters or changes such records"
        )
    else:
        cause = Cause.PARTITION
        last = "and none was landed" if mine == UNKNOWN else f"the newest of which is at {instant(mine)}"
        why = f"Only records of partition {partition} advance it, {last}, while another partition is later"
    is_stuck = bool(_waits_for(inputs)) and inputs.feed.landings[-1].watermark_ms < closes_at
    return Reason(cause, f"{why}. {what_moves(inputs, by_feed=is_stuck, by_job=True)}")


def waited_for(inputs: Inputs) -> str:
    """Return the first partition for which the feed's watermark waits, as "waits for ..."; ``""`` if it waits for none."""
    for tp, newest_ms in _waits_for(inputs).items():
        return f"waits for {tp.topic}-{tp.partition}, whose newest record is at {instant(newest_ms)}"
    return ""


def watermark_sentence(inputs: Inputs) -> str:
    """Return why the feed's watermark holds back landed records, as sentences without the last full stop; ``""`` if unknown."""
    landing, rules = inputs.last_landing, inputs.rules
    if landing is None or isinstance(rules, Unknown):
        return ""
    position = f"The feed's watermark is at {instant(landing.watermark_ms)}"
    if waited := waited_for(inputs):
        return f"{position}, which {waited}. {what_moves(inputs, by_feed=True)}"
    return f"{position}, `lag: {in_words(rules.lag_ms)}` behind its newest record" if rules.lag_ms else ""


def what_moves(inputs: Inputs, *, by_feed: bool = False, by_job: bool = False) -> str:
    """Return how results that wait for a partition without records become final, as sentences without the last full stop.

    ``by_feed``: the feed's watermark waits for this partition. ``by_job``: the job's clock follows only records of this
    partition.
    """
    steps = []
    if by_feed:
        feed = inputs.feed.definition.feed
        steps.append(
            "`max_task_idle: 2h`, or another duration, in the feed's file lets its watermark pass a partition that has been "
            f"silent for that long, from the next `rewindow land {feed}` on"
        )
    if by_job:
        steps.append(
            "`semantics: {stream_time_from: watermark}` in the job's file lets the feed's watermark advance its clock, from the "
            "next landing on. That is a change, which the next run takes with `--accept-changes`"
        )
    return ". ".join(steps)


_Group = dict[tuple[int, tuple[int, int] | None], list[int]]
"""Maps ``(closing time, window)`` to a list with the partition of each key of the window."""


def open_windows(inputs: Inputs) -> OpenWindows:
    """Return the results that a final run would emit, grouped by window, and the records that wait in joins."""
    if inputs.head.spec.final:
        return OpenWindows(0, 0, ())
    if isinstance(inputs.timed, Unknown):
        return OpenWindows(sum(inputs.head.commit.held.values()), 0, (), unknown=inputs.timed.reason)
    results, windows, shown, joins, not_read = 0, 0, [], [], []
    for timed in holding_nodes(inputs.timed):
        columns = inputs.stores.get(timed.store)
        if columns is None:
            results += inputs.head.commit.held.get(timed.store, 0)
            not_read.append(timed.store)
            continue
        clocks = clocks_of(inputs, timed)
        groups: _Group = {}
        for partition, window, closes_at in _entries(inputs, timed, columns, clocks):
            groups.setdefault((closes_at, window), []).append(partition)
        results += sum(len(partitions) for partitions in groups.values())
        windows += len(groups)
        soonest = sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or ()))[:MOST_SHOWN]
        shown += [_open_window(inputs, timed, *window_and_node, partitions) for window_and_node, partitions in soonest]
    for join in (node for node in inputs.timed if node.is_join):
        columns = inputs.stores.get(join.store)
        if columns is None:
            not_read.append(join.store)
        elif waiting := _in_join(inputs, join, columns):
            results += waiting.keys
            joins.append(waiting)
    shown = [*sorted(shown, key=_closing)[:MOST_SHOWN], *joins]
    return OpenWindows(results, windows, sorted(shown, key=_closing), not_read)


def _closing(window: OpenWindow) -> tuple[int, str]:
    return window.closes_at_ms, window.store


def _open_window(
    inputs: Inputs, timed: TimedNode, closes_at: int, window: tuple[int, int] | None, keys: Sequence[int]
) -> OpenWindow:
    """Return one window of a node. ``keys`` is a list with the partition of each key of the window."""
    clocks, partitions = clocks_of(inputs, timed), sorted(set(keys))
    own = {partition: clocks.get(partition, UNKNOWN) for partition in partitions}
    cause, why = why_open(inputs, timed, closes_at, own)
    clock = known_time(min(own.values()))
    return OpenWindow(timed.store, window, closes_at, clock, len(keys), partitions, why, cause=cause)


def _in_join(inputs: Inputs, join: TimedNode, columns: Columns) -> OpenWindow | None:
    """Return the records that wait in a store of a join; None if no record waits."""
    due = sorted(
        (join.closes_at(time), partition)
        for time, partition in zip(columns.get(RECORD_TIME, ()), columns.get(PARTITION, ()), strict=True)
    )
    if not due:
        return None
    (first_at, first_partition), (last_at, _) = due[0], due[-1]
    clock = clocks_of(inputs, join).get(first_partition, UNKNOWN)
    cause, why = why_open(inputs, join, first_at, {first_partition: clock})
    return OpenWindow(
        join.store,
        None,
        first_at,
        known_time(clock),
        len(due),
        sorted({partition for _, partition in due}),
        why,
        waits_for="a partner" if join.store != join.node else "the grace",
        last_at_ms=last_at,
        cause=cause,
    )


def _entries(
    inputs: Inputs, timed: TimedNode, columns: Columns, clocks: Mapping[int, int]
) -> Iterator[tuple[int, tuple[int, int] | None, int]]:
    """Yield the partition, window and closing time of each entry that is not final."""
    partitions, keys = columns.get(PARTITION, ()), inputs.head.spec.binding.keys[timed.store]
    count = len(partitions)
    nothing: Sequence[Any] = [None] * count
    starts, ends = (columns.get(name, nothing) for name in keys[-2:]) if has_bounds(keys) else (nothing, nothing)
    times = columns.get(BUFFER_TIME, ends) if timed.is_buffer else ends
    nulls = columns.get("_is_null", [False] * count)
    for partition, start, end, time, is_null in zip(partitions, starts, ends, times, nulls, strict=True):
        closes_at = timed.closes_at(time)
        is_due = closes_at <= clocks.get(partition, UNKNOWN)
        if (timed.sends_nulls or not is_null) if timed.is_buffer else not is_due:
            yield partition, None if start is None else (start, end), closes_at
