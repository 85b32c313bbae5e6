"""Commit files to Delta tables.

A commit is identified by an application id and a version, and lands exactly once. The handle that has read the last version
of the id writes the next one. After an error, the log is read again to find out which commits have landed
(`docs/internals/design.md`, "The commit").

Only tables with features that direct access supports are accepted. Ignoring a feature would break a table without an error.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction

from rewindow.contracts.staged_files import StagedFile
from rewindow.errors import InvariantError, StorageError, not_committed
from rewindow.tables.delta.delta_log import CLEANED_EVERY, append_commit, is_append, is_checkpoint_due
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.handle import Handle, release
from rewindow.tables.delta.open_table import open_table

Actions = Sequence[AddAction | RemoveAction]
Retract = Callable[[str, DeltaTable], Actions]
"""A function that gets a table's path and handle. It returns actions for the commit that also adds new files."""

_ATTEMPTS = 8
_LOOKS = 3
"""A stale handle or listing may show a gap in the log. A commit fails only if the log shows a gap this many times in a row."""
_CLOSED = 2**62
"""The version that closes an application id, because all other versions are lower."""


def commit_files(
    path: str,
    files: Sequence[StagedFile],
    *,
    app_id: str,
    version: int,
    after: int = 0,
    table: DeltaTable | None = None,
    retract: Retract | None = None,
    closes: Sequence[str] = (),
    fix: str = "Run the command again",
) -> bool:
    """Add staged files to a table in exactly one Delta commit, which is identified by ``app_id`` and ``version``.

    Return False if the commit was there before the call. The versions of an application id are ``after`` + 1, ``after`` + 2,
    and so on. If there are no files, an empty commit is made. Any process may repeat the call at any time.

    ``table``: a freshly opened handle. ``retract``: returns actions that remove files in the same commit. ``closes``:
    application ids under which no commit may land any more, not even one in flight. ``fix``: the advice in the message for a
    missing file.

    Raises `InvariantError` (70) if the version would leave a gap. Raises `StorageError` (74) if a file is missing or has
    another size, if the table is missing or has features that this commit would break, or if the commit does not land.
    """
    failure: Exception | None = None
    was_sent, was_missing, gaps = False, False, 0
    actions: list[AddAction] | None = None
    for attempt in range(_ATTEMPTS):
        if table is None or attempt > 0:
            table = open_table(path)
        if table is None:
            raise StorageError("table-gone", "the table {path} is gone: run or land again, which creates it", path=path)
        # An earlier attempt may have landed although it raised an error. So the log is read before a commit is sent.
        last = table.transaction_version(app_id) or after
        if last >= version:
            return was_sent
        gaps = gaps + 1 if last != version - 1 else 0
        if gaps:
            # The handle or the listing may be stale, even several times in a row.
            if gaps < _LOOKS:
                time.sleep(0.002 * 2**attempt)
                continue
            raise InvariantError(
                "commit-leaves-gap",
                "{path}: {application} is at {last}, so {version} would leave a gap: the table was altered outside rewindow",
                path=path,
                application=app_id,
                last=last,
                version=version,
            )
        if actions is None:
            check_writable(path, table)
            try:
                actions = add_actions(Folder(path), files, table.metadata().partition_columns, fix)
            except StorageError:
                if was_missing:
                    raise
                # Another process may have published the files since, and `gc` may have deleted them. So the log is read again.
                was_missing = True
                continue
        # Each attempt determines the files to remove anew, because another commit may have replaced them.
        others = retract(path, table) if retract else ()
        try:
            was_sent = True
            commit_actions(table, _without_unchanged([*actions, *others]), app_id, version, closes)
        except Exception as error:  # noqa: BLE001 - the commit may have landed: the log decides
            failure = error
            time.sleep(0.002 * 2**attempt)
    raise not_committed(path, _ATTEMPTS, failure) from failure


def _without_unchanged(actions: Actions) -> list[AddAction | RemoveAction]:
    """Return the actions without those for files that the commit would both remove and add. Such files stay."""
    times = Counter(action.path for action in actions)
    return [action for action in actions if times[action.path] == 1]


def commit_actions(
    table: DeltaTable,
    actions: Actions,
    app_id: str,
    version: int,
    closes: Sequence[str] = (),
) -> None:
    """Commit actions under an application id, through the handle that has read the id's last version.

    ``closes``: see `commit_files`. Neither a normal return nor an exception shows whether the commit landed, so the caller
    must read the log. The handle must not be used again.
    """
    is_done, transactions = False, {app_id: version, **dict.fromkeys(closes, _CLOSED)}
    try:
        if not _was_appended(table, actions, transactions):
            table.create_write_transaction(
                list(actions),
                mode="append",
                schema=table.schema(),
                partition_by=table.metadata().partition_columns,
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(name, number) for name, number in transactions.items()]
                ),
                # To remove expired commits, Delta lists the whole log. So only one in `CLEANED_EVERY` commits removes them.
                post_commithook_properties=PostCommitHookProperties(
                    cleanup_expired_logs=None if (table.version() + 1) % CLEANED_EVERY == 0 else False
                ),
            )
        is_done = True
    finally:
        release(table, is_good=is_done)


