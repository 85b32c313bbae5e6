"""The garbage collection of jobs and feeds: merge small files of their tables, and delete files that nothing needs any more.

Files and reports of attempts that are dead according to the ledger are deleted at once. Two kinds of files are deleted only
when they are older than the retention: files that were removed from a table, and files of attempts that no ledger row names
(verifications, snapshots or repairs that died). A file is never deleted only because it is not committed yet. Removed files
of a log are deleted only if other files are proven to have their rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, partial, reduce
from itertools import chain
from urllib.parse import unquote
from uuid import uuid4

import pyarrow.compute as pc
from deltalake import DeltaTable

from rewindow.contracts.staged_files import StagedFile
from rewindow.control.garbage_collection import UNKNOWN_MS, Garbage
from rewindow.control.ingest.feed_progress import Progress, fold_progress
from rewindow.control.ingest.landings import GENERATION, LANDING
from rewindow.control.plan.job_fold import fold_row
from rewindow.control.plan.job_state import Branch, JobState, LedgerRow
from rewindow.control.plan.planner import Alive
from rewindow.control.plan.retention import dead_attempts
from rewindow.control.plan.spec import CHANGELOG, OUTPUT
from rewindow.control.plan.stored_runs import attempts_of, bindings_of, run_facts
from rewindow.errors import StorageError
from rewindow.tables.delta.commit import commit_files
from rewindow.tables.delta.create_table import is_of_another
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.ledger import Ledger, check_once
from rewindow.tables.delta.merging import (
    LogPartition,
    compact,
    due_in,
    due_run_merges,
    is_covered,
    log_parts,
    merge,
    merged_by,
    run_files,
)
from rewindow.tables.delta.open_table import direct_problem, open_table, table_path
from rewindow.tables.delta.retractions import removals
from rewindow.tables.delta.table_rows import table_files
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.ledger import check_stored
from rewindow.tables.shared.paths import JOURNAL, LANDINGS, QUARANTINE, RUNS, staged_by
from rewindow.tables.shared.publications import SHARED_TABLES, published_attempts
from rewindow.tables.shared.stored_feeds import check_stored_feed

_HOUR_MS = 3_600_000
_LEFT = "left the table"
_DEAD_REPORTS = "the reports of an attempt that did not finish"


class Unnamed:
    """The files in a table's folder that the table does not name. The folder is listed once."""

    def __init__(self, root: str, table: DeltaTable | None, suffix: str | tuple[str, ...], below: str = "") -> None:
        """Bind to a table's path and its handle (None: there is no table).

        ``suffix``: the end of the files' names. ``below``: the subfolder to list; ``""`` lists the whole folder.
        """
        self._root, self._table, self._suffix, self._below = root, table, suffix, below
        self._facts: dict[str, Callable[[], tuple[int, int]]] = {}
        # A `cache` of the method would make a reference cycle, and the handle would return to its cache late (see `handle`).
        self._left: dict[int, set[str]] = {}

    def paths(self) -> Iterator[str]:
        """Yield the path of each file, in order. Sizes and times are not read, because most files are not garbage."""
        named = {file.path for file in table_files(self._root, self._table)} if self._table else set()
        start = f"{self._below}/" if self._below else ""
        for name, facts in Folder(f"{self._root}/{self._below}".rstrip("/")).listed():
            path = f"{start}{name}"
            if path not in named and path.endswith(self._suffix):
                self._facts[path] = facts
                yield path

    def is_left(self, path: str, keep_ms: int) -> bool:
        """Return whether, at least ``keep_ms`` ago, a file was removed from the table, or was written but never added."""
        # A file is written before it is removed. So if it was written too recently, the log need not be read.
        facts = self._facts_of(path)
        is_old = facts is not None and facts[1] <= time.time_ns() // 1_000_000 - keep_ms
        if not is_old or self._table is None:
            return False
        if keep_ms not in self._left:
            self._left[keep_ms] = _left_before(self._table, keep_ms)
        return path in self._left[keep_ms]

    def garbage(self, path: str, why: str) -> Iterator[Garbage]:
        """Yield the unnamed file at ``path`` as garbage, unless it is gone."""
        if (facts := self._facts_of(path)) is not None:
            yield Garbage(self._root, path, facts[0], why)

    def old_garbage(self, start: str, why: str) -> Iterator[Garbage]:
        """Yield, as garbage, the files whose names begin with ``start`` and that were removed at least a day ago."""
        for path in self.paths():
            if path.rpartition("/")[2].startswith(start) and self.is_left(path, UNKNOWN_MS):
                yield from self.garbage(path, why)

    def _facts_of(self, path: str) -> tuple[int, int] | None:
        try:
            return self._facts[path]()
        except FileNotFoundError:
            return None


