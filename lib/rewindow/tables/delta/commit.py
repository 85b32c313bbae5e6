"""Open Delta tables and commit files to them.

A commit is identified by an application id and a version, and lands exactly once. The handle that has read the last version
writes the next one. After an error, the log is read again to find out what has landed (`docs/internals/design.md`, "The commit").

Tables may only have features that direct access supports, because ignoring a feature breaks a table without an error. A table
must be inside the warehouse, so no symbolic link may lead out of it.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import fs

from rewindow.contracts.staged_files import StagedFile
from rewindow.errors import ConfigError, InvariantError, StorageError, not_committed, one_line
from rewindow.storage.locations import check_inside, failed, filesystem_of, is_uri
from rewindow.tables.delta.broken_log import unreadable_log
from rewindow.tables.delta.delta_log import CLEANED_EVERY, append_commit, is_append, is_checkpoint_due
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.handle import Handle, release, take

Actions = Sequence[AddAction | RemoveAction]
Retract = Callable[[str, DeltaTable], Actions]
"""Takes a table's path and handle. Returns actions for the commit that also adds new files."""

_ATTEMPTS = 8
_LOOKS = 3
"""How many times in a row the log must show a gap before the commit fails, because a stale handle or listing may show one."""
_CLOSED = 2**62
"""The version that closes an application id, because all other versions are lower."""


def table_path(warehouse: str, path: str) -> str:
    """Return the full path or URI of a table, given its path below the warehouse. Raises as `safe_path` does."""
    return safe_path(warehouse, f"{warehouse.rstrip('/')}/{path}")


def open_table(path: str, *, may_lag: bool = False) -> DeltaTable | None:
    """Return a handle on the newest version of a table, for the caller alone; None if there is no table.

    ``may_lag``: in a bucket, the newest version that this process has read is enough. Raises `ConfigError` (78) for a
    catalog-managed table, `StorageError` (74) for a log that cannot be read, or the error of `failed` for a bucket.
    """
    try:
        table = take(path, may_lag=may_lag)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        _check_refusal(path, error)
        if is_uri(path):
            raise failed(path, error) from error
        raise unreadable_log(path, error) from error
    _check_direct(path, table)
    return table


def existing_table(path: str) -> DeltaTable:
    """Return a handle as `open_table` does. Raises `StorageError` (74) if there is no table."""
    table = open_table(path)
    if table is None:
        raise StorageError(
            "table-missing", "there is no table at {path}: run or land first, which creates it", path=path
        )
    return table


def added_files(table: DeltaTable) -> pa.Table:
    """Return the files of a table as its log describes them, with a column for each statistic."""
    # `pa.table` would load pandas, to find out whether its argument is a data frame.
    return pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()


