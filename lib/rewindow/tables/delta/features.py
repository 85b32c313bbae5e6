"""Which features of a Delta table direct access supports. These are allow-lists, because unknown features break silently."""

from __future__ import annotations

from deltalake import DeltaTable

from rewindow.errors import StorageError

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

_LAST_LEGACY_READER, _LAST_LEGACY_WRITER = 1, 4


def check_writable(path: str, table: DeltaTable) -> None:
    """Raise `StorageError` (74) if the table has a feature that a direct commit would not respect."""
    protocol, configuration = table.protocol(), table.metadata().configuration
    found = [
        feature
        for feature in sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})
        if feature not in _WRITABLE
    ]
    if protocol.writer_features is None and protocol.min_writer_version > _LAST_LEGACY_WRITER:
        found.append(f"writer version {protocol.min_writer_version}")
    if protocol.reader_features is None and protocol.min_reader_version > _LAST_LEGACY_READER:
        found.append(f"reader version {protocol.min_reader_version}")
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        found.append("column mapping")
    found += [key for key in sorted(configuration) if key.startswith("delta.constraints.")]
    if found:
        message = (
            f"{path} has features that files added directly would not respect: {', '.join(found)}. "
            "Drop them from the table (ALTER TABLE ... DROP FEATURE), or name another table"
        )
        raise StorageError(message)


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