def _left_before(table: DeltaTable, keep_ms: int) -> set[str]:
    """Return the unnamed files in a table's folder that were removed or written at least ``keep_ms`` ago."""
    hours = -(-keep_ms // _HOUR_MS)
    paths = table.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False, full=True)
    return {unquote(path) for path in paths}


class JobGc:
    """The files of one job."""

    def __init__(self, tables: DeltaTables, job: str, alive: Alive) -> None:
        """Bind to a job. ``alive`` returns whether an attempt still runs."""
        self._tables, self._job, self._alive = tables, job, alive

    def dead_reports(self) -> int:
        """Return how many report files `drop_reports` would remove."""
        return len(self._orphan_files().dead_reports())

    def drop_reports(self) -> int:
        """Remove the reports of dead attempts from the journal; return how many report files were removed."""
        return self._orphan_files().drop_reports()

    def freed(self, rows: Sequence[LedgerRow], keep_ms: int) -> Iterator[Garbage]:
        """Yield the files that would become garbage if `drop_reports` ran, and if ``rows`` were appended and published."""
        yield from self._orphan_files().freed(rows, keep_ms)

    def merge(self, least: int) -> Iterator[str | tuple[int, int]]:
        """Merge the small files of runs; see `merging.merge`."""
        yield from merge(self._tables.warehouse, self._job, self._tables.state(self._job), least)

    def due(self, least: int) -> int:
        """Return how many files `merge` would merge."""
        tables = run_files(self._tables.warehouse, self._job, self._tables.state(self._job))
        return sum(len(group) for table in tables for group in due_run_merges(table, least))

    def garbage(self, keep_ms: int) -> Iterator[Garbage]:
        """Yield the files and folders that can be deleted now. All are found before the first is yielded."""
        ledger = self._tables.ledger(self._job)
        check_once(Folder(ledger.path), self._job, ledger.read(), check_stored)
        yield from list(self._orphan_files().garbage(keep_ms))

    def delete(self, garbage: Sequence[Garbage]) -> None:
        """Delete files and folders, if they still exist."""
        for item in garbage:
            Folder(item.folder).delete(item.path, is_folder=item.is_folder)

    def compact_ledger(self) -> None:
        """Merge the ledger's files."""
        self._tables.ledger(self._job).compact()

    def _orphan_files(self) -> _JobOrphanFiles:
        state = self._tables.state(self._job)
        plans = [branch.pending for branch in state.branches.values() if branch.pending]
        is_quiet = not any(self._alive(plan.attempt) for plan in plans)
        return _JobOrphanFiles(self._tables.warehouse, self._job, state, dead_attempts(state), is_quiet=is_quiet)


