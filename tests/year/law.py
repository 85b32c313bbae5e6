"""The end of the year: its tables have the content of one landing and one run over all its records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewindow.tables.delta.table_rows import content_hash
from rewindow.tables.delta.warehouse import DeltaTables
from tests.year.calls import here
from tests.year.project import FEED, JOB, ONCE


def compare(root: Path) -> dict[str, Any]:
    """Land and run everything at once in another warehouse, and compare. Return the costs, and the tables that differ.

    A year may have been interrupted between a landing and its run, so what is due is run first.
    """
    here(root, "run", JOB).checked()
    landed = here(root, "land", FEED, "--target", ONCE).checked()
    ran = here(root, "run", JOB, "--target", ONCE).checked()
    year, once = hashes(root / "warehouse"), hashes(root / ONCE)
    return {
        "land": landed.costs,
        "run": ran.costs,
        "tables": len(once),
        "different": sorted(name for name in year.keys() | once.keys() if year.get(name) != once.get(name)),
    }


def hashes(warehouse: Path) -> dict[str, str]:
    """Return the content hash of each output, store and log, and of the metrics."""
    found = dict(DeltaTables(str(warehouse)).hashes(JOB, "main"))
    return found | {"log": content_hash(str(warehouse / "logs" / FEED / "events"))}
