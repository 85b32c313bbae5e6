"""A job as of one of its runs: the stores and the output tables that people read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from rewindow.app.open_project import OpenProject
from rewindow.app.run_references import no_runs
from rewindow.control.plan.branch_decisions import BEGINNING, find_run
from rewindow.control.plan.job_state import Branch, CommittedRun, JobState
from rewindow.errors import UsageError
from rewindow.tables.delta.state_query import Stores
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import safe_name

if TYPE_CHECKING:
    from rewindow.tables.governed.warehouse import CatalogTables


class AsOf(NamedTuple):
    """A job's ledger, one of its branches, and a run of that branch."""

    state: JobState
    branch: Branch
    run: CommittedRun

    @property
    def runs(self) -> tuple[CommittedRun, ...]:
        """The runs of the branch up to this one."""
        return self.branch.runs[: self.branch.index_of(self.run.spec.run)]


class ReadsStores(Protocol):
    """The stores of a job as of a run, on either adapter."""

    def keys(self, store: str) -> Sequence[str]:
        """Return the names of a store's key columns. Raises `UsageError` (2) for an unknown store."""
        ...

    def rows(self, store: str) -> Any:
        """Return a store's rows as an Arrow table, sorted by key and partition. Raises `UsageError` (2) for an unknown store."""
        ...


def as_of(project: OpenProject, job: str, branch: str, at: str | None) -> AsOf:
    """Return a job as of a run, by default the branch's last one. Publishes first what an interrupted command has left.

    Raises `UsageError` (2) for a branch without runs, or a run that is not on the branch.
    """
    project.job_config(job)
    name = safe_name(branch, "branch")
    state = project.tables.state(job)
    for _step in project.tables.publish(job, state, name):
        pass
    known = state.branch(name)
    run = known.head if at is None else None if at == BEGINNING else find_run(state, known, at)
    if not known.runs:
        raise no_runs(job, state, name)
    if run is None:
        raise UsageError(
            "beginning-has-nothing",
            "job {job!r} has nothing before its first run on branch {branch!r}: name a run that `rewindow show {job}` lists",
            job=job,
            branch=name,
        )
    return AsOf(state, known, run)


def stores_of(project: OpenProject, found: AsOf) -> ReadsStores:
    """Return the stores as of a run. Raises `CheckpointError` (76) if `gc` forgot them."""
    if isinstance(project.tables, DeltaTables):
        return Stores(project.tables, found.state, found.run)
    from rewindow.tables.governed.state_query import CatalogStores  # noqa: PLC0415 - Spark only where it is needed

    return CatalogStores(cast("CatalogTables", project.tables), found.state, found.run)