def takes_shared_files(path: str) -> bool:
    """Return whether a file of a table may have rows of several tasks. In partitioned tables (older changelogs), none may."""
    table = open_table(path)
    return table is not None and not table.metadata().partition_columns


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

    Return False if the commit was there before the call. The versions of an application id are ``after`` + 1, + 2, ...; without
    files, an empty commit is made. Any process may repeat the call at any time.

    ``table``: a freshly opened handle. ``retract``: returns actions that remove files in the same commit. ``closes``: the
    application ids under which nothing may land any more, not even a commit in flight. ``fix``: what to do if a file is
    missing, for the message.

    Raises `InvariantError` (70) if the version would leave a gap. Raises `StorageError` (74) if a file is missing or has another
    size, if the table is missing or has features that this commit would break, or if the commit does not land.
    """
    failure: Exception | None = None
    was_sent, was_missing, gaps = False, False, 0
    actions: list[AddAction] | None = None
    for attempt in range(_ATTEMPTS):
        if table is None or attempt > 0:
            table = open_table(path)
        if table is None:
            raise StorageError("table-gone", "the table {path} is gone: run or land again, which creates it", path=path)
        # An earlier attempt may have landed although it raised an error, so the log is checked before a commit is sent.
        last = table.transaction_version(app_id) or after
        if last >= version:
            return was_sent
        gaps = gaps + 1 if last != version - 1 else 0
        if gaps:
            # The handle or the listing may be stale, also several times in a row.
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
                # Another process may have published the files since, and `gc` may have deleted them, so the log is read again.
                was_missing = True
                continue
        # The files to remove are determined in each attempt, because another commit may have replaced them.
        others = retract(path, table) if retract else ()
        try:
            was_sent = True
            commit_actions(table, _without_unchanged([*actions, *others]), app_id, version, closes)
        except Exception as error:  # noqa: BLE001 - the commit may have landed: the log decides
            failure = error
            time.sleep(0.002 * 2**attempt)
    raise not_committed(path, _ATTEMPTS, failure) from failure


def _without_unchanged(actions: Actions) -> list[AddAction | RemoveAction]:
    """Leave out the actions for files that the commit would both remove and add, because these files stay."""
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

    ``closes``: see `commit_files`. Neither a return nor an exception shows whether the commit landed, so the caller must read
    the log. The handle must not be used again.
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
                # Delta lists the whole log to remove expired commits, so only one in `CLEANED_EVERY` commits does that.
                post_commithook_properties=PostCommitHookProperties(
                    cleanup_expired_logs=None if (table.version() + 1) % CLEANED_EVERY == 0 else False
                ),
            )
        is_done = True
    finally:
        release(table, is_good=is_done)


def _was_appended(table: DeltaTable, actions: Actions, transactions: Mapping[str, int]) -> bool:
    """Write a commit without delta-rs. Return False if the commit is not an append, or if another commit came first."""
    # delta-rs lists the log and builds the table's state twice for each commit; an append needs neither (ADR-124).
    if not isinstance(table, Handle) or not is_append(actions, table.path, table):
        return False
    # On a disk, this is always False. There, delta-rs writes every commit with which a checkpoint is due.
    is_due = is_checkpoint_due(table.path, table)
    if table.log_copy is not None:
        table.log_copy.note_sent()
    try:
        append_commit(table.path, table, actions, transactions)
    except FileExistsError:
        # Another commit has this number. delta-rs reads that commit, and decides whether the two conflict.
        return False
    if is_due:
        table.write_checkpoint()
    return True


def add_actions(folder: Folder, files: Sequence[StagedFile], partition_by: Sequence[str], fix: str) -> list[AddAction]:
    """Return the actions that add staged files to a table that is partitioned by these columns.

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
    """Return Delta's statistics of a file: null counts of all columns, and bounds of the ``bounded`` columns that have values."""
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
_READABLE = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""Reader features of tables whose files can be read without delta-rs. For deletion vectors, see `direct_problem`."""

_MANAGED = ("catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview")
"""Features of tables whose commits a catalog decides. The log's folder may lack their newest commits (ADR-117)."""
_UNKNOWN = re.compile(r"Feature '([^']+)' is not supported")
"""The message with which delta-rs refuses a table that has an unknown feature."""

_LAST_LEGACY_READER, _LAST_LEGACY_WRITER = 1, 4


def _check_direct(path: str, table: DeltaTable) -> None:
    """Raise `ConfigError` (78) if a table's files may not be read or written directly, because a catalog manages them."""
    if protocol_features := table.protocol().reader_features:
        _refuse_managed(path, protocol_features)


def _check_refusal(path: str, error: Exception) -> None:
    """Raise the error for a table that delta-rs refuses to open because of its features; return if there is another reason.

    Raises `ConfigError` (78) for a table that a catalog manages, `StorageError` (74) for any other feature.
    """
    said = one_line(error)
    if match := _UNKNOWN.search(said):
        _refuse_managed(path, [match[1]])
        raise StorageError(
            "table-feature-unknown",
            "{path} has a feature that this reader does not know: {features}. Drop it from the table (ALTER "
            "TABLE ... DROP FEATURE), or name another table",
            path=path,
            features=match[1],
        )
    # The files of unpublished commits may make delta-rs fail before it reads the table's features.
    if "catalog-managed" in said or _has_staged_commits(path):
        _refuse_managed(path, _MANAGED[:1])


def _has_staged_commits(path: str) -> bool:
    system, location = filesystem_of(path)
    with suppress(OSError):
        files = system.get_file_info(fs.FileSelector(f"{location}/_delta_log/_staged_commits", allow_not_found=True))
        return bool(files)
    return False


