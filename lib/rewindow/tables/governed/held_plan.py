"""Whether a run's plan may wait for its COMMIT, so that both are one append.

A plan that waits has no number that others respect: any append to the job's ledger in the meantime makes the run start again.
So it waits only on the branch main, and only while no other branch is active.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.ledger_state import COMMIT, FORGET, PLAN, SNAPSHOT
from rewindow.control.plan.spec import MAIN
from rewindow.control.plan.stored_rows import known_part

_RECENT = 20
"""Rows of the ledger, after a stored fold, that must all be of the branch main, as far as they are of one branch."""
_OF_ANY = (COMMIT, SNAPSHOT, FORGET)
"""The kinds of rows that no branch has alone, or whose branch shows in another row."""


def may_hold(state: JobState, known: Sequence[LedgerRow], rows: Sequence[LedgerRow]) -> bool:
    """Return whether rows to append are a plan that may be held, given the ledger so far."""
    if len(rows) != 1 or rows[0].kind != PLAN or rows[0].body["branch"] != MAIN:
        return False
    recent = known_part(known)[1][-_RECENT:]
    is_alone = all(row.kind in _OF_ANY or (row.kind == PLAN and row.body["branch"] == MAIN) for row in recent)
    return is_alone and not any(one.pending for name, one in state.branches.items() if name != MAIN)
