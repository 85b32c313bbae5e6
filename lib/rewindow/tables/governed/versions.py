"""Publications as versions of one application id, across the publication epochs of a table.

A commit through Spark carries one transaction id, so it cannot close the ids of earlier epochs, as a commit to files does.
Instead all epochs share one id: a publication's version is its ordinal plus the number of republications before it. The
commit that begins an epoch has a version above all of the epoch before, and Delta skips a writer that still publishes that one.
"""

from __future__ import annotations

from rewindow.control.plan.job_state import Publication
from rewindow.tables.shared.publications import Due, missing


def version_of(due: Due, ordinal: int) -> int:
    """Return the version under which a publication of the current epoch is committed."""
    return ordinal + due.restart.epoch - 1


def ordinal_at(due: Due, version: int) -> int:
    """Return the last publication in the current epoch of a table at a version; 0 if the epoch has not begun."""
    ordinal = version - due.restart.epoch + 1
    return max(ordinal, 0) if due.restart.epoch == 1 or ordinal >= due.restart.ordinal else 0


def is_on_its_way(due: Due, version: int) -> bool:
    """Return whether a table is about to be republished."""
    return due.restart.epoch > 1 and ordinal_at(due, version) < due.restart.ordinal


def begins_epoch(due: Due, ordinal: int) -> bool:
    """Return whether a publication replaces the whole content."""
    return due.restart.epoch > 1 and ordinal == due.restart.ordinal


def lacking(due: Due, reached: int) -> list[int]:
    """Return the ordinals that a table lacks. A publication that changes no rows needs no commit."""
    return [
        ordinal
        for ordinal in missing(due, reached)
        if begins_epoch(due, ordinal) or changes_rows(due.publications[ordinal - 1], due.target)
    ]


def changes_rows(publication: Publication, target: str) -> bool:
    """Return whether a publication adds or removes rows of a target."""
    runs = (*publication.adds, *publication.removes)
    return any((total := run.commit.targets.get(target)) is not None and total.rows > 0 for run in runs)
