"""Collect garbage. Each step is durable by itself. If a process is killed at any point, repeat the call.

For a job, `gc` writes snapshots that replace long changelogs, merges small files, and deletes what no branch needs. It decides
each step on the current state of the ledger. Committed results do not change, and no run is fenced, so `gc` can run beside
runs.

For a feed, `gc` merges small files of the logs, and deletes files whose rows are in other files now. Offsets, landings and
watermarks do not change, and a run that was planned on the old files still finds them.

After its commit, a run does a part of this for a few seconds (`tidy` and `tidy_feed`). This part forgets no state, writes no
snapshot and drops no generation, so users can still rewind to each run to which they could rewind before.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from rewindow.control.ledger_steps import publish_all, update, write_snapshot
from rewindow.control.plan.job_fold import fold_row
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.retention import EVERY, decide_forget, decide_snapshot, due_snapshots
from rewindow.control.plan.spec import JournalFile
from rewindow.control.run import Tables

MERGE_FROM = 16
"""The least number of small files of a table that are merged into one. Merging fewer would rewrite the same rows with each
call."""
UNKNOWN_MS = 24 * 3_600_000
"""Files of an attempt that no ledger row names are kept for at least this time (ms), because the attempt may still be
running."""
_AT_ONCE = 500
"""The number of files that are deleted between two checks of the time."""
IsOver = Callable[[], bool]
"""Returns whether the time of a collection is over. The next collection does the rest."""
_Steps = Generator[str, None, "Collected"]
_FeedSteps = Generator[str, None, "Tidied"]


@dataclass(frozen=True, slots=True)
class Garbage:
    """Something to delete, because nothing needs it: a file, a folder with its contents, or rows of a table.

    ``folder``: the folder or table that contains the garbage; ``path``: the path in this folder, or the identifier of the rows.
    ``why``: the reason why the garbage can be deleted.
    """

    folder: str
    path: str
    bytes: int
    why: str
    is_folder: bool = False


class _OrphanFiles(Protocol):
    """The files of a job or feed that can be deleted, and its ledger."""

    def garbage(self, keep_ms: int) -> Iterator[Garbage]:
        """Yield what can be deleted now, given the retention ``keep_ms``."""
        ...

    def delete(self, garbage: Sequence[Garbage]) -> None:
        """Delete the garbage, in one operation or in several."""
        ...

    def compact_ledger(self) -> None:
        """Merge the ledger's files."""
        ...


