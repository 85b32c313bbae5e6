"""Choose the row to explain among those of a key."""

from __future__ import annotations

from collections.abc import Sequence

from rewindow.app.cli.times import show_instant
from rewindow.app.why.output import Output, Row
from rewindow.control.plan.branch_decisions import find_run
from rewindow.errors import UsageError


def start_column(output: Output) -> str | None:
    """Return the column with the start of a key's window; None for keys without windows."""
    return output.key_columns[-2].name if output.is_windowed else None


def of_window(output: Output, rows: Sequence[Row], start_ms: int | None) -> Sequence[Row]:
    """Return the rows of the window that starts at a time, or all. Raises `UsageError` (2) if the table has no windows."""
    column = start_column(output)
    if start_ms is None:
        return rows
    if column is None:
        message = f"{output.table} has no windows: omit --window"
        raise UsageError(message)
    return [row for row in rows if row[column] == start_ms]


def choose_row(
    output: Output, words: Sequence[str], rows: Sequence[Row], start_ms: int | None, run: str | None
) -> tuple[Sequence[Row], Row]:
    """Return the rows of a key, in one window if one is named, and the newest of them or the newest that a run wrote.

    Raises `UsageError` (2) if there is no such row.
    """
    found = of_window(output, rows, start_ms)
    key = " ".join(words)
    ask = f"`rewindow why {output.table} {key} --missing` says why"
    if not found:
        column = start_column(output)
        starts = sorted({row[column] for row in rows}) if column else []
        known = f" (it has windows from {', '.join(show_instant(one) for one in starts[-5:])})" if starts else ""
        where = f" in the window from {show_instant(start_ms)}" if start_ms is not None else ""
        message = f"{output.table} has no row of the key {key}{where}{known}: {ask}"
        raise UsageError(message)
    if run is None:
        return found, found[-1]
    chosen = find_run(output.state, output.branch, run)
    own = [row for row in found if chosen is not None and row["_run"] == chosen.spec.run]
    if not own:
        written = sorted({row["_run"] for row in found})
        names = [one.spec.name for one in output.state.committed if one.spec.run in written]
        message = f"run {run} wrote no row of the key {key}, which has rows of {', '.join(names)}: name one of these"
        raise UsageError(message)
    return found, own[-1]
