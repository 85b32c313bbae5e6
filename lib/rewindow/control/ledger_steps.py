"""Steps of commands.

Only `update` adds rows to a ledger: read it, decide, append, and repeat if another process appended first.

`write_snapshot` and `publish_all` are steps of both runs and `gc`.

A step machine is a generator that yields the name of each step before the step, so a caller can stop between steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, Protocol, Self, TypeVar

from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.retention import is_due
from rewindow.errors import NotNowError, StorageError
from rewindow.storage.progress import progressed

_Result = TypeVar("_Result")


class Step(str):
    """The name of a step, with context for observers: ``known`` holds the run and other details.

    ``decides``: whether the step appends a decision to a ledger. Even if the command ends after such a step, the decision
    stays.
    """

    __slots__ = ("decides", "known")

    decides: bool
    known: dict[str, Any]

    def __new__(cls, name: str, *, decides: bool = False, **known: Any) -> Self:
        """Return a step that equals its name as a plain string."""
        step = super().__new__(cls, name)
        step.decides, step.known = decides, known
        return step


def drive(machine: Generator[str, None, _Result], on_step: Callable[[str], None] | None = None) -> _Result:
    """Run a step machine to its end and return its result. ``on_step`` gets each step before it is done."""
    while True:
        try:
            step = next(machine)
        except StopIteration as end:
            result: _Result = end.value
            return result
        progressed()
        if on_step is not None:
            on_step(step)


_State_co = TypeVar("_State_co", covariant=True)
_Decision = TypeVar("_Decision")

_ATTEMPTS = 20
PLANS = "plan"
"""The step whose row only says what an attempt is going to do. Without a later decision row, this row has no effect."""


class Ledger(Protocol[_State_co]):
    """The ledgers of jobs, or of feeds, by name."""

    def state(self, name: str) -> _State_co:
        """Return the state into which the rows of a job's or feed's ledger fold now."""
        ...

    def append(self, name: str, *rows: LedgerRow) -> bool:
        """Append rows in one commit. Return False if another process has already appended rows with these numbers."""
        ...


def update(
    ledger: Ledger[_State_co], name: str, step: str, decide: Callable[[_State_co], _Decision]
) -> Generator[str, None, _Decision]:
    """Append what ``decide`` returns for the current state, a row or a list of rows, and return it.

    If another process appended first, decide again on the new state. If ``decide`` returns anything else, return it without an
    append. Yield ``step`` before each attempt. Raises what ``decide`` raises, and `NotNowError` (75) if other processes
    appended first each time.
    """
    for _ in range(_ATTEMPTS):
        yield Step(step, decides=step != PLANS, **getattr(step, "known", {}))
        # A decision holds only for the state on which it was made, so each attempt decides again.
        decision = decide(ledger.state(name))
        rows = [decision] if isinstance(decision, LedgerRow) else decision
        if not isinstance(rows, list) or ledger.append(name, *rows):
            return decision
    raise NotNowError(
        "ledger-busy",
        "the ledger of {name} is busy: other processes keep appending to it. Run the command again when they are done",
        name=name,
    )


class SnapshotTables(Ledger[JobState], Protocol):
    """What snapshots need from a job's tables."""

    def publish(self, job: str, state: JobState, branch: str) -> Iterator[str]:
        """Make the commits of the ledger that a branch's tables lack; yield the name of each commit before making it."""
        ...

    def stage_snapshot(self, state: JobState, run: CommittedRun) -> LedgerRow:
        """Stage the rows of a snapshot; return the SNAPSHOT row that names them."""
        ...


def write_snapshot(job: str, run: CommittedRun, tables: SnapshotTables, every: int) -> Generator[str, None, bool]:
    """Stage the snapshot of the state after a run and append its SNAPSHOT row; return whether the row was appended."""

    def stage(state: JobState) -> LedgerRow | None:
        """Stage the rows again before each append, because the rows contain the number of the SNAPSHOT row."""
        return tables.stage_snapshot(state, run) if is_due(state, run, every) else None

    try:
        try:
            row = yield from update(tables, job, f"snapshot {run.spec.name}", stage)
        except StorageError:
            # Another process may have committed a run that the changelogs lack until it is published.
            yield from publish_all(job, tables)
            row = yield from update(tables, job, f"snapshot {run.spec.name}", stage)
    except NotNowError:
        # The next call writes the snapshot.
        return False
    return row is not None


def publish_all(job: str, tables: SnapshotTables) -> Iterator[str]:
    """Make the commits that the tables of all branches lack; yield the name of each commit before making it."""
    state = tables.state(job)
    for branch in state.branches:
        yield from tables.publish(job, state, branch)
