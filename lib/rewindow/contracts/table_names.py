"""Table names that rewindow reserves for itself."""

from __future__ import annotations

from typing import Final

RESERVED: Final = ("internal", "logs", "rewindow", "state")
"""First parts of table names, and folders below the warehouse, that no output may use."""


def is_reserved(table: str) -> bool:
    """Return whether a dotted table name starts with a reserved part. Case does not matter: catalogs and some disks ignore it."""
    return table.split(".", maxsplit=1)[0].lower() in RESERVED
