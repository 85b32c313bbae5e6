"""Keep a job small: snapshots in place of long changelogs, and nothing of what no branch stands on. Safe beside runs.

Each step is decided on what the ledger says now, and is durable by itself: killed anywhere, call it again. Nothing that is
true changes, and no run is fenced.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rewindow.control.ledger import update
from rewindow.control.plan.branches import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.retention import EVERY, decide_forget, due_snapshots
from rewindow.control.run import Tables
from rewindow.errors import NotNowError, StorageError

Steps = Generator[str, None, "Collected"]


class Garbage(Protocol):
    """What can be deleted."""

    @property
    def folder(self) -> str:
        """Where it lies."""
        ...

    @property
    def path(self) -> str:
        """Where it lies in the folder."""
        ...

    @property
    def bytes(self) -> int:
        """Its size."""
        ...

    @property
    def why(self) -> str:
        """Why it can go."""
        ...


class OrphanFiles(Protocol):
    """Files that can be deleted, and a ledger whose files can be merged."""

    def garbage(self, keep_ms: int) -> Iterator[Garbage]:
        """Return what can be deleted now."""
        ...

    def delete(self, garbage: Any) -> None:
        """Delete it."""
        ...

    def compact_ledger(self) -> None:
        """Merge the ledger's files."""
        ...


class JobGc(OrphanFiles, Protocol):
    """The files of one job; see `tables.delta.gc_job`."""

    def stage_snapshot(self, state: JobState, run: CommittedRun) -> LedgerRow:
        """Write the rows of a snapshot; return the row that makes them count."""
        ...

    def drop_reports(self) -> int:
        """Take the reports of dead attempts out of the journal; return how many."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What was deleted."""

    deleted: Sequence[Garbage] = field(default=())

    @property
    def bytes(self) -> int:
        """The size of what was deleted."""
        return sum(one.bytes for one in self.deleted)


@dataclass(frozen=True, slots=True)
class Collected(Removed):
    """What was done: the runs that got a snapshot, how many runs were forgotten, reports dropped, what was deleted."""

    snapshots: Sequence[str] = field(default=())
    forgotten: int = 0
    reports: int = 0


def collect(job: str, tables: Tables, gc: JobGc, *, before_ms: int, keep_ms: int, every: int = EVERY) -> Steps:
    """Write snapshots, forget what nothing needs, and delete what is left over.

    ``before_ms``: runs committed before it may be forgotten; ``keep_ms``: what left a table is deleted when it is so old.
    """
    yield from _publish_all(job, tables)
    made: list[str] = []
    for run in due_snapshots(tables.state(job), every):
        is_made = yield from _snapshot(job, run, tables, gc, every)
        made += [run.spec.name] if is_made else []
    yield from _publish_all(job, tables)
    forgotten = yield from update(tables, job, "forget", lambda state: decide_forget(state, before_ms))
    yield from _publish_all(job, tables)
    yield "reports"
    reports = gc.drop_reports()
    deleted = yield from remove_orphans(gc, keep_ms)
    count = len(forgotten.body["runs"]) if forgotten else 0
    return Collected(made, count, reports, deleted=deleted)


def remove_orphans(orphans: OrphanFiles, keep_ms: int) -> Generator[str, None, list[Garbage]]:
    """Delete what has been superfluous for ``keep_ms``, and merge the ledger's files; return what was deleted."""
    yield "remove orphans"
    deleted = []
    for one in orphans.garbage(keep_ms):
        orphans.delete(one)
        deleted.append(one)
    yield "ledger"
    orphans.compact_ledger()
    return deleted


def _snapshot(job: str, run: CommittedRun, tables: Tables, gc: JobGc, every: int) -> Generator[str, None, bool]:
    """Stage the snapshot of a run and append its row; return whether it is there."""

    def stage(state: JobState) -> LedgerRow | None:
        """Stage the rows again for each attempt: they bear the number of the SNAPSHOT row."""
        is_due = run.spec.run in [one.spec.run for one in due_snapshots(state, every)]
        return gc.stage_snapshot(state, run) if is_due else None

    try:
        try:
            row = yield from update(tables, job, f"snapshot {run.spec.name}", stage)
        except StorageError:  # another process may have committed a run and not published it
            yield from _publish_all(job, tables)
            row = yield from update(tables, job, f"snapshot {run.spec.name} (2)", stage)
    except NotNowError:
        return False  # the next `gc` makes it
    return row is not None


def _publish_all(job: str, tables: Tables) -> Generator[str, None, None]:
    state = tables.state(job)
    for branch in state.branches:
        yield from tables.publish(job, state, branch)
