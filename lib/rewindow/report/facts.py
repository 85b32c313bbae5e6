"""What a report says, as plain values. Times are epoch milliseconds in UTC, None if unknown; durations are milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rewindow.control.health.holds import Hold
from rewindow.control.health.inputs import Held
from rewindow.control.health.lost_records import Drop, Lateness
from rewindow.control.health.waiting_results import OpenWindows
from rewindow.errors import VerdictMessage


class Level(StrEnum):
    """How much a sentence of the verdict matters."""

    GOOD = "good"
    NOTE = "note"
    WARNING = "warning"
    BAD = "bad"


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


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the verdict. The first one is the headline."""

    level: Level
    code: str
    text: str

    @classmethod
    def of(cls, level: Level, message: VerdictMessage) -> Sentence:
        """Return a message as a sentence."""
        return cls(level, message.code, message)


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of the last run beside that of the run before."""

    what: str
    before: float | None
    now: float | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since the previous run: code and settings as lines, figures, and what the plan had accepted."""

    since: str | None
    lines: Sequence[str]
    accepted: Sequence[str]
    figures: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a promotion replaced: the names of the runs before and now, changes of code and settings, and rows by output."""

    before: str
    now: str
    lines: Sequence[str]
    rows: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Sample:
    """A key whose rows differ between two tables, as text."""

    key: str
    first: Sequence[str]
    second: Sequence[str]


@dataclass(frozen=True, slots=True)
class OutputDiff:
    """How one output differs between two branches: numbers of keys, and samples."""

    output: str
    equal: int
    different: int
    only_first: int
    only_second: int
    samples: Sequence[Sample] = ()


@dataclass(frozen=True, slots=True)
class BranchDiff:
    """A comparison of two branches, over the epochs that both published after the run that they ``shared``.

    ``extent``: what was compared, in words; None if nothing was. ``left_out``: final runs whose rows were not compared.
    ``on_hold``: for each branch the run on hold, if any, whose rows and those of later runs are not compared.
    """

    first: str
    second: str
    shared: str | None
    epochs: tuple[int, int] | None
    extent: str | None
    code: Sequence[str]
    outputs: Sequence[OutputDiff]
    on_hold: Sequence[Hold] = ()
    left_out: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the next run would do. ``refused`` is the error that it would end with, ``pending`` an attempt that did not finish."""

    next_run: str
    refused: str | None = None
    pending: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The first row of a target that the replay of a run made differently."""

    run: str
    target: str
    text: str


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether runs were replayed for this report, and what differed. ``checked`` is empty if none was."""

    checked: Sequence[str] = ()
    differences: Sequence[Difference] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a job's branch, or of one of its runs."""

    job: str
    branch: str
    feed: str
    selection: str
    made_at_ms: int
    version: str
    verdict: Sequence[Sentence]
    progress: Progress
    outlook: Outlook
    verification: Verification
    runs: Sequence[RunFigures]
    detailed_runs: int
    drops: Sequence[Drop]
    lateness: Sequence[Lateness]
    open_windows: OpenWindows
    clocks: Sequence[Clocks]
    schedules: Sequence[Schedule]
    stores: Sequence[StoreSize]
    changes: Changes
    cost: Cost
    chain: str
    ledger: str
    digests: Sequence[Digest]
    diff: BranchDiff | None = None
    expectations: Sequence[Expected] = ()
    replaced: Replaced | None = None