class _JobOrphanFiles:
    """The files of one job that may be garbage."""

    def __init__(self, warehouse: str, job: str, state: JobState, dead: Collection[str], *, is_quiet: bool) -> None:
        """Bind to a job's state. ``is_quiet``: whether no run of the job is in progress."""
        self._warehouse, self._job, self._state = warehouse, job, state
        self._dead, self._is_quiet = frozenset(dead), is_quiet
        pending = [branch.pending for branch in state.branches.values() if branch.pending]
        self._pending = {plan.attempt.id for plan in pending} | {plan.repeats or "" for plan in pending}

    def garbage(self, keep_ms: int) -> Iterator[Garbage]:
        """Yield the files and folders that can be deleted now."""
        for path, targets in sorted(self._tables().items()):
            yield from self._of_table(path, targets, keep_ms)
        yield from self._internal(keep_ms)
        yield from self._of_ledgers()

    def freed(self, rows: Sequence[LedgerRow], keep_ms: int) -> Iterator[Garbage]:
        """See `JobGc.freed`. A file that leaves a table now can be deleted now only if there is no retention."""
        journal = table_path(self._warehouse, JOURNAL)
        for path, size in self.dead_reports().items():
            yield Garbage(journal, path, size, _DEAD_REPORTS)
        after = reduce(fold_row, rows, self._state)
        for path, targets in sorted(self._tables().items()) if rows and not keep_ms and self._is_quiet else ():
            root = table_path(self._warehouse, path)
            table = open_table(root)
            if table is None or not any(target.startswith(CHANGELOG) for target in targets):
                continue
            forgotten = self._known - published_attempts(after.shared(path))
            for file in table_files(root, table):
                if staged_by(file.path) in forgotten:
                    yield Garbage(root, file.path, file.bytes, _LEFT)

    def dead_reports(self) -> dict[str, int]:
        """Return the files with reports of dead attempts that the journal names. Maps each file to its size."""
        root = table_path(self._warehouse, JOURNAL)
        table, dead = open_table(root), {f"job={self._job}/{attempt}.parquet" for attempt in self._dead}
        return {file.path: file.bytes for file in (table_files(root, table) if table else ()) if file.path in dead}

    def drop_reports(self) -> int:
        """Remove the reports of dead attempts from the journal in one commit; return how many files were removed."""
        path, listed = table_path(self._warehouse, JOURNAL), self.dead_reports().keys()
        table = open_table(path)
        if table is None or not listed:
            return 0
        app_id = f"rewindow.gc/{self._job}"
        version = (table.transaction_version(app_id) or 0) + 1
        nothing: list[StagedFile] = []
        commit_files(
            path,
            nothing,
            app_id=app_id,
            version=version,
            table=table,
            retract=lambda root, of: removals(root, of, listed),
        )
        return len(listed)

    def _tables(self) -> dict[str, set[str]]:
        """Return the tables that a run of the job ever wrote or may be writing: their paths, mapped to their targets."""
        branches = self._state.branches.values()
        pending = (item.pending.binding.tables for item in branches if item.pending is not None)
        written = chain((item.tables for item in bindings_of(self._state)), (item.tables for item in branches), pending)
        reset = self._state.reset.tables if self._state.reset else {}
        targets_of: dict[str, set[str]] = {path: set(targets) for path, targets in reset.items()}
        for tables in written:
            for target, table in tables.items():
                targets_of.setdefault(table.path, set()).add(target)
        return targets_of

    def _of_table(self, path: str, targets: Collection[str], keep_ms: int) -> Iterator[Garbage]:
        root = table_path(self._warehouse, path)
        table = open_table(root)
        if is_of_another(table, self._job):
            return
        if path in self._dropped:
            yield from self._whole(root, keep_ms)
            return
        unnamed = Unnamed(root, table, ".parquet")
        counts, attempts = self._counting(path, targets), self._known
        # Runs read changelogs. So files removed from a changelog are kept while a run is in progress.
        is_changelog = any(target.startswith(CHANGELOG) for target in targets)
        for name in unnamed.paths():
            attempt = staged_by(name)
            if attempt in self._dead:
                yield from unnamed.garbage(name, "of an attempt that did not finish")
            elif attempt == merged_by(self._job) and unnamed.is_left(name, max(keep_ms, UNKNOWN_MS)):
                yield from unnamed.garbage(name, "merged into another file")
            elif path in SHARED_TABLES or attempt in self._pending or attempt in counts:
                continue
            elif attempt in attempts and (self._is_quiet or not is_changelog) and unnamed.is_left(name, keep_ms):
                yield from unnamed.garbage(name, _LEFT)
            elif attempt not in attempts and unnamed.is_left(name, max(keep_ms, UNKNOWN_MS)):
                yield from unnamed.garbage(name, "of an unknown attempt")

    def _internal(self, keep_ms: int) -> Iterator[Garbage]:
        """Yield the internal logs of attempts: those of dead attempts at once, those of other attempts when they are old."""
        root = table_path(self._warehouse, f"internal/{self._job}")
        sizes: dict[str, tuple[int, int]] = {}
        for name, size, modified_ms in Folder(root).files():
            attempt = name.partition("/")[0]
            size_before, last = sizes.get(attempt, (0, 0))
            sizes[attempt] = (size_before + size, max(last, modified_ms))
        now_ms, known_attempts = time.time_ns() // 1_000_000, self._known
        for attempt, (size, last) in sorted(sizes.items()):
            if attempt in self._pending:
                continue
            keep = keep_ms if attempt in known_attempts else max(keep_ms, UNKNOWN_MS)
            if attempt in self._dead or last < now_ms - keep:
                yield Garbage(root, attempt, size, "the internal logs of an attempt", is_folder=True)

    def _of_ledgers(self) -> Iterator[Garbage]:
        """Yield reports of dead attempts, and files of ledger and journal that were merged into others at least a day ago."""
        root = table_path(self._warehouse, JOURNAL)
        table = open_table(root)
        listed = {file.path for file in table_files(root, table)} if table else set()
        for attempt in sorted(self._dead):
            path = f"job={self._job}/{attempt}.parquet"
            facts = Folder(root).facts(path)
            if facts is not None and path not in listed:
                yield Garbage(root, path, facts.bytes, _DEAD_REPORTS)
        merged = Unnamed(root, table, ".parquet", f"job={self._job}")
        yield from merged.old_garbage(f"{merged_by(self._job)}-", "merged into another file")
        root = table_path(self._warehouse, RUNS)
        rows = Unnamed(root, open_table(root), ".parquet", f"name={self._job}")
        yield from rows.old_garbage("", "merged into another file of the ledger")

    def _whole(self, root: str, keep_ms: int) -> Iterator[Garbage]:
        """Yield the table of a dropped branch as garbage if the table has not changed for the retention time."""
        files = list(Folder(root).files())
        last = max((modified_ms for _, _, modified_ms in files), default=0)
        if files and last <= time.time_ns() // 1_000_000 - keep_ms:
            parent, _, name = root.rpartition("/")
            yield Garbage(parent, name, sum(size for _, size, _ in files), "a dropped branch's table", is_folder=True)

    @cached_property
    def _dropped(self) -> set[str]:
        """The paths of output tables that belong only to dropped branches."""
        branches = self._state.branches.values()
        kept = {path for branch in branches if branch.is_kept for path in _outputs(branch)}
        dropped = (branch for branch in branches if not branch.is_kept)
        return {path for branch in dropped for path in _own_outputs(branch)} - kept

    def _counting(self, path: str, targets: Collection[str]) -> AbstractSet[str]:
        """Return the attempts whose files this table contains or may have to contain again."""
        if any(target.startswith(CHANGELOG) for target in targets):
            return published_attempts(self._state.shared(path))
        branches = [branch for branch in self._state.branches.values() if branch.is_kept]
        return {attempt for branch in branches for attempt in attempts_of(branch.runs, branch.inherited)}

    @cached_property
    def _known(self) -> set[str]:
        snapshots = self._state.snapshots.values()
        runs = {attempt for run in run_facts(self._state) for attempt in (run.planned_by, run.staged_by)}
        return runs | {
            attempt
            for run_of_snapshot in snapshots
            for attempt in (run_of_snapshot.spec.attempt.id, run_of_snapshot.commit.attempt)
        }


