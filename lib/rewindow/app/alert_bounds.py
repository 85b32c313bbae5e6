"""The findings about a job's limits (``alerts:`` in its file), and the figures on growing state that some limits refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewindow.config.job import AlertsConfig
from rewindow.contracts.instants import to_the_second
from rewindow.control.health.findings import Finding, Level
from rewindow.control.health.late_and_dropped_records import KINDS
from rewindow.control.health.phrases import Command, counted
from rewindow.control.plan.job_state import Branch, CommittedRun, JobState
from rewindow.control.plan.retention import EVERY, MOST_RUNS, decide_forget, is_due
from rewindow.control.plan.stored_runs import sizes_of
from rewindow.errors import FindingMessage
from rewindow.report.text import number, share, size, span
from rewindow.streams.duration import in_words


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What `gc` would do now with the state and journal of a branch."""

    state: JobState
    head: CommittedRun | None
    now_ms: int
    keep_ms: int
    has_files: bool = True
    """Whether state and journal are files. In a catalog they are rows of one table."""

    def forgets(self) -> bool:
        """Return whether `gc` would forget state that nothing needs. The files of this state would then no longer count."""
        return decide_forget(self.state, self.now_ms - self.keep_ms) is not None

    def writes_snapshot(self) -> bool:
        """Return whether `gc` would write a snapshot, which replaces the changelogs of earlier runs."""
        return self.head is not None and is_due(self.state, self.head, EVERY)


def exceeded(bounds: AlertsConfig, figures: Mapping[str, Any], command: Command, upkeep: Upkeep) -> Iterator[Finding]:
    """Yield a finding for each limit that the figures exceed."""
    yield from _freshness(bounds, figures, command)
    if bounds.waiting is not None and not _within(figures.get("waiting"), bounds.waiting):
        waiting = figures.get("waiting")
        waits = (
            "it is unknown how many landings wait" if waiting is None else f"{counted(waiting, 'landing')} not taken"
        )
        message = FindingMessage(
            "too-many-landings-wait", "{what}, at most {bound} may wait", what=waits, bound=bounds.waiting
        )
        yield Finding(Level.ALERT, "waiting", message, command("run"))
    for kind in KINDS:
        bound = getattr(bounds, kind)
        if bound is not None:
            yield from _share(kind, bound, figures, command)
    yield from _growth(bounds, figures, command, upkeep)
    yield from _restore(bounds.restore, figures.get("restore_runs"), command, upkeep)


def _within(figure: float | None, bound: float) -> bool:
    return figure is not None and figure <= bound


def _freshness(bounds: AlertsConfig, figures: Mapping[str, Any], command: Command) -> Iterator[Finding]:
    bound = bounds.freshness_ms
    if bound is None or _within(figures.get("age_ms"), bound):
        return
    through = figures.get("watermark_ms")
    progress = (
        "complete through no time yet"
        if through is None
        else f"complete through {to_the_second(through)}, {span(figures['age_ms'])} ago"
    )
    is_waiting = bool(figures.get("waiting"))
    message = FindingMessage(
        "results-too-old",
        "{what}, at most {bound} are allowed{cause}",
        what=progress,
        bound=in_words(bound),
        cause="" if is_waiting else ". No landing waits: nothing was landed, or the source has become silent",
    )
    yield Finding(Level.ALERT, "freshness", message, command("run") if is_waiting else f"{command('run')} --land")


def _share(kind: str, bound: float, figures: Mapping[str, Any], command: Command) -> Iterator[Finding]:
    """Yield a finding if the last runs dropped a larger share of records as ``kind`` than ``bound`` allows.

    If there were no records, there is no share and no finding.
    """
    lost, records = figures.get(f"{kind}_share"), figures.get("records")
    if lost is None or lost <= bound:
        return
    runs = "run" if figures["over_runs"] == 1 else f"{figures['over_runs']:,} runs"
    message = FindingMessage(
        "too-many-records-lost",
        "{lost} of {records} in the last {runs}, {share}, but at most {bound} are allowed",
        lost=counted(figures[kind], f"{kind} record", many=f"{kind} records"),
        records=number(records),
        runs=runs,
        share=share(lost, 1),
        bound=_percent(bound),
    )
    yield Finding(Level.ALERT, kind, message, command("report"))


