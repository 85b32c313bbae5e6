"""Open Delta tables, and check what direct access to them supports.

A table must be inside the warehouse, so no symbolic link may lead out of the warehouse.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs

from rewindow.errors import ConfigError, StorageError, one_line
from rewindow.storage.locations import check_inside, failed, filesystem_of, is_uri
from rewindow.tables.delta.broken_log import unreadable_log
from rewindow.tables.delta.handle import take


def table_path(warehouse: str, path: str) -> str:
    """Return the full path or URI of a table, given its path below the warehouse. Raises as `safe_path` does."""
    return safe_path(warehouse, f"{warehouse.rstrip('/')}/{path}")


def open_table(path: str, *, may_lag: bool = False) -> DeltaTable | None:
    """Return a handle on the newest version of a table, for the caller alone; None if there is no table.

    ``may_lag``: whether, in a bucket, the newest version that this process has read is enough. Raises `ConfigError` (78) for
    a catalog-managed table, `StorageError` (74) for a log that cannot be read, or the error of `failed` for a bucket.
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
    # `pa.table` would load pandas, just to find out whether its argument is a data frame.
    return pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()


def takes_shared_files(path: str) -> bool:
    """Return whether a file of a table may have rows of several tasks.

    In a partitioned table (an older changelog), it may not.
    """
    table = open_table(path)
    return table is not None and not table.metadata().partition_columns


_READABLE = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""Reader features that a table may have if its files are read without delta-rs. For deletion vectors, see `direct_problem`."""

_MANAGED = ("catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview")
"""Features of tables whose commits are decided by a catalog. The log's folder may lack their newest commits (ADR-117)."""
_UNKNOWN = re.compile(r"Feature '([^']+)' is not supported")
"""The message with which delta-rs refuses a table that has an unknown feature."""


def _check_direct(path: str, table: DeltaTable) -> None:
    """Raise `ConfigError` (78) if a table's files may not be read or written directly, because a catalog manages them."""
    if protocol_features := table.protocol().reader_features:
        _refuse_managed(path, protocol_features)


def _check_refusal(path: str, error: Exception) -> None:
    """Raise an error if delta-rs refuses to open a table because of its features; do nothing if the reason is another.

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
    # The table may have commits that are not published yet. Their files may make delta-rs fail before it reads the table's
    # features.
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


def direct_problem(table: DeltaTable) -> str:
    """Return why reading a table's files would not give the table's rows; an empty text if it would."""
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
"""A folder with at most this many entries is checked as a whole whenever it has changed."""

_Identity = tuple[tuple[int, int], ...]


class _Looked(NamedTuple):
    """A table's folder when it was checked.

    ``folder``: the folder's identity (see `_identity`). ``changed_ns``: when its entries had last changed (epoch ns).
    ``entries``: the number of its entries. ``unseen``: how many changes since then did not lead to a check of the whole
    folder. ``folders``: the paths of its subfolders.
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
    changes as it has entries, because each run adds a file. In between, only its subfolders are checked. That is enough: a
    link does harm only if rewindow writes below it, and the files that rewindow writes have new, random names.

    Raises `ConfigError` (78) if a symbolic link on that path, or in that folder, leads out of the warehouse.
    """
    if "://" in warehouse:
        return full
    state, checked = _identity(warehouse, full), _safe.get((warehouse, full))
    # The folder does not exist, or a link leads to it. Both may change, so the result is not kept.
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
    """Return device and inode of the warehouse and of each folder on the path below it, and when the last folder changed (ns).

    Returns None if a folder does not exist or is a link. The inode alone does not show a link, because a folder keeps its
    inode when it is moved away and replaced by a link to it.
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
