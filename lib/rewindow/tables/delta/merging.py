"""Merge small files of a table into larger ones with the same rows, in one Delta commit with ``dataChange`` false (ADR-110).

A log's new files have the layout of landed files: one generation and partition each, in offset order, named with the CRC-32
of their bytes. The old files stay for runs that were planned on them, until `tables.delta.gc` deletes them.

Each run adds a file to each table, and the more files a table has, the more a commit costs. So `gc` also merges the files of
outputs and of the journal. In tables that several jobs share, it merges the files of this job. It does not merge the files of
changelogs, because snapshots limit their number, and restores read them as they were staged. The footer of a merged file
states how many rows of each run it has, so `check_published` can still count rows by run. The old files stay, because the
ledger names them, and `republish`, `promote` and restores read them.

Within one generation and partition of a log, each offset occurs once, so a file's first and last offset identify its records.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import unquote
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from rewindow.contracts.reserved_names import LOG_COLUMNS
from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import CHANGELOG
from rewindow.control.plan.stored_runs import attempts_of
from rewindow.errors import StorageError
from rewindow.tables.delta.commit import Actions, check_writable, file_stats, partition_values, removal
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.open_table import added_files, direct_problem, open_table, table_path
from rewindow.tables.delta.run_rows import with_run_counts
from rewindow.tables.delta.table_rows import (
    TableFile,
    check_folders,
    column_bounds,
    kept_by_merge,
    read_file,
    table_files,
    table_schema,
)
from rewindow.tables.shared.paths import JOURNAL
from rewindow.tables.shared.publications import SHARED_TABLES, due_tables, publication_id

_SMALL_LOG_BYTES = 16 << 20
"""Files of logs that are larger than this are not merged."""

_MERGED_BYTES = 64 << 20
"""The maximum size of a merged file, because a merged file is in memory while it is written."""

_MOST_FILES = 1_000
"""The number of small files that are merged into one, and about how many files a commit removes. A caller with little time
can stop after any commit."""


class LogPart(NamedTuple):
    """A file of one generation and partition of a log, with offsets ``first`` to ``last``, both inclusive."""

    path: str
    rows: int
    bytes: int
    first: int
    last: int

    @property
    def is_gapless(self) -> bool:
        """Whether the row count matches the offset range."""
        return self.rows == self.last - self.first + 1


def due_merges(parts: Iterable[LogPart], held: Collection[str]) -> list[list[LogPart]]:
    """Return the groups of files to merge: small neighbours in offset order.

    ``parts``: the files of one generation and partition. ``held``: the paths of files that must stay, because the next
    landing opens them by name.
    """
    groups: list[list[LogPart]] = []
    group: list[LogPart] = []
    for part in sorted(parts, key=lambda part: (part.first, part.path)):
        is_due = part.bytes <= _SMALL_LOG_BYTES and part.is_gapless and part.path not in held
        is_next = bool(group) and part.first == group[-1].last + 1 and len(group) < _MOST_FILES
        if group and not (is_due and is_next and sum(small.bytes for small in group) + part.bytes <= _MERGED_BYTES):
            groups.append(group)
            group = []
        if is_due:
            group.append(part)
    return [due for files in (*groups, group) if len(due := _worth_merging(files)) > 1]


class _Sized(Protocol):
    """Any object that describes a file."""

    @property
    def bytes(self) -> int:
        """The size of the file."""
        ...


_SizedFile = TypeVar("_SizedFile", bound=_Sized)
_Due = TypeVar("_Due")


def _due_neighbours(files: Iterable[_SizedFile], least: int) -> list[list[_SizedFile]]:
    """Return the groups of at least ``least`` neighbouring files to merge. No group is larger than `_MERGED_BYTES`."""
    groups: list[list[_SizedFile]] = [[]]
    size = 0
    for file in files:
        if size + file.bytes > _MERGED_BYTES or len(groups[-1]) == _MOST_FILES:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.bytes
    return [due for group in groups if len(due := _worth_merging(group)) >= max(least, 2)]


def _worth_merging(group: list[_SizedFile]) -> list[_SizedFile]:
    return group[kept_by_merge([file.bytes for file in group]) :]


def is_covered(first: int, last: int, parts: Sequence[LogPart]) -> bool:
    """Return whether the files without gaps among ``parts`` together contain all offsets from ``first`` to ``last``."""
    next_offset = first
    for part in sorted(parts, key=lambda part: part.first):
        if part.is_gapless and part.first <= next_offset <= part.last:
            next_offset = part.last + 1
    return next_offset > last


LogPartition = tuple[int, int]
"""A generation and a partition."""

_ATTEMPTS = 5
_FENCE = "rewindow.compact"
"""The application id under which merges of a log are committed, so that only one of two concurrent merges lands."""
SMALL_BYTES = 1 << 20
"""Files of runs that are larger than this are not merged."""
# Like staged files, merged files have no statistics of columns with long texts.
_TEXT_LIMIT = 32


class _Merge(NamedTuple):
    """A merge of files. The decision to merge is based on what a handle has read.

    ``write``: writes the new files, and returns the actions that add them and remove the old files. ``fences``: the
    application ids under which the merge is committed, with their versions. Delta refuses the merge if a commit under one of
    these ids was made after the decision.
    """

    table: DeltaTable
    fences: Mapping[str, int]
    write: Callable[[], Actions]


def _merge_files(step: str, path: str, decide: Callable[[], _Merge | None]) -> Iterator[str | tuple[int, int]]:
    """Merge files of a table. Yield each step's name before it and, after each commit, the numbers of old and new files.

    ``decide`` returns the next merge, or None if there are no files to merge. If another writer commits first, ``decide`` is
    called again. After `_ATTEMPTS` such commits, the table is left to the next call.
    """
    failed = 0
    while failed < _ATTEMPTS:
        merge = decide()
        if merge is None:
            return
        yield step
        actions = merge.write()
        new = {action.path for action in actions if isinstance(action, AddAction)}
        if not new:
            return
        yield f"{step}: written"
        _commit(merge, actions)
        after = open_table(path)
        if after is not None and new <= {file.path for file in table_files(path, after)}:
            yield len(actions) - len(new), len(new)
            failed = 0
        else:
            failed += 1


def _write_merged(
    folder: Folder, attempt: str, values: Mapping[str, Any], rows: pa.Table, stats: Mapping[str, Any]
) -> AddAction:
    """Write rows as a new file of the partition with these values; return the action that adds it.

    Raises `StorageError` (74) if the file has other rows when it is read back.
    """
    stored = partition_values(values)
    directory = "/".join(f"{name}={value}" for name, value in stored.items())
    name, facts = folder.write_staged(directory, attempt, uuid4().hex, rows)
    if not folder.read_table(name).equals(rows):
        raise StorageError(
            "merge-not-as-written",
            "{file} does not contain what was written: check that disk",
            file=folder.full_path(name),
        )
    return AddAction(name, facts.bytes, stored, facts.modified_ms, False, json.dumps(stats))


def _commit(merge: _Merge, actions: Actions) -> None:
    """Try to commit a merge. The caller must read the log to find out whether the merge landed."""
    table = merge.table
    # By itself, Delta would let two commits remove the same files. The application ids make the second merge fail. Because
    # there are no retries, any other commit in between, such as an OPTIMIZE, also makes the merge fail.
    fences = [Transaction(app_id, version) for app_id, version in merge.fences.items()]
    try:
        table.create_write_transaction(
            list(actions),
            mode="append",
            schema=table.schema(),
            partition_by=table.metadata().partition_columns,
            commit_properties=CommitProperties(app_transactions=fences, max_commit_retries=0),
        )
    except Exception:  # noqa: BLE001 - the commit may have landed: the log decides
        time.sleep(0.01)


def _first(due: Iterable[_Due], files_of: Callable[[_Due], Sequence[Any]]) -> list[_Due]:
    """Return the groups to merge in the next commit: the first due groups that together have about `_MOST_FILES` files."""
    first: list[_Due] = []
    count = 0
    for group in due:
        first.append(group)
        count += len(files_of(group))
        if count >= _MOST_FILES:
            break
    return first


def log_parts(path: str, table: DeltaTable) -> dict[LogPartition, list[LogPart]]:
    """Return a log's files by (generation, partition). Files without statistics of their offsets are left out."""
    actions = added_files(table).to_pydict()
    names = ("path", "partition.generation", "partition.partition")
    if not all(name in actions for name in (*names, "min.offset", "max.offset")):
        return {}
    paths, generations, partitions = (actions[name] for name in names)
    check_folders(path, paths, {"generation": generations, "partition": partitions})
    parts: dict[LogPartition, list[LogPart]] = {}
    facts = zip(
        paths, actions["num_records"], actions["size_bytes"], actions["min.offset"], actions["max.offset"], strict=True
    )
    for log_partition, (name, *numbers) in zip(zip(generations, partitions, strict=True), facts, strict=True):
        if None not in numbers:
            parts.setdefault(log_partition, []).append(LogPart(unquote(name), *numbers))
    return parts