def _growth(bounds: AlertsConfig, figures: Mapping[str, Any], command: Command, upkeep: Upkeep) -> Iterator[Finding]:
    runs, files = figures.get("runs"), _sum(figures, "state_files", "journal_files")
    after = "" if runs is None else f" after {counted(runs, 'run')}"
    if bounds.files is not None and not upkeep.has_files:
        message = FindingMessage(
            "files-not-counted",
            "the bound `files` is not checked: with `commit: spark`, state and journal are rows of a table that all jobs share, "
            "not files",
        )
        yield Finding(
            Level.NOTE, "files", message, None, "Bound them with `size:`, which counts the bytes of these rows"
        )
    elif bounds.files is not None and not _within(files, bounds.files):
        message = FindingMessage(
            "too-many-files",
            "state and journal have {files} files{after}, but at most {bound} are allowed",
            files=number(files),
            after=after,
            bound=number(bounds.files),
        )
        parts = (
            f"{number(figures.get('state_files'))} of state and {number(figures.get('journal_files'))} of the journal"
        )
        yield _grown("files", message, parts, command, upkeep)
    written = _sum(figures, "state_bytes", "journal_bytes")
    if bounds.size is not None and not _within(written, bounds.size):
        shown = "unknown" if written is None else size(round(written))
        message = FindingMessage(
            "state-too-large",
            "state and journal have {size}{after}, but at most {bound} are allowed",
            size=shown,
            after=after,
            bound=size(bounds.size),
        )
        state, journal = (figures.get(name) for name in ("state_bytes", "journal_bytes"))
        parts = f"{size(state or 0)} of state and {size(journal or 0)} of the journal"
        yield _grown("size", message, parts, command, upkeep)


def _grown(about: str, message: FindingMessage, parts: str, command: Command, upkeep: Upkeep) -> Finding:
    if upkeep.forgets():
        return Finding(Level.ALERT, about, message, command("gc"))
    keep = in_words(upkeep.keep_ms)
    advice = (
        f"These are {parts}, and `gc` would forget none of them now: it forgets state that nothing has needed for {keep}, and "
        f"every run keeps its journal. Raise `{about}:`, or let each run take more landings"
    )
    return Finding(Level.ALERT, about, message, None, advice)


def _restore(bound: int | None, restore: int | None, command: Command, upkeep: Upkeep) -> Iterator[Finding]:
    if bound is None or _within(restore, bound):
        return
    message = FindingMessage(
        "restore-too-long",
        "the next run reads the changelogs of {runs} runs, at most {bound} are allowed",
        runs=number(restore),
        bound=number(bound),
    )
    if restore is None or upkeep.writes_snapshot():
        yield Finding(Level.ALERT, "restore", message, command("gc"))
        return
    if bound <= EVERY:
        advice = (
            f"A snapshot replaces them after {EVERY} runs, and no command writes one earlier: set `restore:` to {EVERY + 1} or "
            "more"
        )
    else:
        most = MOST_RUNS * EVERY
        advice = (
            f"They changed so few rows that a snapshot would cost more than it saves. It is written after {most} runs at the "
            f"latest: set `restore:` to {most + 1}"
        )
    yield Finding(Level.ALERT, "restore", message, None, advice)


def _sum(figures: Mapping[str, Any], *names: str) -> int | None:
    parts = [figures.get(name) for name in names]
    return None if None in parts else sum(part for part in parts if part is not None)


def _percent(part: float) -> str:
    return f"{round(100 * part, 6):g} %"


def growth_figures(state: JobState, branch: Branch, *, has_files: bool) -> dict[str, Any]:
    """Return the size of state and journal over all branches, and the number of runs that a restore reads.

    ``has_files``: whether state and journal are files. In a catalog they are rows of a table that all jobs share, so the
    numbers of files are None.
    """
    written = [*sizes_of(state)]
    kept = [one for one in written if one.run not in state.forgotten]
    journal = [one.journal for one in written]
    files, size = sum(one.files for one in kept), sum(one.bytes for one in kept)
    all_runs, head = len(state.committed), branch.head
    return {
        "state_files": files if has_files else None,
        "state_bytes": size,
        "journal_files": len(journal) if has_files else None,
        "journal_bytes": sum(journal),
        "files_per_run": round((files + len(journal)) / all_runs, 2) if all_runs and has_files else None,
        "bytes_per_run": round((size + sum(journal)) / all_runs) if all_runs else None,
        "restore_runs": len(state.basis(head.spec.run)) if head and head.spec.binding.stores else 0,
    }
