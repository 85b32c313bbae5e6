"""Merge a log's small files into larger ones, in one Delta commit with ``dataChange`` false.

New files have the layout of landed files: one generation and partition each, in offset order, named with the CRC-32 of
their bytes. The old files stay for runs that were planned on them, until `tables.delta.gc_feed` deletes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from rewindow.contracts.reserved_names import LOG_COLUMNS
from rewindow.control.plan.compaction import LogPart, due_merges
from rewindow.tables.delta.actions import Actions, file_stats, removal
from rewindow.tables.delta.commit import open_table
from rewindow.tables.delta.content_hash import check_folders
from rewindow.tables.delta.features import check_writable, direct_problem
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.merge_files import Merge, merge_files, write_merged

LogPartition = tuple[int, int]
"""A generation and a partition."""

_FENCE = "rewindow.compact"
"""The application id of the merges of a log, so that of two at the same time only one lands."""


def log_parts(path: str, table: DeltaTable) -> dict[LogPartition, list[LogPart]]:
    """Return a log's files by generation and partition; files without statistics of their offsets are left out."""
    actions = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    names = ("path", "partition.generation", "partition.partition")
    if not all(name in actions for name in (*names, "min.offset", "max.offset")):
        return {}
    paths, generations, partitions = (actions[name] for name in names)
    check_folders(path, paths, {"generation": generations, "partition": partitions})
    found: dict[LogPartition, list[LogPart]] = {}
    facts = zip(
        paths, actions["num_records"], actions["size_bytes"], actions["min.offset"], actions["max.offset"], strict=True
    )
    for log_partition, (name, *numbers) in zip(zip(generations, partitions, strict=True), facts, strict=True):
        if None not in numbers:
            found.setdefault(log_partition, []).append(LogPart(unquote(name), *numbers))
    return found


def due_in(path: str, held: Collection[str]) -> list[tuple[LogPartition, list[LogPart]]]:
    """Return the groups of a log's files that a merge would turn into one file each."""
    table = open_table(path)
    return _due(path, table, held) if table is not None and not direct_problem(table) else []


def _due(path: str, table: DeltaTable, held: Collection[str]) -> list[tuple[LogPartition, list[LogPart]]]:
    return [
        (log_partition, group)
        for log_partition, parts in sorted(log_parts(path, table).items())
        for group in due_merges(parts, held)
    ]


def compact(path: str, topic: str, held: Collection[str], attempt: str) -> Iterator[str | tuple[int, int]]:
    """Merge a log's small files; see `merge_files`. Raises `StorageError` (74) for a file that was altered."""

    def decide() -> Merge | None:
        table = open_table(path)
        due = _due(path, table, held) if table is not None and not direct_problem(table) else []
        if table is None or not due:
            return None
        check_writable(path, table)
        fences = {_FENCE: (table.transaction_version(_FENCE) or 0) + 1}
        return Merge(table, fences, lambda: _write(Folder(path), due, attempt))

    return merge_files(f"compact {topic}", path, decide)


def _write(folder: Folder, due: Sequence[tuple[LogPartition, list[LogPart]]], attempt: str) -> Actions:
    actions: list[AddAction | RemoveAction] = []
    for (generation, partition), group in due:
        rows = _rows_in_order(folder, group)
        if rows is not None:
            values = {"generation": generation, "partition": partition}
            names = [column.name for column in LOG_COLUMNS if column.name in rows.column_names]
            stats = file_stats(rows.select(names), names)
            actions.append(write_merged(folder, attempt, values, rows.combine_chunks(), stats))
            actions += [removal(part.path, values, data_change=False) for part in group]
    return actions


def _rows_in_order(folder: Folder, group: Sequence[LogPart]) -> pa.Table | None:
    """Return the rows of some files by offset; None if their offsets are not exactly those stated: readers report that."""
    tables = [folder.read_table(part.path) for part in group]  # checks their CRC-32, so a flipped bit is not copied
    rows = pa.concat_tables(tables, promote_options="default")
    expected = np.arange(group[0].first, group[-1].last + 1)
    if not np.array_equal(np.asarray(rows["offset"]), expected):
        rows = rows.sort_by("offset")
    return rows if np.array_equal(np.asarray(rows["offset"]), expected) else None