def _was_appended(table: DeltaTable, actions: Actions, transactions: Mapping[str, int]) -> bool:
    """Write a commit without delta-rs. Return False if the commit is not an append, or if another commit came first."""
    # For each commit, delta-rs lists the log and builds the table's state twice. An append needs neither (ADR-124).
    if not isinstance(table, Handle) or not is_append(actions, table.path, table):
        return False
    # On a disk, this is always false. There, `is_append` leaves each commit after which a checkpoint is due to delta-rs.
    is_due = is_checkpoint_due(table.path, table)
    if table.log_copy is not None:
        table.log_copy.note_sent()
    try:
        append_commit(table.path, table, actions, transactions)
    except FileExistsError:
        # Another commit has this number. delta-rs reads that commit and decides whether it conflicts with this one.
        return False
    if is_due:
        table.write_checkpoint()
    return True


def add_actions(folder: Folder, files: Sequence[StagedFile], partition_by: Sequence[str], fix: str) -> list[AddAction]:
    """Return the actions that add staged files to a table that is partitioned by ``partition_by``.

    Raises `StorageError` (74) with the advice ``fix`` if a file is missing or has another size.
    """
    actions = []
    for file in files:
        facts = folder.facts(file.path)
        if facts is None or facts.bytes != file.bytes:
            fault = "is gone" if facts is None else f"has {facts.bytes} bytes"
            raise StorageError(
                "staged-file-altered",
                "the staged file {path} ({bytes} bytes) {fault}. {fix}",
                path=folder.full_path(file.path),
                bytes=file.bytes,
                fault=fault,
                fix=fix,
            )
        stats = json.dumps(dict(file.stats), separators=(",", ":"))
        values: dict[str, str | None] = {name: file.partition_values[name] for name in partition_by}
        actions.append(AddAction(file.path, file.bytes, values, facts.modified_ms, True, stats))
    return actions


def file_stats(rows: pa.Table, bounded: Iterable[str]) -> dict[str, Any]:
    """Return Delta's statistics of a file: null counts of all columns, and bounds of ``bounded`` columns that have values."""
    bounds = {name: pc.min_max(rows[name]).as_py() for name in bounded}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: bound["min"] for name, bound in bounds.items() if bound["min"] is not None},
        "maxValues": {name: bound["max"] for name, bound in bounds.items() if bound["max"] is not None},
        "nullCount": {name: column.null_count for name, column in zip(rows.column_names, rows.columns, strict=True)},
    }


def removal(path: str, values: Mapping[str, Any], *, data_change: bool) -> RemoveAction:
    """Return the action that removes a file of the partition with these values."""
    return RemoveAction(path, data_change, time.time_ns() // 1_000_000, None, partition_values(values))


def partition_values(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Return partition values as Delta's log stores them: texts or null."""
    return {name: None if value is None else str(value) for name, value in values.items()}


_WRITABLE = (
    "appendOnly",
    "invariants",
    "changeDataFeed",
    "timestampNtz",
    "variantType",
    "deletionVectors",
    "v2Checkpoint",
)

_LAST_LEGACY_READER, _LAST_LEGACY_WRITER = 1, 4


def check_writable(path: str, table: DeltaTable) -> None:
    """Raise `StorageError` (74) if the table has a feature that a direct commit would not respect."""
    protocol, configuration = table.protocol(), table.metadata().configuration
    refused = [
        feature
        for feature in sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})
        if feature not in _WRITABLE
    ]
    if protocol.writer_features is None and protocol.min_writer_version > _LAST_LEGACY_WRITER:
        refused.append(f"writer version {protocol.min_writer_version}")
    if protocol.reader_features is None and protocol.min_reader_version > _LAST_LEGACY_READER:
        refused.append(f"reader version {protocol.min_reader_version}")
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        refused.append("column mapping")
    refused += [key for key in sorted(configuration) if key.startswith("delta.constraints.")]
    if refused:
        raise StorageError(
            "table-feature-refused",
            "{path} has features that files added directly would not respect: {features}. Drop them from the "
            "table (ALTER TABLE ... DROP FEATURE), or name another table",
            path=path,
            features=", ".join(refused),
        )
