"""Names that rewindow reserves for itself: the columns of every log and of the quarantine, and the first parts of table names."""

from __future__ import annotations

from typing import Final

from rewindow.streams.serde.schema import Column

LOG_COLUMNS = tuple(Column(name, "long") for name in ("offset", "timestamp", "landing", "arrived_at"))
"""The columns that precede the key and value columns in every log."""
QUARANTINE_COLUMNS = (
    Column("name", "string"),
    Column("topic", "string"),
    Column("partition", "long"),
    Column("offset", "long"),
    Column("node", "string"),
    Column("reason", "string"),
    Column("arrived_at", "long"),
    Column("timestamp", "long"),
    Column("record", "string"),
    Column("_run", "long"),
    Column("landing", "long"),
)
"""The columns of the quarantine table. Its rows are records that `land` rejected, and records that jobs with ``dropped:
quarantine`` dropped.

``name`` is the feed or the job. ``record`` is the JSON of the key and value, or of a source's columns. For records of a
landing, ``offset``, ``node`` and ``_run`` are null. For records of a job, ``arrived_at`` is null, and ``landing`` is the epoch
of the record.
"""
RESERVED: Final = ("internal", "logs", "rewindow", "state")
"""The names that no output may use as the first part of its table name. Some are folders below the warehouse."""


def other_name(column: str) -> str:
    """Return advice for a column that needs another type. The advice begins with a verb."""
    return (
        f"give the column another name (`columns: {{{column}_2: {column}}}`), because a log keeps the type of each name"
    )


def is_reserved(table: str) -> bool:
    """Return whether a dotted table name starts with a reserved part. Case is ignored, as in catalogs and on some disks."""
    return table.split(".", maxsplit=1)[0].lower() in RESERVED
