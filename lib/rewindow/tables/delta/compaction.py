"""Merge a log's small files into larger ones, in one Delta commit with ``dataChange`` false.

New files have the layout of landed files: one generation and partition each, in offset order, named with the CRC-32 of
their bytes. The old files stay for runs that were planned on them, until `tables.delta.gc_feed` deletes them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from rewindow.contracts.ingest import LOG_COLUMNS
from rewindow.control.plan.compaction import LogPart, due_merges
from rewindow.errors import StorageError
from rewindow.tables.delta.commit import open_table
from rewindow.tables.delta.content_hash import check_folders
from rewindow.tables.delta.features import check_writable, direct_problem
from rewindow.tables.delta.files import Folder

LogPartition = tuple[int, int]
"""A generation and a partition."""

_ATTEMPTS = 5


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
    """Merge a log's small files. Yield the name of each step before it, then how many files became how many.

    If another commit comes first, start again; after `_ATTEMPTS` leave the log to the next call. Raises `StorageError`
    (74) for a file that was altered.
    """
    for _ in range(_ATTEMPTS):
        table = open_table(path)
        due = _due(path, table, held) if table is not None and not direct_problem(table) else []
        if table is None or not due:
            break
        check_writable(path, table)
        yield f"compact {topic}"
        actions: list[AddAction | RemoveAction] = []
        new = set()
        for log_partition, group in due:
            added = _merged(Folder(path), log_partition, group, attempt)
            if added is not None:
                actions += [added, *(_removal(part, log_partition) for part in group)]
                new.add(added.path)
        if not new:
            break
        yield f"compact {topic}: written"
        _commit(table, actions)
        after = open_table(path)
        if after is not None and new <= {part.path for parts in log_parts(path, after).values() for part in parts}:
            yield len(actions) - len(new), len(new)
            return
    yield 0, 0


def _merged(folder: Folder, log_partition: LogPartition, group: Sequence[LogPart], attempt: str) -> AddAction | None:
    """Write the rows of some files as one file; None if their offsets are not exactly those stated: readers report that."""
    tables = [folder.read_table(part.path) for part in group]  # checks their CRC-32, so a flipped bit is not copied
    rows = pa.concat_tables(tables, promote_options="default")
    expected = np.arange(group[0].first, group[-1].last + 1)
    if not np.array_equal(np.asarray(rows["offset"]), expected):
        rows = rows.sort_by("offset")
        if not np.array_equal(np.asarray(rows["offset"]), expected):
            return None
    generation, partition = log_partition
    directory = f"generation={generation}/partition={partition}"
    name, facts = folder.write_staged(directory, attempt, uuid4().hex, rows.combine_chunks())
    if not folder.read_table(name).equals(rows):
        message = f"{folder.full_path(name)} does not contain what was written: check that disk"
        raise StorageError(message)
    values: dict[str, str | None] = {"generation": str(generation), "partition": str(partition)}
    return AddAction(name, facts.bytes, values, facts.modified_ms, False, json.dumps(_stats(rows)))


def _stats(rows: pa.Table) -> dict[str, Any]:
    names = [column.name for column in LOG_COLUMNS if column.name in rows.column_names]
    bounds = {name: pc.min_max(rows[name]).as_py() for name in names}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: bound["min"] for name, bound in bounds.items() if bound["min"] is not None},
        "maxValues": {name: bound["max"] for name, bound in bounds.items() if bound["max"] is not None},
        "nullCount": {name: rows[name].null_count for name in names},
    }


def _removal(part: LogPart, log_partition: LogPartition) -> RemoveAction:
    values: dict[str, str | None] = {"generation": str(log_partition[0]), "partition": str(log_partition[1])}
    return RemoveAction(part.path, False, time.time_ns() // 1_000_000, None, values)


def _commit(table: DeltaTable, actions: Sequence[AddAction | RemoveAction]) -> None:
    """Try to commit through the handle on which the merge was decided. The caller reads the log to see whether it landed."""
    app_id = "rewindow.compact"
    version = (table.transaction_version(app_id) or 0) + 1
    try:
        table.create_write_transaction(
            list(actions),
            mode="append",
            schema=table.schema(),
            partition_by=table.metadata().partition_columns,
            # Delta itself lets two commits remove the same files. The transaction id makes a second merge fail. Because
            # there are no retries, any other commit in between (OPTIMIZE) makes this one fail.
            commit_properties=CommitProperties(app_transactions=[Transaction(app_id, version)], max_commit_retries=0),
        )
    except Exception:  # noqa: BLE001 - the commit may have landed: the log decides
        time.sleep(0.01)