def due_in(path: str, held: Collection[str]) -> list[tuple[LogPartition, list[LogPart]]]:
    """Return the groups of a log's files that a merge would turn into one file each."""
    table = open_table(path)
    return _due_logs(path, table, held) if table is not None and not direct_problem(table) else []


def _due_logs(path: str, table: DeltaTable, held: Collection[str]) -> list[tuple[LogPartition, list[LogPart]]]:
    return [
        (log_partition, group)
        for log_partition, parts in sorted(log_parts(path, table).items())
        for group in due_merges(parts, held)
    ]


def compact(path: str, topic: str, held: Collection[str], attempt: str) -> Iterator[str | tuple[int, int]]:
    """Merge a log's small files; see `_merge_files`. Raises `StorageError` (74) for a file that was altered."""

    def decide() -> _Merge | None:
        table = open_table(path)
        due = _due_logs(path, table, held) if table is not None and not direct_problem(table) else []
        if table is None or not due:
            return None
        check_writable(path, table)
        fences = {_FENCE: (table.transaction_version(_FENCE) or 0) + 1}
        return _Merge(
            table, fences, lambda: _write_logs(Folder(path), _first(due, lambda of_part: of_part[1]), attempt)
        )

    return _merge_files(f"compact {topic}", path, decide)


def _write_logs(folder: Folder, due: Sequence[tuple[LogPartition, list[LogPart]]], attempt: str) -> Actions:
    actions: list[AddAction | RemoveAction] = []
    for (generation, partition), group in due:
        rows = _rows_in_order(folder, group)
        if rows is not None:
            values = {"generation": generation, "partition": partition}
            names = [column.name for column in LOG_COLUMNS if column.name in rows.column_names]
            stats = file_stats(rows.select(names), names)
            actions.append(_write_merged(folder, attempt, values, rows.combine_chunks(), stats))
            actions += [removal(part.path, values, data_change=False) for part in group]
    return actions


