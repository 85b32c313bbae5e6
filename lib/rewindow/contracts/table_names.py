"""Table names that rewindow reserves for itself."""

from __future__ import annotations

from typing import Final

RESERVED: Final = ("internal", "logs", "rewindow", "state")
"""First parts of table names, and folders below the warehouse, that no output may use."""
