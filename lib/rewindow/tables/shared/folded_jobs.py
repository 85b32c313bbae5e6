"""Jobs, folded from their ledgers: from all rows, or from a stored fold and the rows after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.ledger_state import fold, fold_row
from rewindow.control.plan.stored_rows import StoredFold, StoredRows, known_part
from rewindow.control.plan.stored_state import state_lines, state_of
from rewindow.errors import InvariantError


class JobStates:
    """The states of jobs, folded from their ledgers. Only rows that were not seen before are folded."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Sequence[LedgerRow], JobState]] = {}
        self._kept: dict[str, JobState] = {}

    def fold(self, job: str, rows: Sequence[LedgerRow]) -> JobState:
        """Return the state that a job's ledger describes. Raises `InvariantError` (70) if a row does not fit."""
        known_rows, state = self._known.get(job, ((), JobState()))
        if rows is known_rows:
            return state
        (was, folded), (stored, later) = known_part(known_rows), known_part(rows)
        if was is not stored or list(later[: len(folded)]) != list(folded) or not known_rows:
            folded, state = [], state_of(stored.lines) if stored else JobState()
        keeps_until = rows.keeps_until if isinstance(rows, StoredRows) else 0
        for row in later[len(folded) :]:
            state = fold_row(state, row)
            if row.seq == keeps_until:
                self._kept[job] = state
        if keeps_until and state.rows == keeps_until:
            self._kept[job] = state
        self._known[job] = (rows, state)
        return state

    def store(self, job: str, ledger: KeepsFold) -> None:
        """Store the state after the last row in files that are never merged again, if that was folded and is not stored."""
        if (state := self._kept.pop(job, None)) is not None:
            ledger.keep_fold(state.rows, state_lines(state))


class KeepsFold(Protocol):
    """A ledger that stores what its rows give, for later processes."""

    def keep_fold(self, rows: int, lines: Sequence[str]) -> None:
        """Store what folding the first ``rows`` rows gives, as lines."""
        ...


def check_stored(name: str, rows: Sequence[LedgerRow]) -> None:
    """Raise `InvariantError` (70) if the stored fold of a job's ledger is not what its rows give. Reads all rows."""
    stored, _ = known_part(rows)
    if stored is not None and state_of(stored.lines) != fold(rows[: stored.rows]):
        raise wrong_fold(name, stored)


def wrong_fold(name: str, stored: StoredFold) -> InvariantError:
    """Return the error of a stored fold that is not what the rows of the ledger give."""
    return InvariantError(
        "ledger-fold-wrong",
        "the stored fold of the ledger of {name!r} is not what its first {rows} rows give. {removal}: the "
        "next commands read all rows, and write it anew",
        name=name,
        rows=stored.rows,
        removal=stored.removal,
    )
