"""Notice numbers with commas, like ``12,50``, that were landed as text: no sum takes them, and a newcomer sees no reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from rewindow.control.ingest.protocols import LandReport
from rewindow.errors import StorageError
from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.content_hash import read_batches
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import log_path
from rewindow.tables.shared.warehouse import Warehouse

_ENOUGH = 100
"""So many values are looked at."""
_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+|[+-]?\d{1,3}(,\d{3})+\.\d+")


def comma_numbers(tables: Warehouse, report: LandReport) -> Iterator[str]:
    """Yield a sentence for each text column of a new generation whose first values are all numbers with commas.

    Nothing for tables that a catalog governs: one look at them would cost more than the landing.
    """
    if not report.landings or not isinstance(tables, DeltaTables):
        return
    definition = (feed := tables.feed(report.feed)).definition
    is_new = report.landings[0] == definition.kept + 1 and feed.landings[-1].generation == definition.generation
    if not is_new:
        return
    for topic, schema in definition.logs.items():
        names = [column.name for column in schema.value if column.type == "string"]
        if not names or topic in definition.source_offsets:
            continue
        for name, example in _found(table_path(tables.warehouse, log_path(report.feed, topic)), names):
            yield (
                f"feed {report.feed}: {name} of {topic} was landed as text, but its values are numbers with commas, like "
                f"{example!r}. Declare {name} DECIMAL(12,2) in a `schema:` of the source, with `options: {{locale: de-DE}}` or "
                f"that of the numbers, and `rewindow land {report.feed} --new-generation`"
            )


def _found(path: str, names: list[str]) -> Iterator[tuple[str, str]]:
    try:
        batch = next((one for one in read_batches(path) if one.num_rows), None)
    except StorageError:  # the next command that needs the log says what is wrong with it
        return
    if batch is None:
        return
    for name in names:
        values = [one for one in islice(batch.column(name).to_pylist(), _ENOUGH) if one]
        if values and all(_NUMBER.fullmatch(one.strip()) for one in values):
            yield name, values[0]
