"""What a report says, as plain values. Times are epoch milliseconds in UTC, None if unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rewindow.control.plan.explain_holds import Hold
from rewindow.report.figures import (
    Clocks,
    Cost,
    Digest,
    Drop,
    Expected,
    Lateness,
    OpenWindows,
    Progress,
    RunFigures,
    Schedule,
    StoreSize,
)


class Level(StrEnum):
    """How much a sentence of the verdict matters."""

    GOOD = "good"
    NOTE = "note"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the verdict. The first one is the headline."""

    level: Level
    text: str


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
