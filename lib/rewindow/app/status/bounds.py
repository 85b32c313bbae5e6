"""Compare the figures of a job with the bounds in its file. A figure that is unknown is within no bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rewindow.app.command_line import Command
from rewindow.app.status.figures import KINDS
from rewindow.app.status.findings import Finding, Level
from rewindow.config.alerts import AlertsConfig
from rewindow.report.text import counted, number, share, size, span, to_the_second
from rewindow.streams.duration import in_words


def exceeded(bounds: AlertsConfig, figures: Mapping[str, Any], command: Command) -> Iterator[Finding]:
    """Yield a finding for each bound that the figures exceed."""
    yield from _freshness(bounds, figures, command)
    if bounds.waiting is not None and not _within(figures.get("waiting"), bounds.waiting):
        waiting = figures.get("waiting")
        what = "it is unknown how many landings wait" if waiting is None else f"{counted(waiting, 'landing')} not taken"
        yield Finding(Level.ALERT, "waiting", f"{what}, at most {bounds.waiting} may wait", command("run"))
    for kind in KINDS:
        bound = getattr(bounds, kind)
        if bound is not None:
            yield from _share(kind, bound, figures, command)
    yield from _growth(bounds, figures, command)


def _within(figure: float | None, bound: float) -> bool:
    return figure is not None and figure <= bound


def _freshness(bounds: AlertsConfig, figures: Mapping[str, Any], command: Command) -> Iterator[Finding]:
    bound = bounds.freshness_ms
    if bound is None or _within(figures.get("age_ms"), bound):
        return
    through = figures.get("watermark_ms")
    what = (
        "complete through no time yet"
        if through is None
        else f"complete through {to_the_second(through)}, {span(figures['age_ms'])} ago"
    )
    message = f"{what}, at most {in_words(bound)} are allowed"
    if figures.get("waiting"):
        yield Finding(Level.ALERT, "freshness", message, command("run"))
    else:
        silent = f"{message}. No landing waits: nothing was landed, or the source has become silent"
        yield Finding(Level.ALERT, "freshness", silent, f"{command('run')} --land")


def _share(kind: str, bound: float, figures: Mapping[str, Any], command: Command) -> Iterator[Finding]:
    """Yield a finding if the last runs dropped too many records of a kind. Without records there is no share."""
    found, records = figures.get(f"{kind}_share"), figures.get("records")
    if found is None or found <= bound:
        return
    runs = "run" if figures["over_runs"] == 1 else f"{figures['over_runs']:,} runs"
    message = (
        f"{counted(figures[kind], f'{kind} record', many=f'{kind} records')} of {number(records)} in the last {runs}, "
        f"{share(found, 1)}, at most {_percent(bound)} are allowed"
    )
    yield Finding(Level.ALERT, kind, message, command("report"))


def _growth(bounds: AlertsConfig, figures: Mapping[str, Any], command: Command) -> Iterator[Finding]:
    runs, files = figures.get("runs"), _sum(figures, "state_files", "journal_files")
    after = "" if runs is None else f" after {counted(runs, 'run')}"
    if bounds.files is not None and not _within(files, bounds.files):
        what = f"state and journal have {number(files)} files{after}, at most {number(bounds.files)} are allowed"
        yield Finding(Level.ALERT, "files", what, command("gc"))
    written = _sum(figures, "state_bytes", "journal_bytes")
    if bounds.size is not None and not _within(written, bounds.size):
        shown = "unknown" if written is None else size(round(written))
        what = f"state and journal have {shown}{after}, at most {size(bounds.size)} are allowed"
        yield Finding(Level.ALERT, "size", what, command("gc"))
    restore = figures.get("restore_runs")
    if bounds.restore is not None and not _within(restore, bounds.restore):
        what = (
            f"the next run reads the changelogs of {number(restore)} runs, at most {number(bounds.restore)} are allowed"
        )
        yield Finding(Level.ALERT, "restore", what, command("gc"))


def _sum(figures: Mapping[str, Any], *names: str) -> int | None:
    found = [figures.get(name) for name in names]
    return None if None in found else sum(one for one in found if one is not None)


def _percent(part: float) -> str:
    return f"{round(100 * part, 6):g} %"
