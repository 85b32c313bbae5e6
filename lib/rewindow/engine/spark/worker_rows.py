"""What every function that Spark runs in a worker does around its work: imports, buckets, rows of JSON, marked errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from rewindow.engine.worker.failures import mark
from rewindow.errors import RewindowError
from rewindow.storage.locations import adopt


def json_rows(
    column: str,
    import_paths: Iterable[str],
    buckets: Mapping[str, Mapping[str, str]],
    work: Callable[[], Iterable[Mapping[str, Any]]],
) -> Iterator[pa.RecordBatch]:
    """Do some work in a worker and yield what it reports as rows of JSON, in one column.

    ``import_paths``: where the project's modules are. ``buckets``: the driver's settings (`storage.locations.known`).
    """
    adopt(buckets)
    sys.path[:0] = [path for path in import_paths if path not in sys.path]
    try:
        for row in work():
            yield pa.RecordBatch.from_arrays([pa.array([json.dumps(row)])], names=[column])
    except RewindowError as error:
        # The JVM passes text only; the driver decodes the mark.
        raise RuntimeError(mark(error)) from error
