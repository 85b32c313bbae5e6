"""An attempt before its COMMIT: may its plan be held in memory, and how are its staged rows compared and audited?

A held plan is appended together with the COMMIT. Until then, no other process knows the plan or its row number. If another
process appends to the job's ledger in the meantime, the run must start again. So a plan is held only on the branch main, and
only while no other branch is active.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rewindow.contracts.expectations import EXPECTATIONS
from rewindow.contracts.staged_files import TaskReport
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.job_fold import COMMIT, FORGET, PLAN, SNAPSHOT
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.planned_tasks import METRICS_TARGET
from rewindow.control.plan.spec import MAIN, Commit, JournalFile, RunSpec
from rewindow.control.plan.stored_rows import known_part, stored_json
from rewindow.errors import InvariantError, StorageError
from rewindow.tables.governed.journal import SparkJournal, block_path, journal_row, rows_of_block, summary
from rewindow.tables.governed.own_table import REPORT
from rewindow.tables.shared.audit import audit_counts, commit_of, not_deterministic
from rewindow.tables.shared.diff import first_difference

_RECENT = 20
"""The number of the ledger's last rows, after those that a stored state replaces, that are searched for rows of other
branches than main."""
_OF_ANY = (COMMIT, SNAPSHOT, FORGET)
"""The kinds of rows that belong to no single branch, or whose branch is stated only in another row."""


def may_hold(state: JobState, ledger: Sequence[LedgerRow], rows: Sequence[LedgerRow]) -> bool:
    """Return whether the rows to append are a plan that may be held in memory. ``ledger``: the rows before ``rows``."""
    if len(rows) != 1 or rows[0].kind != PLAN or rows[0].body["branch"] != MAIN:
        return False
    recent = known_part(ledger)[1][-_RECENT:]
    is_alone = all(row.kind in _OF_ANY or (row.kind == PLAN and row.body["branch"] == MAIN) for row in recent)
    return is_alone and not any(branch.pending for name, branch in state.branches.items() if name != MAIN)


def stage(journal: SparkJournal, spec: RunSpec, reports: Sequence[TaskReport]) -> JournalFile:
    """Let the journal hold the report of the run as a whole.

    Raises `StorageError` (74) if the journal already has other reports.
    """
    last, attempt = reports[-1], spec.attempt.id
    if not journal.reports(attempt, last.sub_topology):
        text = stored_json(last.as_json())
        journal.hold(attempt, [journal_row(last.sub_topology, last.partition, REPORT, "", text, None)])
    staged = summary(attempt, journal.reports(attempt))
    if staged != summary(attempt, reports):
        raise StorageError(
            "journal-differs-from-reports",
            "the journal of attempt {attempt} does not contain what its tasks reported: run again",
            attempt=attempt,
        )
    return staged


def check_repeats(journal: SparkJournal, spec: RunSpec, reports: Sequence[TaskReport], feed: Feed) -> None:
    """Check that an attempt made the same rows as the one that it repeats, if all tasks of the repeated attempt reported.

    Raises `InvariantError` (70) if the rows differ.
    """
    before = journal.reports(spec.repeats) if spec.repeats else []
    if not set(range(len(spec.binding.topology))) <= {report.sub_topology for report in before}:
        return
    try:
        audit_counts(spec, feed, before)
    except InvariantError:
        # The repeated attempt died before all its tasks had reported, so there is nothing to compare.
        return
    for target in spec.binding.tables:
        # The repeated attempt has no metrics, because metrics are staged with the COMMIT. Results of expectations may differ,
        # because the job's expectations may have changed since.
        if target not in (METRICS_TARGET, EXPECTATIONS):
            mine = staged_rows(journal, spec.attempt.id, target, reports)
            theirs = staged_rows(journal, spec.repeats or "", target, before)
            different = first_difference(theirs, mine, ignored=["_run"])
            if different is not None:
                raise not_deterministic(spec, target, different)


def audit(journal: SparkJournal, state: JobState, spec: RunSpec, staged: JournalFile, feed: Feed) -> Commit:
    """Check the rows that an attempt staged, read back from the journal or held in memory; return the attempt's COMMIT."""
    reports = journal.reports(spec.attempt.id)
    if summary(spec.attempt.id, reports) != staged:
        raise StorageError(
            "journal-differs-from-staged",
            "attempt {attempt} differs from what was staged. Nothing was committed: run again",
            attempt=spec.attempt.id,
        )
    audit_counts(spec, feed, reports)
    journal.check(spec.attempt.id, [file for report in reports for file in report.files])
    return commit_of(state, spec, staged, reports)


def staged_rows(journal: SparkJournal, attempt: str, target: str, reports: Sequence[TaskReport]) -> pa.Table | None:
    """Return the rows that an attempt staged for a target; None if there are none."""
    paths = [
        block_path(attempt, target, file.path) for report in reports for file in report.files if file.target == target
    ]
    if not paths:
        return None
    data = journal.block_data(paths)
    return pa.concat_tables([rows_of_block(data[path]) for path in paths])