def _refuse_managed(path: str, features: Iterable[str]) -> None:
    managed = [feature for feature in features if feature in _MANAGED]
    if managed:
        raise ConfigError(
            "table-managed-by-catalog",
            "{path} is a catalog-managed table ({features}): only its catalog knows its newest commits, so "
            "nothing may read or write its files directly. Use a target with governed tables (`commit: "
            "spark`, see docs/deployment/databricks.md) and the table's name in the catalog, or name "
            "another table",
            path=path,
            features=managed[0],
        )


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


def direct_problem(table: DeltaTable) -> str:
    """Return why reading a table's files does not give the table's rows; ``""`` if it does."""
    protocol = table.protocol()
    features = set(protocol.reader_features or ())
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        return "its columns are mapped (delta.columnMapping)"
    if unknown := sorted(features - _READABLE):
        return f"it has features that this reader does not know ({', '.join(unknown)})"
    if "deletionVectors" in features and table.deletion_vectors().read_all().num_rows:
        return "it has deletion vectors"
    return ""


_SMALL = 64
"""A folder with at most this many entries is checked as a whole after every change."""

_Identity = tuple[tuple[int, int], ...]


class _Looked(NamedTuple):
    """A table's folder when it was checked.

    ``folder``: its identity, see `_identity`. ``changed_ns``: when its entries had last changed (epoch ns). ``entries``: their
    number. ``unseen``: how many later changes did not lead to a check of the whole folder. ``folders``: the paths of its
    subfolders.
    """

    folder: _Identity
    changed_ns: int
    entries: int
    unseen: int
    folders: tuple[str, ...]


_safe: dict[tuple[str, str], _Looked] = {}
"""The tables that this process found safe, by warehouse and path."""


def safe_path(warehouse: str, full: str) -> str:
    """Return ``full``, the path of a table, after checking that it is inside the warehouse.

    A folder is checked again only when it has changed. A folder with many entries is checked as a whole only after as many
    changes as it has entries, because each run adds a file. In between, only its subfolders are checked. That is enough, because
    only a link below which rewindow writes does harm, and the files that rewindow writes have new, random names.

    Raises `ConfigError` (78) if a symbolic link on that path, or in that folder, leads out of the warehouse.
    """
    if "://" in warehouse:
        return full
    state, checked = _identity(warehouse, full), _safe.get((warehouse, full))
    # The folder does not exist, or a link leads to it. Either may change, so the result is not kept.
    if state is None:
        check_inside(warehouse, [full, *_inside(full)[1]])
        return full
    folder, changed_ns = state
    if checked is not None and checked.folder == folder:
        if checked.changed_ns == changed_ns:
            return full
        if max(_SMALL, checked.unseen) < checked.entries:
            check_inside(warehouse, [*checked.folders, f"{full}/_delta_log"])
            _safe[warehouse, full] = checked._replace(changed_ns=changed_ns, unseen=checked.unseen + 1)
            return full
    entries, links, folders = _inside(full)
    check_inside(warehouse, [full, *links])
    _safe[warehouse, full] = _Looked(folder, changed_ns, entries, 0, folders)
    return full


def _inside(full: str) -> tuple[int, list[str], tuple[str, ...]]:
    """Return the number of a folder's entries, the paths of its links, and the paths of its subfolders."""
    if not Path(full).is_dir():
        return 0, [], ()
    with os.scandir(full) as listing:
        entries = list(listing)
    links = [entry.path for entry in entries if entry.is_symlink()]
    return len(entries), links, tuple(entry.path for entry in entries if entry.is_dir())


def _identity(warehouse: str, full: str) -> tuple[_Identity, int] | None:
    """Return device and inode of the warehouse and of each folder on the path below it, and when the last one changed (ns).

    Return None if a folder does not exist or is a link. A folder that was moved away and replaced by a link keeps its inode.
    """
    path, identities = warehouse.rstrip("/"), []
    try:
        status = os.stat(warehouse)  # noqa: PTH116 - called hundreds of times in a run
        identities.append((status.st_dev, status.st_ino))
        for part in full[len(path) :].strip("/").split("/"):
            path = f"{path}/{part}"
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                return None
            identities.append((status.st_dev, status.st_ino))
    except OSError:
        return None
    return tuple(identities), status.st_mtime_ns
