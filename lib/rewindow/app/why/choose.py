"""Choose the row to explain among those of a key."""

from __future__ import annotations

from collections.abc import Sequence

from rewindow.app.why.output import Output, Row
from rewindow.app.why.windows import AskedTime, key_words, of_window, start_column
from rewindow.contracts.instants import instant
from rewindow.control.plan.branch_decisions import find_run
from rewindow.errors import NothingFoundError

_MOST_NAMED = 5
"""So many windows of a key are named."""


def choose_row(
    output: Output, words: Sequence[str], rows: Sequence[Row], at: AskedTime | None, run: str | None
) -> tuple[Sequence[Row], Row]:
    """Return the rows of a key, in one window if one is named, and the newest of them or the newest that a run wrote.

    Raises `NothingFoundError` (1) if there is no such row, `UsageError` (2) for an unknown run.
    """
    chosen = None if run is None else find_run(output.state, output.branch, run)
    start_ms = None if at is None else at.start(rows)
    found = of_window(output, rows, start_ms)
    key = " ".join(words)
    command = key_words(output, words) if at is None else at.command(at.time_ms)
    ask = f"`rewindow why {command} --missing` says why"
    if not found:
        column = start_column(output)
        starts = sorted({row[column] for row in rows}) if column else []
        last = f", the last {_MOST_NAMED} of {len(starts):,}" if len(starts) > _MOST_NAMED else ""
        named = ", ".join(instant(one) for one in starts[-_MOST_NAMED:])
        known = f" (it has windows from {named}{last})" if starts else ""
        where = "" if at is None or start_ms is None else at.where(start_ms)
        message = f"{output.table} has no row of the key {key}{where}{known}: {ask}"
        raise NothingFoundError(message)
    if run is None:
        return found, found[-1]
    own = [row for row in found if chosen is not None and row["_run"] == chosen.spec.run]
    if not own:
        written = sorted({row["_run"] for row in found})
        names = [one.spec.name for one in output.state.committed if one.spec.run in written]
        others = (
            f"has rows of {', '.join(names)}: name one of these" if names else "has rows of runs that are forgotten"
        )
        message = f"run {run} wrote no row of the key {key}, which {others}"
        raise NothingFoundError(message)
    return found, own[-1]
