"""Numbers, times and durations in a readable form."""

from __future__ import annotations

from collections.abc import Sequence

from rewindow.contracts import instants
from rewindow.control.health.holds import Hold
from rewindow.control.health.late_and_dropped_records import Drop
from rewindow.control.health.phrases import command_words, counted
from rewindow.control.health.waiting_results import OpenWindows
from rewindow.report.report_facts import RunFigures
from rewindow.streams.duration import in_words

DASH = "–"  # noqa: RUF001 - the dash of an empty cell


def told_left_out(runs: Sequence[str]) -> str:
    """Return a sentence, without full stop, which says that the rows of these final runs were not compared."""
    named = f"final run {runs[0]}" if len(runs) == 1 else f"final runs {' and '.join(runs)}"
    return f"The rows of {named} are not compared: the branches do not both end with a final run after the same epoch"


def told_holds(holds: Sequence[Hold]) -> str:
    """Return sentences about the rows that a comparison leaves out because of runs on hold; ``""`` if no run is on hold."""
    return " ".join(
        f"Run {hold['run']} is on hold, so neither its rows nor those of later runs are published: "
        f"`rewindow head {command_words(hold['job'], hold['branch'])} --held` shows its rows, `{hold['accept']}` publishes them."
        for hold in holds
    )


def instant(time_ms: int | None) -> str:
    """Return a time in the form of `instants.instant`; a dash if it is unknown."""
    return instants.instant(time_ms, DASH)


def to_the_second(time_ms: int | None) -> str:
    """Return a time in the form of `instants.to_the_second`; a dash if it is unknown."""
    return instants.to_the_second(time_ms, DASH)


def day(time_ms: int, span_ms: int) -> str:
    """Return a time as the label of an axis. Axes that cover more than five days have dates only."""
    text = instant(time_ms)
    return text[:10] if span_ms > 5 * 86_400_000 else text[5:16]


def dated(run: RunFigures) -> str:
    """Return a run's name and the time through which its results are complete."""
    return run.run if run.watermark_ms is None else f"{run.run} ({instant(run.watermark_ms)[:16]})"


def span(duration_ms: float, *, at_most: bool = False) -> str:
    """Return a duration with its two largest units. ``at_most``: round up, so that the text is an upper bound."""
    whole = round(duration_ms)
    for unit in (86_400_000, 3_600_000, 60_000, 1_000):
        if whole >= 2 * unit:
            finer = {86_400_000: 3_600_000, 3_600_000: 60_000, 60_000: 1_000, 1_000: 1}[unit]
            return in_words((whole + finer - 1 if at_most else whole) // finer * finer)
    return in_words(whole)


def seconds(value: float | None) -> str:
    """Return a number of seconds in words, with larger units from two minutes on."""
    if value is None:
        return DASH
    return (
        f"{value:.2g} s"
        if value < 0.1
        else f"{value:.2f} s"
        if value < 10
        else f"{value:.0f} s"
        if value < 120
        else span(value * 1000)
    )


def where_results_wait(waiting_results: OpenWindows) -> str:
    """Return where results wait, such as ``in 2 windows and in joins``; ``""`` if none wait."""
    windows = f"in {counted(waiting_results.windows, 'window')}" if waiting_results.windows else ""
    joins = "in joins" if any(waiting.waits_for is not None for waiting in waiting_results.shown) else ""
    return " and ".join(filter(None, (windows, joins)))


def number(value: float | None) -> str:
    """Return a number with separators; a dash for None."""
    if value is None:
        return DASH
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def size(count: int) -> str:
    """Return a number of bytes with a binary unit."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def share(part: float, whole: float) -> str:
    """Return a part of a whole in percent. A share close to 0 % or 100 % is not rounded to 0 % or 100 %."""
    if not whole:
        return DASH
    percent = 100 * part / whole
    text = f"{percent:.1f}"
    if text == "100.0" and part != whole:
        text = ">99.9"
    if text == "0.0" and part:
        text = "<0.1"
    return f"{text} %"


def share_of_records(drops: Sequence[Drop]) -> str:
    """Return the share of the records that one node dropped, in words. ``""`` if it may count a record several times."""
    shares = [drop.share for drop in drops if drop.share is not None]
    return f"{share(sum(shares), 1)} of the records" if len(shares) == len(drops) else ""
