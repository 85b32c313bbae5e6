"""SQL queries for expectations, over the new rows of an output and the rows of the previous run.

DataFusion, a part of delta-rs, executes the queries. It reads only Delta tables, so the rows are copied to a temporary
folder. It uses one partition and therefore one thread, so that sums of floats and the order of rows are the same in every
attempt.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread, stack_size
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError

from rewindow.errors import failed_io, one_line
from rewindow.storage.scratch import scratch_folder
from rewindow.streams.duration import in_words

Batches = Callable[[], Iterator[pa.RecordBatch]]

_CHECK_MS = 20_000
"""The time limit for a query on tables without rows."""
_AHEAD = 2
"""At most this many batches of a result wait until the caller takes them."""
_STACK_BYTES = 64 << 20
_SETTINGS = {"datafusion.execution.target_partitions": "1"}
# A comment matches in only one way. Otherwise the search through many comments for a following word would take for ever.
_QUERY = re.compile(r"\s*(?:(?:--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)\s*)*(?:select|with)\b", re.IGNORECASE)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_CHANGING = re.compile(
    r"\b(?:(?:now|random|uuid|today)\s*\(|current_(?:date|time|timestamp)\b)",
    re.IGNORECASE,
)


class QueryError(Exception):
    """A query cannot be executed. The message states the reason in one line."""


class SlowQueryError(QueryError):
    """A query has not ended within ``limit``."""

    def __init__(self, timeout_ms: int) -> None:
        self.limit = in_words(timeout_ms)
        super().__init__(f"it did not end within {self.limit}")


class RowQueries:
    """An executor of queries on the tables that `row_queries` has registered."""

    def __init__(self, builder: QueryBuilder) -> None:
        self._builder = builder

    def rows(self, query: str, timeout_ms: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows that a query returns. The query must end within ``timeout_ms``.

        Raises `QueryError` if the query cannot be executed, `SlowQueryError` if it does not end in time. Native code cannot
        be stopped, so such a query continues in its thread, at most until the process ends.
        """
        deadline, results = time.monotonic() + timeout_ms / 1000, Queue[Any](_AHEAD)
        is_wanted = Event()
        is_wanted.set()
        _with_deep_stack(lambda: _execute(self._builder, query, results, is_wanted))
        try:
            while (result := results.get(timeout=max(0.0, deadline - time.monotonic()))) is not None:
                if isinstance(result, BaseException):
                    raise QueryError(one_line(result)) from result
                yield result
        except Empty:
            raise SlowQueryError(timeout_ms) from None
        finally:
            is_wanted.clear()
            with suppress(Empty):  # the thread may be waiting for space in the queue
                results.get_nowait()


def _execute(builder: QueryBuilder, query: str, results: Queue[Any], is_wanted: Event) -> None:
    """Put the batches of a query into a queue, then None or, if the query fails, its error."""
    try:
        for batch in pa.RecordBatchReader.from_stream(builder.execute(query)):
            results.put(batch)
            if not is_wanted.is_set():
                return
        results.put(None)
    except BaseException as error:  # noqa: BLE001 - a panic of native code is no `Exception`
        results.put(error)


def _with_deep_stack(work: Callable[[], None]) -> None:
    """Start a thread with a large stack. DataFusion recurses over a query, and a long query would overflow a normal stack."""
    usual = stack_size(_STACK_BYTES)
    try:
        Thread(target=work, name="query", daemon=True).start()
    finally:
        stack_size(usual)


@contextmanager
def row_queries(tables: Mapping[str, tuple[pa.Schema, Batches]]) -> Iterator[RowQueries]:
    """Make tables available to queries. ``tables``: maps each table's name to its schema and a function that yields its rows.

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
    """Return why a text is no query, or may give other rows in another attempt; None if it is a query with fixed results."""
    if not _QUERY.match(query):
        return "only SELECT ... and WITH ... are queries of rows"
    if match := _CHANGING.search(_QUOTED.sub(" ", query)):
        word = match[0].rstrip("( \n\t")
        return f"{word} gives another value in each attempt: use columns of the rows, such as _timestamp"
    return None


def check_query(query: str, tables: Mapping[str, pa.Schema], timeout_ms: int) -> None:
    """Test a query for offending rows: execute it on tables without rows.

    Raises `QueryError` if ``query`` is not a query, names an unknown table or column, or returns a row although the tables
    have none. Raises `SlowQueryError` if it does not end.
    """
    if why := refused(query):
        raise QueryError(why)
    with row_queries({name: (schema, lambda: iter(())) for name, schema in tables.items()}) as queries:
        if any(batch.num_rows for batch in queries.rows(query, min(timeout_ms, _CHECK_MS))):
            raise QueryError(
                "it returns a row for an empty set of rows, as an aggregate without GROUP BY may, so a run that adds no rows "
                "could not meet it. Select offending rows; to ask for a number of rows, use `rows: {min: N}` instead of `sql`"
            )


def as_text(value: Any) -> Any:
    """Convert a column of a result to Arrow's usual types. DataFusion returns texts and bytes as views."""
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return value.cast(views[value.type]) if value.type in views else value
