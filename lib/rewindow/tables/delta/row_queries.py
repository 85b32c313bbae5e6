"""SQL queries over the new rows of an output and the rows of the run before, for expectations.

DataFusion, a part of delta-rs, executes the queries. It reads only Delta tables, so the rows are copied to a temporary folder. It
uses one partition, and so one thread: then sums of floats and the order of rows are the same in every attempt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError

from rewindow.errors import failed_io, one_line
from rewindow.storage.scratch import scratch_folder

Batches = Callable[[], Iterator[pa.RecordBatch]]

_SETTINGS = {"datafusion.execution.target_partitions": "1"}
_QUERY = re.compile(r"\s*(?:(?:--[^\n]*\n|/\*.*?\*/)\s*)*(?:select|with)\b", re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_CHANGING = re.compile(
    r"\b(?:(?:now|random|uuid|today)\s*\(|current_(?:date|time|timestamp)\b)",
    re.IGNORECASE,
)


class QueryError(Exception):
    """A query cannot be executed. The message states the reason in one line."""


class RowQueries:
    """Executes queries on the tables that `row_queries` has registered."""

    def __init__(self, builder: QueryBuilder) -> None:
        self._builder = builder

    def rows(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows that a query returns. Raises `QueryError` if the query cannot be executed."""
        try:
            yield from pa.RecordBatchReader.from_stream(self._builder.execute(query))
        except (DeltaError, pa.ArrowException, OSError, ValueError) as error:
            raise QueryError(one_line(error)) from error


@contextmanager
def row_queries(tables: Mapping[str, tuple[pa.Schema, Batches]]) -> Iterator[RowQueries]:
    """Make tables available to queries. ``tables``: from a table's name to its schema and a function that yields its rows.

    Raises the error of `failed_io` if the rows cannot be copied to a temporary folder.
    """
    builder = QueryBuilder(_SETTINGS)
    with scratch_folder() as folder:
        for name, (schema, batches) in tables.items():
            path = str(Path(folder, name))
            try:
                write_deltalake(path, pa.RecordBatchReader.from_batches(schema, batches()))
                builder.register(name, DeltaTable(path))
            except (DeltaError, pa.ArrowException, OSError) as error:
                raise failed_io(
                    error,
                    "rows-not-copied",
                    "the rows of {table} cannot be copied to {folder}: {error}. Make room in TMPDIR, then run again",
                    table=name,
                    folder=folder,
                    error=one_line(error),
                ) from error
        yield RowQueries(builder)


def refused(query: str) -> str | None:
    """Return why a text is not a query, or not one that gives the same rows in every attempt; None if nothing is wrong."""
    if not _QUERY.match(query):
        return "only SELECT ... and WITH ... are queries of rows"
    if match := _CHANGING.search(_QUOTED.sub(" ", query)):
        word = match[0].rstrip("( \n\t")
        return f"{word} gives another value in each attempt: use columns of the rows, such as _timestamp"
    return None


def check_query(query: str, tables: Mapping[str, pa.Schema]) -> None:
    """Execute a query for offending rows on tables without rows.

    Raises `QueryError` if it is not a query, names an unknown table or column, or returns a row for an empty set of rows.
    """
    if why := refused(query):
        raise QueryError(why)
    with row_queries({name: (schema, lambda: iter(())) for name, schema in tables.items()}) as queries:
        if any(batch.num_rows for batch in queries.rows(query)):
            raise QueryError(
                "it returns a row for an empty set of rows, as an aggregate without GROUP BY may, so a run that adds no rows "
                "could not meet it. Select offending rows; to ask for a number of rows, use `rows: {min: N}` instead of `sql`"
            )


def as_text(value: Any) -> Any:
    """Convert a column of a result to Arrow's usual types. DataFusion returns texts and bytes as views."""
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return value.cast(views[value.type]) if value.type in views else value
