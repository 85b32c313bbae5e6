"""Replace small files of a table by larger ones with the same rows, in one Delta commit with ``dataChange`` false.

What is merged is decided elsewhere: by `compaction` for logs, by `merge_runs` for the tables of jobs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction

from rewindow.errors import StorageError
from rewindow.tables.delta.actions import Actions, partition_values
from rewindow.tables.delta.commit import open_table
from rewindow.tables.delta.content_hash import table_files
from rewindow.tables.delta.files import Folder

_ATTEMPTS = 5


class Merge(NamedTuple):
    """A merge as decided on a handle. ``write`` writes the new files; its actions add them and remove the old ones.

    ``fences``: application ids with the versions under which the merge is committed. Delta refuses it if one of them was
    committed after the decision.
    """

    table: DeltaTable
    fences: Mapping[str, int]
    write: Callable[[], Actions]


def merge_files(step: str, path: str, decide: Callable[[], Merge | None]) -> Iterator[str | tuple[int, int]]:
    """Merge files of a table. Yield the name of each step before it, then how many files became how many.

    If another commit comes first, decide again; after `_ATTEMPTS` leave the table to the next call. ``decide`` returns
    None if nothing is to be merged.
    """
    for _ in range(_ATTEMPTS):
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
            return


def write_merged(
    folder: Folder, attempt: str, values: Mapping[str, Any], rows: pa.Table, stats: Mapping[str, Any]
) -> AddAction:
    """Write rows as a new file of the partition with these values; return the action that adds it.

    Raises `StorageError` (74) if the file, read back, has other rows.
    """
    stored = partition_values(values)
    directory = "/".join(f"{name}={value}" for name, value in stored.items())
    name, facts = folder.write_staged(directory, attempt, uuid4().hex, rows)
    if not folder.read_table(name).equals(rows):
        message = f"{folder.full_path(name)} does not contain what was written: check that disk"
        raise StorageError(message)
    return AddAction(name, facts.bytes, stored, facts.modified_ms, False, json.dumps(stats))


def _commit(merge: Merge, actions: Actions) -> None:
    """Try to commit through the handle on which the merge was decided. The caller reads the log to see whether it landed."""
    table = merge.table
    # Delta itself lets two commits remove the same files. The transaction ids make the second merge fail. Because there are
    # no retries, any other commit in between (OPTIMIZE) makes this one fail.
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
