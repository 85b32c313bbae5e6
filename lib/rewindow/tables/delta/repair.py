"""What `republish` needs to know: which tables have drifted, which runs lost files, do repeated runs give equal rows?"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branch_decisions import check_has_state
from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.planned_tasks import Restored
from rewindow.control.plan.spec import RunSpec
from rewindow.errors import StorageError
from rewindow.tables.delta.checkpoints import find_checkpoint
from rewindow.tables.delta.diff import staged_rows
from rewindow.tables.delta.drift import Digest, Files, find_drift
from rewindow.tables.delta.journal import audit_files
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.audit import INTERNAL, audit_counts
from rewindow.tables.shared.diff import first_difference
from rewindow.tables.shared.drift import Drift, lost_runs
from rewindow.tables.shared.paths import internal_path


class Repair:
    """The tables of one job, checked for drift."""

    def __init__(self, tables: DeltaTables, digest: Digest | None = None) -> None:
        """Bind to a warehouse. Reads nothing. ``digest``: see `Files`."""
        self._tables = tables
        self._files = Files(tables.warehouse, tables.reports, digest)

    def published(self, state: JobState, branch: str) -> list[str]:
        """Return those targets of a branch that have tables."""
        return [*state.branch(branch).tables]

    def drift(self, job: str, state: JobState, branch: str) -> list[Drift]:
        """Return the tables of a branch that differ from what was published."""
        return list(find_drift(self._tables.warehouse, job, state, branch, self._files))

    def lost(self, state: JobState, branch: str, targets: Sequence[str]) -> tuple[list[CommittedRun], list[int]]:
        """Find the runs whose files for these targets are gone or altered.

        Return the runs to repeat, in ledger order. They include the runs whose lost state these runs need. Also return the
        numbers of the lost runs that are not repeated.
        """
        return lost_runs(state, branch, targets, self._files.are_whole)

    def known_reports(self, run: CommittedRun) -> Sequence[TaskReport]:
        """Return the reports of a run's tasks; an empty list if the journal has lost them."""
        return self._files.reports(run) or ()

    def restore(self, state: JobState, spec: RunSpec) -> Restored:
        """Return the checkpoint that a run resumed from. Reads staged files, because the tables may have drifted."""
        check_has_state(state, spec.parent)
        head = state.chain_to(spec.parent)[-1:]
        basis = state.basis(spec.parent)
        return find_checkpoint(
            self._tables.warehouse, head[0] if head else None, basis, self._tables.reports, as_staged=True
        )

    def audit(self, spec: RunSpec, feed: Feed, reports: Sequence[TaskReport]) -> None:
        """Check the reports of a repeated run, and read back its staged files. Raises as `DeltaTables.audit` does."""
        audit_counts(spec, feed, reports)
        audit_files(reports, self._roots(spec))

    def first_difference(self, run: CommittedRun, target: str, spec: RunSpec, reports: Sequence[TaskReport]) -> str:
        """Describe the first row of a target that a run and its repetition do not both have.

        ``run``: the run, some of whose files may be gone. ``spec``, ``reports``: the repetition of this run.
        """
        reports_before = self.known_reports(run)
        before = [file for report in reports_before for file in report.files if file.target == target]
        roots = self._roots(spec)
        old, new = roots.get(target), roots.get(target)
        if target.startswith(INTERNAL):
            topic = target.removeprefix(INTERNAL)
            old, new = (
                table_path(self._tables.warehouse, internal_path(spec.job, attempt, topic))
                for attempt in (run.commit.attempt, spec.attempt.id)
            )
        now = staged_rows(new, reports, target) if new else None
        for file in before:
            rows = self._rows(old, file)
            different = first_difference(rows, now) if rows is not None else None
            if different is not None and different.startswith("before"):
                return different
        if before and all(self._rows(old, file) is not None for file in before):
            rows = staged_rows(old or "", reports_before, target)
            return first_difference(rows, now) or "the rows are equal, their digests are not"
        first_row = now.slice(0, 1).to_pylist() if now is not None else []
        return f"the rows it made before are gone; the first row is now {first_row[0] if first_row else 'none'}"

    def _rows(self, root: str | None, file: StagedFile) -> pa.Table | None:
        """Return a staged file's rows; None if the file is gone or damaged."""
        try:
            return staged_rows(root, [TaskReport(0, 0, (file,), {}, (), {})], file.target) if root else None
        except StorageError:
            return None

    def _roots(self, spec: RunSpec) -> dict[str, str]:
        return {target: table_path(self._tables.warehouse, table.path) for target, table in spec.binding.tables.items()}
