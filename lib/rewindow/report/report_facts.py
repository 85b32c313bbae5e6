"""The contents of a report, as plain values. Times are epoch ms in UTC, None if unknown. Durations are in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rewindow.control.health.holds import Hold
from rewindow.control.health.inputs import Held
from rewindow.control.health.late_and_dropped_records import Drop, Lateness
from rewindow.control.health.waiting_results import OpenWindows
from rewindow.errors import VerdictMessage


class Level(StrEnum):
    """The importance of a sentence of the verdict."""

    GOOD = "good"
    NOTE = "note"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class RunFigures:
    """A run. ``seconds`` is the time from its plan to its commit. ``dropped``: records by kind; None if they were not read."""

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
    """The result of an expectation in a run. ``became`` is ``met``, ``warned``, ``on hold`` or ``accepted``."""

    run: str
    output: str
    name: str
    became: str
    observed: str
    expected: str
    examples: Sequence[str]


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of the task that is furthest behind after a run.

    ``stream_calls`` and ``wall_calls``: how often each clock called punctuators during the run, in all tasks. ``simulated_ms``:
    the time that the run simulated.
    """

    run: str
    committed_at_ms: int | None
    stream_time_ms: int | None
    wall_clock_ms: int | None
    stream_calls: int
    wall_calls: int
    simulated_ms: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule: its node, its clock, its interval, and the earliest time in any partition at which it is due next."""

    node: str
    clock: str
    every_ms: int
    due_ms: int | None
    partitions: int
    calls: int


@dataclass(frozen=True, slots=True)
class StoreSize:
    """A store: its kind and number of entries (None if it was not read).

    ``rows`` and ``bytes`` are what the selected runs wrote to its changelog.
    """

    store: str
    kind: str
    keys: int | None
    rows: int
    bytes: int
    last_run: str | None


@dataclass(frozen=True, slots=True)
class StepCost:
    """The time that one step took in those of the last ``runs`` runs whose times are known.

    ``waiting_seconds`` is a forecast of the step's time for the records that wait now.
    """

    step: str
    runs: int
    median_seconds: float
    seconds: float
    waiting_seconds: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """The time from plan to commit, and a forecast: fixed seconds of a run, and seconds for each million records.

    ``fixed_seconds`` is None if there are too few runs for a forecast. ``waiting_seconds`` is the forecast for the records that
    wait now, ``all_seconds`` the forecast for one replay of all records.
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
    """A digest of a run's rows in one table. It depends only on the rows, not on files, cluster or time."""

    target: str
    table: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a branch is. ``waiting_*``: what is not replayed yet.

    ``slowest``: the partitions for which the feed's watermark waits.
    """

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
    """A sentence of the verdict. The first sentence is the headline."""

    level: Level
    code: str
    text: str

    @classmethod
    def of(cls, level: Level, message: VerdictMessage) -> Sentence:
        """Return a message as a sentence."""
        return cls(level, message.code, message)


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of the previous run and of the last run."""

    what: str
    before: float | None
    now: float | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between the previous run and the last run.

    ``since``: the previous run. ``lines``: changes of code and settings. ``accepted``: the changes that the last run's plan
    accepted.
    """

    since: str | None
    lines: Sequence[str]
    accepted: Sequence[str]
    figures: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Replaced:
    """The effect of a promotion: the names of the runs before and after, changes of code and settings, and rows by output."""

    before: str
    now: str
    lines: Sequence[str]
    rows: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Sample:
    """A key whose rows differ between two tables. Key and rows are texts."""

    key: str
    first: Sequence[str]
    second: Sequence[str]


@dataclass(frozen=True, slots=True)
class OutputDiff:
    """The differences of one output between two branches: numbers of keys, and samples."""

    output: str
    equal: int
    different: int
    only_first: int
    only_second: int
    samples: Sequence[Sample] = ()


@dataclass(frozen=True, slots=True)
class BranchDiff:
    """A comparison of two branches. It covers the epochs that both published after their last common run (``shared``).

    ``extent``: what was compared, in words; None if nothing was. ``left_out``: final runs whose rows were not compared.
    ``on_hold``: the first run on hold of each branch. The rows of such a run and of later runs were not compared.
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
    """A forecast of the next run, in words. ``refused``: the error with which the run would be refused.

    ``pending``: an unfinished attempt.
    """

    next_run: str
    refused: str | None = None
    pending: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The first row of a target that differs between a run and its replay."""

    run: str
    target: str
    text: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The runs that were replayed for this report, and the rows that differed. ``checked`` is empty if no run was replayed."""

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
