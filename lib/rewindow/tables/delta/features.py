"""Which features of a Delta table direct access supports. These are allow-lists, because unknown features break silently."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from deltalake import DeltaTable
from pyarrow import fs

from rewindow.errors import ConfigError, StorageError, one_line
from rewindow.storage.locations import filesystem_of

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


def check_direct(path: str, table: DeltaTable) -> None:
    """Raise `ConfigError` (78) if a table's files may not be read or written directly, because a catalog manages them."""
    if protocol_features := table.protocol().reader_features:
        _refuse_managed(path, protocol_features)


def check_refusal(path: str, error: Exception) -> None:
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
