"""Open Delta tables and commit files to them.

A commit is named by an application id and a version, and lands once: the version is checked and written through one
handle, and after any other outcome the log is read again before anything is decided (`docs/internals/design.md`, "The commit").

Only features that direct access supports are allowed, because unknown features break silently. A table is inside the warehouse:
no symbolic link may lead out of it.
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
from rewindow.storage.locations import failed, filesystem_of, is_uri
from rewindow.tables.delta.delta_log import CLEANED_EVERY, append_commit, is_append, is_checkpoint_due, unreadable_log
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.handle import Handle, release, take

Actions = Sequence[AddAction | RemoveAction]
Retract = Callable[[str, DeltaTable], Actions]
"""Given a table's path and handle, returns the actions that go into the same commit as new files."""

_ATTEMPTS = 8
_LOOKS = 3
"""How often a stale handle or listing is looked at again before an attempt is given up."""
_CLOSED = 2**62
"""The version of a closed application id."""


def table_path(warehouse: str, path: str) -> str:
    """Return the full path or URI of a table, given its path below the warehouse. Raises as `safe_path` does."""
    return safe_path(warehouse, f"{warehouse.rstrip('/')}/{path}")


def open_table(path: str, *, may_lag: bool = False) -> DeltaTable | None:
    """Return a handle on the newest version, for the caller alone; None if there is no table.

    ``may_lag``: in a bucket, the newest version that this process knows. Raises `ConfigError` (78) for a
    catalog-managed table, `StorageError` (74), or as `failed`.
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
    """Return a handle on the newest version, as `open_table`. Raises `StorageError` (74) if there is no table."""
    table = open_table(path)
    if table is None:
        raise StorageError(
            "table-missing", "there is no table at {path}: run or land first, which creates it", path=path
        )
    return table


def added_files(table: DeltaTable) -> pa.Table:
    """Return the files of a table as its log describes them, with a column for each statistic."""
    # `pa.table` would load pandas, to see whether it is given a data frame.
    return pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()


def takes_shared_files(path: str) -> bool:
    """Return whether a file of a table may have rows of several tasks: not if it is partitioned, as older changelogs are."""
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
    """Add staged files to a table in exactly one Delta commit, ``(app_id, version)``. False if it was there before.

    The versions of an application id are ``after`` + 1, + 2, ...: a version that is there is left alone (False), one
    that would leave a gap raises `InvariantError` (70). Without files the commit is empty, but counts. Any process may
    repeat the call at any time. ``table``: a freshly opened handle. ``retract`` returns the files that leave the table,
    given its path and handle. Nothing lands any more under the ids in ``closes``, not even a commit in flight. ``fix``: what
    to do if a file is missing, for the message.

    Raises `StorageError` (74) if a file is missing or has another size, if the table is missing or has features that
    this commit would break, or if the commit does not land.
    """
    failure: Exception | None = None
    was_sent, was_missing, gaps = False, False, 0
    actions: list[AddAction] | None = None
    for attempt in range(_ATTEMPTS):
        if table is None or attempt > 0:
            table = open_table(path)
        if table is None:
            raise StorageError("table-gone", "the table {path} is gone: run or land again, which creates it", path=path)
        # An earlier attempt may have landed although it raised, so the log decides before anything is sent.
        last = table.transaction_version(app_id) or after
        if last >= version:
            return was_sent
        gaps = gaps + 1 if last != version - 1 else 0
        if gaps:
            # The handle or listing is stale, perhaps repeatedly.
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
                # Another process may have published them since, and `gc` may have deleted them.
                was_missing = True
                continue
        # The files that leave are found again in each attempt, because another commit may have replaced them.
        others = retract(path, table) if retract else ()
        try:
            was_sent = True
            commit_actions(table, _without_unchanged([*actions, *others]), app_id, version, closes)
        except Exception as error:  # noqa: BLE001 - the commit may have landed: the log decides
            failure = error
            time.sleep(0.002 * 2**attempt)
    raise not_committed(path, _ATTEMPTS, failure) from failure


def _without_unchanged(actions: Actions) -> list[AddAction | RemoveAction]:
    """Leave out files that one commit would both remove and add: they stay."""
    times = Counter(action.path for action in actions)
    return [action for action in actions if times[action.path] == 1]


def commit_actions(
    table: DeltaTable,
    actions: Actions,
    app_id: str,
    version: int,
    closes: Sequence[str] = (),
) -> None:
    """Commit actions under a transaction id, through the handle that reported its version; close the ids in ``closes``.

    Neither a return nor an exception says whether the commit landed: read the log. The handle must not be used again.
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
                # Delta lists the whole log to remove expired commits, so only every so many commits do that.
                post_commithook_properties=PostCommitHookProperties(
                    cleanup_expired_logs=None if (table.version() + 1) % CLEANED_EVERY == 0 else False
                ),
            )
        is_done = True
    finally:
        release(table, is_good=is_done)


