"""What to publish to a feed's log or to the quarantine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rewindow.contracts.reserved_names import LOG_COLUMNS
from rewindow.control.ingest.landings import LogSchema
from rewindow.errors import StorageError
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.landed_appends import LandedAppends
from rewindow.tables.governed.names import TableName
from rewindow.tables.shared.feeds import LOG_PARTITIONS


class LogPublication(NamedTuple):
    """A table to publish: a function that creates it, and what was landed of a topic, or for the quarantine.

    ``unknown`` is the SQL condition of rows that the table may not have before the first append. Feeds and jobs share the
    quarantine.
    """

    name: TableName
    create: Callable[[], TableName]
    app_id: str
    columns: Sequence[Column]
    landed: LandedAppends
    topic: str
    unknown: str
    is_shared: bool = False


def columns_of(schema: LogSchema) -> tuple[Column, ...]:
    """Return the columns of a log's table."""
    return (*(Column(name, "int") for name in LOG_PARTITIONS), *LOG_COLUMNS, *schema.key, *schema.value)


def emptied(name: TableName, feed: str) -> StorageError:
    """Return the error of a log from which all rows were deleted: a table that was filled once does not take them again."""
    message = (
        f"all rows of the log {name} were deleted outside rewindow. Remove the table, `DROP TABLE {name}`, then land again, and "
        f"the rows are written anew: `rewindow land {feed}`"
    )
    return StorageError(message)