class JobGc(_OrphanFiles, Protocol):
    """The files of one job; see `tables.delta.gc` and `tables.governed.gc`."""

    def dead_reports(self) -> int:
        """Return how many reports of dead attempts `drop_reports` would remove."""
        ...

    def drop_reports(self) -> int:
        """Remove the reports of dead attempts from the journal; return how many."""
        ...

    def freed(self, rows: Sequence[LedgerRow], keep_ms: int) -> Iterator[Garbage]:
        """Yield what would become garbage if `drop_reports` ran and ``rows`` were appended to the ledger and published."""
        ...

    def due(self, least: int) -> int:
        """Return how many small files ``merge(least)`` would merge now."""
        ...

    def merge(self, least: int) -> Iterator[str | tuple[int, int]]:
        """Merge small files of a table if it has at least ``least``.

        Yield each step's name, then the pair (files merged, files made).
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidied:
    """What was deleted and merged: ``merged`` small files became ``into`` files."""

    deleted: Sequence[Garbage] = field(default=())
    merged: int = 0
    into: int = 0

    @property
    def bytes(self) -> int:
        """The size of what was deleted."""
        return sum(file.bytes for file in self.deleted)


@dataclass(frozen=True, slots=True)
class Collected(Tidied):
    """The result of a collection: runs with a new snapshot, numbers of forgotten runs and dropped reports, and `Tidied`."""

    snapshots: Sequence[str] = field(default=())
    forgotten: int = 0
    reports: int = 0


def collect(
    job: str,
    tables: Tables,
    gc: JobGc,
    *,
    before_ms: int,
    keep_ms: int,
    every: int = EVERY,
    merge_from: int = MERGE_FROM,
) -> _Steps:
    """Stage snapshots, forget runs that no branch needs, merge small files, and delete orphan files.

    Runs committed before ``before_ms`` may be forgotten. Files are deleted ``keep_ms`` after their table stopped using them.
    """
    yield from publish_all(job, tables)
    made: list[str] = []
    for run in due_snapshots(tables.state(job), every):
        is_made = yield from write_snapshot(job, run, tables, every)
        made += [run.spec.name] if is_made else []
    yield from publish_all(job, tables)
    forgotten = yield from update(tables, job, "forget", lambda state: decide_forget(state, before_ms))
    yield from publish_all(job, tables)
    tidied = yield from tidy(gc, keep_ms=keep_ms, merge_from=merge_from)
    return replace(tidied, snapshots=made, forgotten=len(forgotten.body["runs"]) if forgotten else 0)


def _never() -> bool:
    return False


def tidy(gc: JobGc, *, keep_ms: int, merge_from: int = MERGE_FROM, is_over: IsOver = _never) -> _Steps:
    """Merge small files of a job, and delete orphan files. State is neither written nor forgotten."""
    yield "reports"
    reports = gc.drop_reports()
    tidied = yield from _tidy(gc, gc.merge(merge_from), keep_ms, is_over)
    return Collected(reports=reports, deleted=tidied.deleted, merged=tidied.merged, into=tidied.into)


def would_collect(
    job: str, tables: Tables, gc: JobGc, *, before_ms: int, keep_ms: int, every: int = EVERY
) -> Collected:
    """Return what `collect` would do. Changes nothing."""
    state, rows = tables.state(job), list[LedgerRow]()
    due = due_snapshots(state, every)
    for run in due:
        # The number of rows in a snapshot does not affect what is forgotten, so an empty snapshot is enough.
        rows.append(decide_snapshot(state, run, "", JournalFile("", 0, ""), {}))
        state = fold_row(state, rows[-1])
    forgets = decide_forget(state, before_ms)
    rows += [forgets] if forgets else []
    garbage = {(item.folder, item.path): item for item in (*gc.garbage(keep_ms), *gc.freed(rows, keep_ms))}
    return Collected(
        snapshots=[run.spec.name for run in due],
        forgotten=len(forgets.body["runs"]) if forgets else 0,
        reports=gc.dead_reports(),
        merged=gc.due(MERGE_FROM),
        deleted=list(garbage.values()),
    )


def collect_feed(feed: str, publish: Callable[[str], Iterator[str]], gc: _FeedGc, *, keep_ms: int) -> _FeedSteps:
    """Drop replaced generations, merge small files, and delete orphan files older than ``keep_ms``, but at least a day old."""
    yield from publish(feed)
    yield from gc.drop_replaced(keep_ms)
    return (yield from tidy_feed(gc, keep_ms=keep_ms))


def tidy_feed(gc: _FeedGc, *, keep_ms: int, is_over: IsOver = _never) -> _FeedSteps:
    """Merge small files of a feed, and delete orphan files."""
    merges = (step for topic in gc.topics() for step in gc.compact(topic))
    return (yield from _tidy(gc, merges, keep_ms, is_over))


def _tidy(
    orphans: _OrphanFiles, merges: Iterable[str | tuple[int, int]], keep_ms: int, is_over: IsOver
) -> Generator[str, None, Tidied]:
    """Merge small files, delete orphan files older than ``keep_ms``, and merge the files of the ledger."""
    merged = into = 0
    if is_over():
        return Tidied()
    for step in merges:
        if isinstance(step, str):
            yield step
        else:
            merged, into = merged + step[0], into + step[1]
            if is_over():
                return Tidied(merged=merged, into=into)
    yield "remove orphans"
    garbage, deleted = list(orphans.garbage(keep_ms)), 0
    while deleted < len(garbage) and not is_over():
        orphans.delete(garbage[deleted : deleted + _AT_ONCE])
        deleted += _AT_ONCE
    yield "ledger"
    orphans.compact_ledger()
    return Tidied(deleted=garbage[:deleted], merged=merged, into=into)


class _FeedGc(_OrphanFiles, Protocol):
    """The files of one feed; see `tables.delta.gc` and `tables.governed.gc`."""

    def topics(self) -> list[str]:
        """Return the topics of the logs that `land` wrote."""
        ...

    def drop_replaced(self, keep_ms: int) -> Iterator[str]:
        """Remove the rows of generations that were replaced at least ``keep_ms`` ago. Yield each step's name."""
        ...

    def compact(self, topic: str) -> Iterator[str | tuple[int, int]]:
        """Merge a log's small files. Yield each step's name, then the pair (files merged, files made)."""
        ...

    def due(self) -> int:
        """Return how many small files `compact` would merge."""
        ...
