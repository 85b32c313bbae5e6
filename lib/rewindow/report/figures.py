"""The figures of a report. Times are epoch milliseconds in UTC, None if unknown; durations are milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunFigures:
    """A run. ``seconds`` passed between its plan and its commit. ``dropped`` counts by kind; None if not read."""

    run: str
    first_epoch: int
    last_epoch: int
    records: int
    rows: int
    watermark_ms: int | None
    committed_at_ms: int | None
    seconds: float | None
    is_final: bool
    changed_code: bool
    dropped: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """Records that one reason kept out of the results. ``where`` is a node, a store, or the feed.

    ``share``: the part of the records; None for a node that counts a record once for each window that it was late for.
    """

    kind: str
    where: str
    reason: str
    records: int
    share: float | None


@dataclass(frozen=True, slots=True)
class Expected:
    """The result of an expectation in a run. ``became``: ``met``, ``warned``, ``on hold`` or ``accepted``."""

    run: str
    output: str
    name: str
    became: str
    observed: str
    expected: str
    examples: Sequence[str]


@dataclass(frozen=True, slots=True)
class Bucket:
    """Records that needed more grace than the bucket before, and at most ``up_to_ms``; None: no upper bound."""

    up_to_ms: int | None
    records: int


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late the records of a windowed node were.

    ``records`` reached the node, at most ``largest_ms`` behind its clock. ``buckets``: those that arrived after the
    end of their last window, by the smallest grace with which that window takes them; ``needed_ms`` is the largest.
    ``late`` counts drops: those of records if ``counts_records``, else one for each window that a record was late for.
    """

    node: str
    windows: str
    grace_ms: int | None
    records: int
    mean_ms: float
    largest_ms: int
    late: int
    counts_records: bool
    buckets: Sequence[Bucket]
    needed_ms: int

    @property
    def in_time(self) -> int:
        """Records that needed no grace."""
        return self.records - sum(bucket.records for bucket in self.buckets)


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """Results of one window that are not final. The store's clock in ``partitions`` has not reached ``closes_at_ms``.

    ``window`` is None for results that `until_time_limit` holds, and for the records of a join that wait: these are all in one,
    with ``waits_for`` and the times at which the first and the last of them are due.
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


@dataclass(frozen=True, slots=True)
class OpenWindows:
    """All results that are not final, and the windows that close first. ``results`` is None where stores were not read."""

    results: int
    windows: int
    shown: Sequence[OpenWindow]
    not_read: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of one task after a run, how often each called punctuators during the run, and the time that the run covers."""

    run: str
    committed_at_ms: int | None
    stream_time_ms: int | None
    wall_clock_ms: int | None
    stream_calls: int
    wall_calls: int
    simulated_ms: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule: the node, its clock, its interval, and when it is due next in the partition that is due first."""

    node: str
    clock: str
    every_ms: int
    due_ms: int | None
    partitions: int
    calls: int


@dataclass(frozen=True, slots=True)
class StoreSize:
    """A store: its kind, entries (None if it was not read), and the changelog's rows and bytes that selected runs wrote."""

    store: str
    kind: str
    keys: int | None
    rows: int
    bytes: int
    last_run: str | None


@dataclass(frozen=True, slots=True)
class StepCost:
    """A step of the last ``runs`` of which its times are known; ``waiting_seconds`` forecasts it for what waits now."""

    step: str
    runs: int
    median_seconds: float
    seconds: float
    waiting_seconds: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """Time from plan to commit, and a forecast: fixed seconds of a run, and seconds for each million records.

    ``fixed_seconds`` is None if the runs do not suffice for a forecast. ``waiting_seconds`` forecasts what waits now,
    ``all_seconds`` one replay of all records.
    """

    runs: int
    seconds: float
    records: int
    median_seconds: float
    fixed_seconds: float | None
    seconds_per_million: float | None
    waiting_seconds: float | None
    all_seconds: float | None
    steps: Sequence[StepCost] = ()


@dataclass(frozen=True, slots=True)
class Digest:
    """What a run wrote to one table: the digest of its rows does not depend on files, cluster or time."""

    target: str
    table: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class Held:
    """Records of a topic-partition that are landed but held back by the feed's watermark."""

    topic: str
    partition: int
    records: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a branch is. ``waiting_*``: landed, not yet replayed. ``slowest`` names what the watermark waits for."""

    runs: int
    first_epoch: int
    last_epoch: int
    records: int
    rows: int
    watermark_ms: int | None
    committed_at_ms: int | None
    is_sealed: bool
    waiting_landings: int
    waiting_records: int
    landed_through_ms: int | None
    slowest: Sequence[str]
    held: Sequence[Held]
    lagging: Mapping[str, int]