def _was_appended(table: DeltaTable, actions: Actions, transactions: Mapping[str, int]) -> bool:
    """Write a commit as an append, if it is one. False if delta-rs must: it decides whether commits that came first matter."""
    # delta-rs lists the log and builds the table's state twice for each commit; an append needs neither (ADR-124).
    if not isinstance(table, Handle) or not is_append(actions, table.path, table):
        return False
    # This is so only in a bucket: on a disk, delta-rs writes a commit with a checkpoint.
    is_due = is_checkpoint_due(table.path, table)
    if table.log_copy is not None:
        table.log_copy.note_sent()
    try:
        append_commit(table.path, table, actions, transactions)
    except FileExistsError:
        # Another commit has this number: delta-rs reads it and decides whether the two conflict.
        return False
    if is_due:
        table.write_checkpoint()
    return True


def add_actions(folder: Folder, files: Sequence[StagedFile], partition_by: Sequence[str], fix: str) -> list[AddAction]:
    """Return the actions that add staged files to a table that is partitioned by these columns.

    Raises `StorageError` (74) with this ``fix`` if one is missing or has another size.
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
    """Return Delta's statistics of a file: counts for all columns, and bounds for the named ones that have values."""
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
    """Return partition values as Delta's log has them."""
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
"""Reader features with which the files hold the table's rows; deletion vectors only while there are none."""

_MANAGED = ("catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview")
"""Features with which a catalog decides what is committed, and the log's folder may lack the newest commits (ADR-117)."""
_UNKNOWN = re.compile(r"Feature '([^']+)' is not supported")
"""How delta-rs refuses a table with a feature that it does not know."""

_LAST_LEGACY_READER, _LAST_LEGACY_WRITER = 1, 4


def _check_direct(path: str, table: DeltaTable) -> None:
    """Raise `ConfigError` (78) if a table's files may not be read or written directly, because a catalog manages them."""
    if protocol_features := table.protocol().reader_features:
        _refuse_managed(path, protocol_features)


def _check_refusal(path: str, error: Exception) -> None:
    """Raise the error for a table that delta-rs refuses to open because of its features; return if that is not why.

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
    # The reader may stumble over files of commits that are not published before it comes to the feature.
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
    """Return why a table's files do not hold the table's rows, ``""`` if they do."""
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
"""A folder with at most so many entries is looked into after every change."""

_Identity = tuple[tuple[int, int], ...]


class _Looked(NamedTuple):
    """A table's folder as it was checked: which folder it was, and when its entries last changed.

    ``entries``: how many it had. ``unseen``: how many changes since were not checked. ``folders``: the paths of its folders.
    """

    folder: _Identity
    changed_ns: int
    entries: int
    unseen: int
    folders: tuple[str, ...]


_safe: dict[tuple[str, str], _Looked] = {}
"""The tables that this process found safe, by warehouse and path."""


def safe_path(warehouse: str, full: str) -> str:
    """Return a table's full path.

    A folder is checked again only when it has changed. One with many entries is checked as a whole only after as many changes as
    it has entries, because each run adds a file. In between, only its subfolders are checked: a link matters where rewindow
    writes below it, and the names of its files are new and random.

    Raises `ConfigError` (78) if a symbolic link on that path, or in that folder, leads out of the warehouse.
    """
    if "://" in warehouse:
        return full
    state, checked = _identity(warehouse, full), _safe.get((warehouse, full))
    # There is no such folder, or a link on the way to it, which may change.
    if state is None:
        _check(warehouse, [full, *_inside(full)[1]])
        return full
    folder, changed_ns = state
    if checked is not None and checked.folder == folder:
        if checked.changed_ns == changed_ns:
            return full
        if max(_SMALL, checked.unseen) < checked.entries:
            _check(warehouse, [*checked.folders, f"{full}/_delta_log"])
            _safe[warehouse, full] = checked._replace(changed_ns=changed_ns, unseen=checked.unseen + 1)
            return full
    entries, links, folders = _inside(full)
    _check(warehouse, [full, *links])
    _safe[warehouse, full] = _Looked(folder, changed_ns, entries, 0, folders)
    return full


def _check(warehouse: str, paths: list[str]) -> None:
    root = os.path.realpath(warehouse)
    for path in paths:
        real = os.path.realpath(path)
        if os.path.commonpath((root, real)) != root:
            raise ConfigError(
                "path-leaves-warehouse",
                "{path} leads out of the warehouse through a symbolic link, to {target}. Put the files "
                "themselves into the warehouse, or name their folder as the warehouse",
                path=path,
                target=real,
            )


def _inside(full: str) -> tuple[int, list[str], tuple[str, ...]]:
    """Return how many entries a folder has, and the paths of its links and of its folders."""
    if not Path(full).is_dir():
        return 0, [], ()
    with os.scandir(full) as listing:
        entries = list(listing)
    links = [entry.path for entry in entries if entry.is_symlink()]
    return len(entries), links, tuple(entry.path for entry in entries if entry.is_dir())


def _identity(warehouse: str, full: str) -> tuple[_Identity, int] | None:
    """Return which folders the warehouse and each folder below it on a path are, and when the last one changed.

    None if one does not exist, or is a link: a folder that was moved away and linked to is the same folder elsewhere.
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