def _rows_in_order(folder: Folder, group: Sequence[LogPart]) -> pa.Table | None:
    """Return the rows of files, sorted by offset; None if their offsets are not exactly those that the Delta log states.

    If None is returned, the files are not merged. Readers of the log report the error.
    """
    # Reading checks the CRC-32, so a flipped bit is not copied.
    tables = [folder.read_table(part.path) for part in group]
    rows = pa.concat_tables(tables, promote_options="default")
    expected = np.arange(group[0].first, group[-1].last + 1)
    if not np.array_equal(np.asarray(rows["offset"]), expected):
        rows = rows.sort_by("offset")
    return rows if np.array_equal(np.asarray(rows["offset"]), expected) else None


class RunFiles(NamedTuple):
    """The files of a job in one table that may be merged.

    ``fences``: the application ids of commits that remove rows from the table, with their versions. A merge is committed
    under the same ids. So of a concurrent removal and merge, Delta refuses the second, because its decision was based on
    files that are gone.
    """

    path: str
    table: DeltaTable
    files: list[TableFile]
    fences: dict[str, int]


def merged_by(job: str) -> str:
    """Return the text that replaces the attempt in the names of a job's merged files."""
    return f"merged-{job}"


def run_files(warehouse: str, job: str, state: JobState) -> Iterator[RunFiles]:
    """Yield the tables of a job whose files may be merged."""
    yield from (files for opener in _openers(warehouse, job, state).values() if (files := opener()) is not None)