def _outputs(branch: Branch) -> set[str]:
    return {table.path for target, table in branch.tables.items() if target.startswith(OUTPUT)}


def _own_outputs(branch: Branch) -> set[str]:
    """Return the paths of the outputs that a branch's own runs wrote; an empty set if some of these are another branch's."""
    runs = branch.own_runs
    if any(run.spec.branch != branch.name for run in runs):
        return set()
    tables = [table for run in runs for table in run.spec.binding.tables.items()]
    return _outputs(branch) & {table.path for target, table in tables if target.startswith(OUTPUT)}


class FeedGc:
    """The files of one feed."""

    def __init__(self, tables: DeltaFeedTables, feed: str, is_quiet: Callable[[], bool]) -> None:
        """Bind to a feed. ``is_quiet`` returns whether no run that reads the feed is in progress."""
        self._tables, self._feed, self._is_quiet = tables, feed, is_quiet

    def topics(self) -> list[str]:
        """Return the topics whose logs `land` has ever written. Logs that are read directly from their sources are left out."""
        return list(self._progress.topics)

    def drop_replaced(self, keep_ms: int) -> Iterator[str]:
        """Remove the rows of replaced generations from logs and quarantine; yield the name of each commit before making it."""
        replaced = self._replaced(keep_ms)
        refused = self._refused_in(replaced)
        roots = [(self._root(topic), topic) for topic in self._progress.topics if replaced]
        for root, name in [*roots, (table_path(self._tables.warehouse, QUARANTINE), "quarantine")]:
            table = open_table(root) if replaced else None
            if table is None or direct_problem(table):
                continue
            left = {
                file.path for file in table_files(root, table) if file.path in refused or _is_of(file.path, replaced)
            }
            if left:
                yield f"drop {name}"
                app_id = f"rewindow.gc/{self._feed}"
                version = (table.transaction_version(app_id) or 0) + 1
                remove = partial(removals, names=left)
                nothing: list[StagedFile] = []
                commit_files(root, nothing, app_id=app_id, version=version, table=table, retract=remove)

    def compact(self, topic: str) -> Iterator[str | tuple[int, int]]:
        """Merge a log's small files; see `merging.compact`."""
        return compact(self._root(topic), topic, self._progress.held_paths(topic), uuid4().hex)

    def due(self) -> int:
        """Return how many files of all logs `compact` would merge."""
        progress = self._progress
        merges = (due_in(self._root(topic), progress.held_paths(topic)) for topic in progress.topics)
        return sum(len(group) for merge in merges for _, group in merge)

    def garbage(self, keep_ms: int) -> Iterator[Garbage]:
        """Yield the files that can be deleted now. All are found before the first is yielded."""
        ledger = self._ledger()
        check_once(Folder(ledger.path), self._feed, self._tables.state(self._feed), check_stored_feed)
        progress = self._progress
        replaced = self._replaced(keep_ms)
        of_logs = [item for topic in progress.topics for item in self._of_log(topic, progress, keep_ms, replaced)]
        of_quarantine = self._of_quarantine(progress, keep_ms, self._refused_in(replaced))
        yield from [*of_logs, *of_quarantine, *self._of_ledger()]

    def delete(self, garbage: Sequence[Garbage]) -> None:
        """Delete files, if they still exist."""
        for item in garbage:
            Folder(item.folder).delete(item.path, is_folder=item.is_folder)

    def compact_ledger(self) -> None:
        """Merge the landing ledger's files."""
        self._ledger().compact()

    def _replaced(self, keep_ms: int) -> frozenset[int]:
        """Return the generations that were replaced at least ``keep_ms`` ago by a generation that kept none of their landings.

        Later runs, `why` and `verify` do not read such a generation. While a run reads the feed, an empty set is returned.
        """
        before: set[int] = set()
        replaced: set[int] = set()
        for row in self._tables.state(self._feed):
            if row.kind == GENERATION:
                is_due = not row.body["kept"] and row.recorded_at <= time.time_ns() // 1_000_000 - keep_ms
                replaced |= before if is_due else set()
                before.add(row.body["generation"])
        return frozenset(replaced) if replaced and self._is_quiet() else frozenset()

    def _refused_in(self, generations: Collection[int]) -> set[str]:
        """Return the files of the quarantine with rows of these generations."""
        landings = [row.body for row in self._tables.state(self._feed) if row.kind == LANDING] if generations else []
        bodies = [body for body in landings if body["generation"] in generations]
        return {file["path"] for body in bodies for files in body["quarantine"].values() for file in files}

    def _of_log(self, topic: str, progress: Progress, keep_ms: int, replaced: Collection[int]) -> Iterator[Garbage]:
        """Yield files of dead landings at once, and other unnamed files when they are old and other files have their offsets.

        That the table does not name a file is not enough: a RESTORE may have removed the file, and the RESTORE may be undone.
        """
        root = self._root(topic)
        table = open_table(root)
        if table is None or direct_problem(table):
            return
        parts, held, is_quiet = log_parts(root, table), progress.held_paths(topic), self._is_quiet()
        unnamed = Unnamed(root, table, (".parquet", ".arrow"))
        for name in unnamed.paths():
            if staged_by(name) in progress.dead:
                yield from unnamed.garbage(name, "of a landing that died")
            elif is_quiet and _is_of(name, replaced) and unnamed.is_left(name, keep_ms):
                yield from unnamed.garbage(name, "of a replaced generation")
            elif is_quiet and name not in held and unnamed.is_left(name, max(keep_ms, UNKNOWN_MS)):
                log_partition = _log_partition(name)
                offsets = self._offsets(topic, name) if log_partition else None
                if log_partition and offsets and is_covered(*offsets, parts.get(log_partition, ())):
                    yield from unnamed.garbage(name, "its rows are in another file")

    def _offsets(self, topic: str, name: str) -> tuple[int, int] | None:
        """Return the first and the last offset in a log's file; None if they are unknown."""
        # The file itself is read: its landing may be one of thousands whose rows this process has not read.
        try:
            offsets = pc.min_max(Folder(self._root(topic)).read_table(name, ["offset"])["offset"]).as_py()
        except StorageError:
            return self._landed(topic).get(name)
        return (0, -1) if offsets["min"] is None else (offsets["min"], offsets["max"])

    def _landed(self, topic: str) -> dict[str, tuple[int, int]]:
        """Return the first and last offset of each file that a landing names, by path. Reads the whole ledger."""
        landings = [row.body for row in self._tables.state(self._feed) if row.kind == LANDING]
        files = [file for body in landings for file in body.get("files", {}).get(topic, ())]
        bounds = {file["path"]: file["stats"] for file in files}
        return {path: (of["minValues"]["offset"], of["maxValues"]["offset"]) for path, of in bounds.items()}

    def _of_quarantine(self, progress: Progress, keep_ms: int, refused: Collection[str]) -> Iterator[Garbage]:
        root = table_path(self._tables.warehouse, QUARANTINE)
        unnamed = Unnamed(root, open_table(root), "")
        for name in unnamed.paths() if progress.dead or refused else ():
            if staged_by(name) in progress.dead:
                yield from unnamed.garbage(name, "of a landing that died")
            elif name in refused and unnamed.is_left(name, keep_ms):
                yield from unnamed.garbage(name, "of a replaced generation")

    def _of_ledger(self) -> Iterator[Garbage]:
        root = table_path(self._tables.warehouse, LANDINGS)
        rows = Unnamed(root, open_table(root), ".parquet", f"name={self._feed}")
        yield from rows.old_garbage("", "merged into another file of the ledger")

    def _ledger(self) -> Ledger:
        return Ledger(table_path(self._tables.warehouse, LANDINGS), self._feed)

    @property
    def _progress(self) -> Progress:
        return fold_progress(self._tables.state(self._feed))

    def _root(self, topic: str) -> str:
        return self._tables.roots(self._feed, topic)[0]


def _is_of(name: str, generations: Collection[int]) -> bool:
    """Return whether a file of a log has rows of one of these generations, given its path below the log's folder."""
    log_partition = _log_partition(name)
    return log_partition is not None and log_partition[0] in generations


def _log_partition(name: str) -> LogPartition | None:
    values = dict(part.partition("=")[::2] for part in name.split("/")[:-1])
    try:
        return int(values["generation"]), int(values["partition"])
    except (KeyError, ValueError):
        return None
