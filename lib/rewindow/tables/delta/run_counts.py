"""How many rows of each run a file has. Delta's statistics say so for a file of one run, the footer for a merged one."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.tables.delta.content_hash import TableFile, rows_of
from rewindow.tables.delta.files import Folder

_KEY = b"rewindow.runs"


def with_run_counts(rows: pa.Table) -> pa.Table:
    """Return rows that say in the footer of their file how many there are of each run."""
    if "_run" not in rows.column_names:
        return rows
    counted = pc.value_counts(rows["_run"])
    counts = {str(one["values"]): one["counts"] for one in counted.to_pylist() if one["values"] is not None}
    return rows.replace_schema_metadata({_KEY: json.dumps(counts).encode()})


def run_counts(folder: Folder, file: TableFile) -> Counter[int] | None:
    """Return how many rows of each run a file has; None if that cannot be known without reading it."""
    if file.first_run is not None and file.first_run == file.last_run:
        return Counter({file.first_run: rows_of(folder, file)})
    if file.rows == 0:
        return Counter()
    if file.first_run is None:
        return None
    stated = folder.footer(file.path).get(_KEY)
    return None if stated is None else Counter({int(run): count for run, count in json.loads(stated).items()})
