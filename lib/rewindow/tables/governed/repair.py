"""What `republish` needs to know about a catalog: which tables have drifted, and the rows of which runs are lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branch_decisions import check_has_state
from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.planned_tasks import Restored
from rewindow.control.plan.spec import RunSpec
from rewindow.errors import StorageError
from rewindow.tables.governed.attempts import staged_rows
from rewindow.tables.governed.journal import block_path
from rewindow.tables.governed.publish import published_tables
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.audit import audit_counts
from rewindow.tables.shared.diff import first_difference
from rewindow.tables.shared.drift import Drift, lost_runs


class CatalogRepair:
    """The tables of one job, checked for drift."""

    def __init__(self, tables: CatalogTables) -> None:
        """Bind to a catalog. Nothing is read."""
        self._tables = tables
        self._digests: Mapping[str, Sequence[str]] | None = None

    def published(self, state: JobState, branch: str) -> list[str]:
        """Return the targets of a branch that have tables of their own. Stores and metrics have none."""
        return [due.target for due in published_tables(state, branch)]

    def drift(self, job: str, state: JobState, branch: str) -> list[Drift]:
        """Return the tables of a branch that differ from what was published."""
        return self._tables.drift(job, state, branch)

    def lost(self, state: JobState, branch: str, targets: Sequence[str]) -> tuple[list[CommittedRun], list[int]]:
        """Return the runs whose blocks for these targets are gone or altered; see `lost_runs`."""
        return lost_runs(state, branch, targets, self._is_whole)

    def known_reports(self, run: CommittedRun) -> Sequence[TaskReport]:
        """Return the reports of a run's tasks; an empty list if the journal has lost them."""
        try:
            return self._tables.reports(run)
        except StorageError:
            return ()

    def restore(self, state: JobState, spec: RunSpec) -> Restored:
        """Return the checkpoint that a run resumed from. Raises `CheckpointError` (76) if `gc` has deleted it."""
        check_has_state(state, spec.parent)
        return self._tables.restore(state, spec)

    def audit(self, spec: RunSpec, feed: Feed, reports: Sequence[TaskReport]) -> None:
        """Check the rows that an attempt staged, read back or held in memory. Raises as `CatalogTables.audit` does."""
        audit_counts(spec, feed, reports)
        files = [file for report in reports for file in report.files]
        self._tables.journal(spec.job).check(spec.attempt.id, files)

    def first_difference(self, run: CommittedRun, target: str, spec: RunSpec, reports: Sequence[TaskReport]) -> str:
        """Describe the first row of a target that a run and its repetition do not both have.

        ``run``: the run, whose rows may be gone. ``spec``, ``reports``: the repetition of this run.
        """
        journal = self._tables.journal(spec.job)
        now = staged_rows(journal, spec.attempt.id, target, reports)
        try:
            before = staged_rows(journal, run.commit.attempt, target, self._tables.reports(run))
        except StorageError:
            first_row = now.slice(0, 1).to_pylist() if now is not None else []
            return f"the rows it made before are gone; the first row is now {first_row[0] if first_row else 'none'}"
        return first_difference(before, now) or "the rows are equal, their digests are not"

    def _is_whole(self, run: CommittedRun, target: str, path: str) -> bool:  # noqa: ARG002 - blocks have no tables
        if self._digests is None:
            self._digests = self._tables.journal(run.spec.job).all_digests()
        try:
            reports = self._tables.reports(run)
        except StorageError:
            return False
        files = [file for report in reports for file in report.files if file.target == target]
        paths = [block_path(run.commit.attempt, target, file.path) for file in files]
        return all(self._digests.get(path) == [file.file_digest] for path, file in zip(paths, files, strict=True))
