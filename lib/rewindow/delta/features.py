"""Which features of a Delta table a direct commit honours: an allow-list, because the unknown ones break in silence."""

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
_LAST_LEGACY_READER, _LAST_LEGACY_WRITER = 1, 4


def check_writable(path: str, table: DeltaTable) -> None:
    """Raise `StorageError` (74) if the table has a feature that a direct commit would not honour."""
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
            f"{path} has features that files added directly would not honour: {', '.join(found)}. "
            "Drop them from the table (ALTER TABLE ... DROP FEATURE), or name another table"
        )
        raise StorageError(message)
