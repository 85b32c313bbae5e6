"""A Delta table as a source: which rows its versions added, when, and whether it is still the table that was landed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewindow.core.land import LogSpec, SourceLook
from rewindow.errors import SourceError


def look_at_table(
    spec: LogSpec, position: Mapping[str, Any] | None, *, every: bool, through_ms: int | None
) -> SourceLook:
    """Return a Delta table as it is now, against the position that is landed."""
    raise SourceError("Delta sources come next")
