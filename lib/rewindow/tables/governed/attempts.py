"""An attempt before its COMMIT: its plan, which may wait for the COMMIT, and what it staged, which is compared and audited.

A plan that waits becomes one append with the COMMIT. It has no number that others respect: any append to the job's ledger in the
meantime makes the run start again. So it waits only on the branch main, and only while no other branch is active.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rewindow.contracts.expectations import EXPECTATIONS
from rewindow.contracts.staged_files import TaskReport
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.ledger_state import COMMIT, FORGET, PLAN, SNAPSHOT
from rewindow.control.plan.planned_tasks import METRICS_TARGET
from rewindow.control.plan.spec import MAIN, Commit, JournalFile, RunSpec
from rewindow.control.plan.stored_rows import known_part, stored_json
from rewindow.errors import InvariantError, StorageError
from rewindow.tables.governed.journal import SparkJournal, block_path, journal_row, rows_of_block, summary
from rewindow.tables.governed.own_table import REPORT
from rewindow.tables.shared.audit import audit_counts, commit_of, not_deterministic
from rewindow.tables.shared.diff import first_difference

_RECENT = 20
"""Rows of the ledger, after a stored fold, that must all be of the branch main, as far as they are of one branch."""
_OF_ANY = (COMMIT, SNAPSHOT, FORGET)
"""The kinds of rows that no branch has alone, or whose branch shows in another row."""


def may_hold(state: JobState, ledger: Sequence[LedgerRow], rows: Sequence[LedgerRow]) -> bool:
    """Return whether rows to append are a plan that may be held, given the ledger so far."""
    if len(rows) != 1 or rows[0].kind != PLAN or rows[0].body["branch"] != MAIN:
        return False
    recent = known_part(ledger)[1][-_RECENT:]
    is_alone = all(row.kind in _OF_ANY or (row.kind == PLAN and row.body["branch"] == MAIN) for row in recent)
    return is_alone and not any(branch.pending for name, branch in state.branches.items() if name != MAIN)


def stage(journal: SparkJournal, spec: RunSpec, reports: Sequence[TaskReport]) -> JournalFile:
    """Let the journal hold the report of the run as a whole. Raises `StorageError` (74) if it has other reports."""
    last, attempt = reports[-1], spec.attempt.id
    if not journal.reports(attempt, last.sub_topology):
        text = stored_json(last.as_json())
        journal.hold(attempt, [journal_row(last.sub_topology, last.partition, REPORT, "", text, None)])
    staged = summary(attempt, journal.reports(attempt))
    if staged != summary(attempt, reports):
        raise StorageError(
            "journal-differs-from-reports",
            "attempt {attempt} differs in the journal from its reports: run again",
            attempt=attempt,
        )
    return staged


def check_repeats(journal: SparkJournal, spec: RunSpec, reports: Sequence[TaskReport], feed: Feed) -> None:
    """Check that an attempt made the same rows as the attempt that it repeats, if all tasks of that one reported.

    Metrics are staged with the COMMIT, so an attempt without it has none. Raises `InvariantError` (70).
    """
    before = journal.reports(spec.repeats) if spec.repeats else []
    if not set(range(len(spec.binding.topology))) <= {report.sub_topology for report in before}:
        return
    try:
        audit_counts(spec, feed, before)
    except InvariantError:
        # It died before it reported completely, so there is nothing to compare.
        return
    for target in spec.binding.tables:
        # The job's file may expect something else now.
        if target not in (METRICS_TARGET, EXPECTATIONS):
            mine = staged_rows(journal, spec.attempt.id, target, reports)
            theirs = staged_rows(journal, spec.repeats or "", target, before)
            different = first_difference(theirs, mine, ignored=["_run"])
            if different is not None:
                raise not_deterministic(spec, target, different)


def audit(journal: SparkJournal, state: JobState, spec: RunSpec, staged: JournalFile, feed: Feed) -> Commit:
    """Check all that was staged, as it was read back or is held; return the COMMIT of the attempt."""
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
    """Return the rows that an attempt staged for a target; None without any."""
    paths = [
        block_path(attempt, target, file.path) for report in reports for file in report.files if file.target == target
    ]
    if not paths:
        return None
    data = journal.block_data(paths)
    return pa.concat_tables([rows_of_block(data[path]) for path in paths])