def _openers(warehouse: str, job: str, state: JobState) -> dict[str, Callable[[], RunFiles | None]]:
    """Return, by path of each table of a job, a function that opens the table and returns those files that may be merged."""
    openers: dict[str, Callable[[], RunFiles | None]] = {}
    for branch in state.branches.values():
        for due in due_tables(state, branch.name) if branch.is_kept else ():
            if not due.target.startswith(CHANGELOG):
                fence = publication_id(state.ledger, job, due.target, due.restart.epoch)
                opener = partial(_in_table, warehouse, job, due.table.path, fence, len(due.publications))
                openers.setdefault(due.table.path, opener)
    return openers | {JOURNAL: partial(_in_journal, warehouse, job, state)}


def _in_table(warehouse: str, job: str, name: str, fence: str, publications: int) -> RunFiles | None:
    """Return a table's files that may be merged; None if it has fewer or more publications than the ledger names."""
    path = table_path(warehouse, name)
    table = open_table(path)
    published = table.transaction_version(fence) if table else None
    if table is None or direct_problem(table) or not published or published != publications:
        return None
    return RunFiles(path, table, _own(path, table, SHARED_TABLES.get(name), job), {fence: published})


def _in_journal(warehouse: str, job: str, state: JobState) -> RunFiles | None:
    path = table_path(warehouse, JOURNAL)
    table = open_table(path)
    if table is None or direct_problem(table):
        return None
    fence = f"rewindow.gc/{job}"
    # Only the reports of committed runs are merged. `gc` removes the reports of dead attempts file by file.
    ended = {f"job={job}/{attempt}.parquet" for attempt in attempts_of(state.committed)}
    merged = f"job={job}/{merged_by(job)}-"
    files = [file for file in table_files(path, table) if file.path in ended or file.path.startswith(merged)]
    return RunFiles(path, table, files, {fence: (table.transaction_version(fence) or 0) + 1})


def _own(path: str, table: DeltaTable, column: str | None, job: str) -> list[TableFile]:
    """Return the files of a table whose rows have known runs. If several jobs write the table, return only this job's files."""
    bounds = column_bounds(table, column) if column else {}
    return [
        file
        for file in table_files(path, table)
        if file.rows and file.first_run is not None and (column is None or bounds.get(file.path) == (job, job))
    ]


def due_run_merges(table: RunFiles, least: int) -> list[list[TableFile]]:
    """Return the groups of at least ``least`` files that a merge would turn into one file each."""
    small = [file for file in table.files if file.bytes <= SMALL_BYTES]
    small.sort(key=lambda file: (file.first_run or 0, file.path))
    return _due_neighbours(small, least)


def merge(warehouse: str, job: str, state: JobState, least: int) -> Iterator[str | tuple[int, int]]:
    """Merge small files, table by table; see `_merge_files`. Raises `StorageError` (74) for a file that was altered."""
    for name, opener in _openers(warehouse, job, state).items():
        yield from _merge_files(f"merge {name}", table_path(warehouse, name), partial(_decide_runs, opener, job, least))


def _decide_runs(opener: Callable[[], RunFiles | None], job: str, least: int) -> _Merge | None:
    table = opener()
    groups = _first(due_run_merges(table, least), list) if table else []
    return _Merge(table.table, table.fences, lambda: _write_runs(table, groups, job)) if table and groups else None


def _write_runs(table: RunFiles, groups: Iterable[Sequence[TableFile]], job: str) -> Actions:
    actions: list[AddAction | RemoveAction] = []
    for group in groups:
        actions.append(_merged(table, group, job))
        actions += [removal(file.path, file.partition, data_change=False) for file in group]
    return actions


def _merged(table: RunFiles, group: Sequence[TableFile], job: str) -> AddAction:
    """Write the rows of a group of files to one file, in the order of the group."""
    folder, schema, values = Folder(table.path), table_schema(table.table), group[0].partition
    rows = pa.concat_tables([read_file(folder, file, schema) for file in group])
    stored = with_run_counts(rows.drop_columns(list(values)).combine_chunks())
    bounded = [name for name in stored.column_names if _has_bounds(stored[name])]
    return _write_merged(folder, merged_by(job), values, stored, file_stats(stored, bounded))


def _has_bounds(column: pa.ChunkedArray) -> bool:
    if pa.types.is_string(column.type):
        return bool((pc.max(pc.utf8_length(column)).as_py() or 0) <= _TEXT_LIMIT)
    return bool(pa.types.is_integer(column.type))
