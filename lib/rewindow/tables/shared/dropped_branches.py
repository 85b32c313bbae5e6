"""Refuse to read a dropped branch whose rows `gc` has deleted: it would look like a branch without rows."""

from __future__ import annotations

from collections.abc import Callable

from rewindow.control.plan.job_state import Branch, Standing
from rewindow.control.plan.spec import OUTPUT, TableSpec
from rewindow.errors import UsageError


def check_not_deleted(job: str, branch: Branch, version_of: Callable[[TableSpec], int | None]) -> None:
    """Raise `UsageError` (2) if a branch was dropped and an output to which its runs added rows is gone."""
    if branch.standing is not Standing.DROPPED:
        return
    for target, table in branch.tables.items():
        totals = [run.commit.targets.get(target) for run in branch.runs if run.spec.branch == branch.name]
        has_rows = target.startswith(OUTPUT) and any(total.rows for total in totals if total)
        if has_rows and version_of(table) is None:
            message = (
                f"branch {branch.name!r} was dropped, and `rewindow gc` has deleted its rows. To have them again, replay on a "
                f"new branch: `rewindow backfill {job} --from LANDING --branch NAME`"
            )
            raise UsageError(message)
