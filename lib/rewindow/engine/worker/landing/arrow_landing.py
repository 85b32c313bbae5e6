"""The landing engine that reads sources with Arrow. A source that only Spark reads exactly is landed by another engine.

A small landing runs in the process of the command, without a JVM. The two passes of a large landing run in the workers of a
scheduler (Spark).

Before anything is landed, `wrong_columns` checks the names of columns, and `expected_schema` returns the schema for the check
of a job's code. Both give an answer only if neither Spark nor the reading of large files is needed to know the columns.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from rewindow.contracts.ingest import (
    FAR,
    Arrivals,
    Intervals,
    LogColumns,
    LogSpec,
    LogWrite,
    ReadWindow,
    SourceLook,
    SourceSpec,
)
from rewindow.contracts.landing_protocol import Block, LandingEngine
from rewindow.contracts.source_fields import SMALL_JSON_BYTES, SourceFields
from rewindow.contracts.text_options import CSV, JSON, TEXT_FORMATS
from rewindow.engine.worker.bad_rows import naming_bad_rows
from rewindow.engine.worker.file_fields import (
    csv_columns,
    directory_columns,
    local_files,
    parquet_fields,
    stored_fields,
)
from rewindow.engine.worker.landing.arrow_source import check_for_spark, inferred_schema, open_source
from rewindow.engine.worker.landing.log_columns import log_columns, missing_columns, nested_renames
from rewindow.engine.worker.landing.schema_ddl import declared_columns
from rewindow.engine.worker.landing.sorted_runs import (
    Run,
    merged,
    read_run,
    released,
    row_order,
    sorted_chunks,
    write_runs,
)
from rewindow.engine.worker.landing.source_rows import ArrowSource, Portion, RowReader
from rewindow.engine.worker.landing.source_types import UnsuitableError, normalized, schema_of
from rewindow.engine.worker.landing.text_source import OnWorkers, TextFiles, open_text, text_fields, text_schema
from rewindow.engine.worker.log_writer import write_log
from rewindow.engine.worker.source_files import look_at_files, unchanged
from rewindow.engine.worker.worker_errors import as_in_a_worker
from rewindow.errors import RewindowError
from rewindow.storage.scratch import scratch_folder

_Schedule = Callable[[LogWrite, ArrowSource], list[Block]]
"""A function that runs both passes of a large landing in workers."""


def open_due(
    spec: LogSpec, columns: LogColumns, look: SourceLook, window: ReadWindow, texts: TextFiles, partitions: int
) -> ArrowSource:
    """Return an `ArrowSource` with the due rows of a source. Raises as `open_text` or `open_source` does."""
    if spec.source.format in TEXT_FORMATS:
        return open_text(spec, columns, look, window, partitions, partial(texts.read, spec))
    return open_source(spec, columns, look, window, partitions)


class ArrowLandingEngine:
    """An engine that lands text files, Parquet files and Delta tables with Arrow, and other sources with another engine."""

    def __init__(
        self,
        other: Callable[[], LandingEngine],
        schedule: _Schedule,
        *,
        project_root: str,
        most_rows: int,
        on_share: Callable[[float], None] | None = None,
        on_other: Callable[[str], None] | None = None,
        on_workers: OnWorkers | None = None,
        shared_folder: str | None = None,
    ) -> None:
        """``schedule`` lands sources of more than ``most_rows`` rows.

        ``other`` returns the engine for sources that Arrow cannot read. ``on_workers`` tokenizes large text files in workers.
        If it is None, this process tokenizes them. ``shared_folder`` is a folder that workers on other machines can read and
        write.

        ``on_share`` gets the share of the files that has been read, from 0 to 1. If a source is not landed in this process,
        ``on_other`` gets the reason.
        """
        self._on_share, self._on_other = on_share, on_other
        self._other, self._schedule, self._most_rows = other, schedule, most_rows
        self._texts = TextFiles(on_workers, most_rows, shared_folder)
        self.project_root = project_root

    def look(self, spec: SourceSpec, position: Mapping[str, Any] | None) -> SourceLook:
        """Compare a file source with its landed position (see `look_at_files`)."""
        # Each call of `land` begins with `look`. So the tokenized files of an earlier call are dropped here.
        self._texts.forget()
        return look_at_files(spec, position)

    def check_unchanged(self, spec: SourceSpec, look: SourceLook) -> None:
        """Raise `SourceError` (66) if fresh files have changed since ``look`` was made."""
        unchanged(look, spec)

    def wrong_columns(self, spec: LogSpec, look: SourceLook) -> RewindowError | None:
        """Return the error if the configuration names columns that do not exist. Only headers and footers are read."""
        return wrong_columns(spec, look, self._texts)

    def columns(self, spec: LogSpec, look: SourceLook) -> LogColumns:
        """Decide the typed columns of a log. Raises `ConfigError` (78) for columns that cannot be landed."""
        try:
            is_text = spec.source.format in TEXT_FORMATS
            schema = text_schema(spec, look, self._texts) if is_text else inferred_schema(spec, look)
        except UnsuitableError as error:
            return self._left(spec, look, error).columns(spec, look)
        return log_columns(spec, normalized(schema))

    def intervals(
        self, spec: LogSpec, columns: LogColumns, look: SourceLook, window: ReadWindow, intervals: Intervals
    ) -> Arrivals:
        """Return the intervals in which the rows that are not landed arrived."""
        until_ms = FAR if window.until_ms is None else window.until_ms
        try:
            source = open_due(spec, columns, look, replace(window, until_ms=FAR), self._texts, 1)
            return source.arrivals(intervals, until_ms)
        except UnsuitableError as error:
            return self._left(spec, look, error).intervals(spec, columns, look, window, intervals)

    def later(self, spec: LogSpec, columns: LogColumns, look: SourceLook, until_ms: int) -> Mapping[str, int]:
        """Return the first arrival (epoch ms) at ``until_ms`` or later in each file, by file.

        Files without such an arrival are left out. The statistics of most Parquet files suffice for this.
        """
        everything = replace(look, fresh=(), rest=(*look.rest, *look.fresh))
        try:
            return open_due(spec, columns, everything, ReadWindow(until_ms, FAR), self._texts, 1).first_arrivals()
        except UnsuitableError as error:
            return self._left(spec, look, error).later(spec, columns, look, until_ms)

    def fields(self, spec: LogSpec, columns: LogColumns, look: SourceLook) -> SourceFields:
        """Return the fields of a log's schema and of the files to land."""
        if spec.source.format in TEXT_FORMATS:
            return text_fields(spec, columns, look, self._texts)
        return stored_fields(spec, columns, look)

    def first_above(self, spec: LogSpec, partition: int, offsets: tuple[int, int], time_ms: int) -> int | None:
        """Return the first of the offsets ``[first, end)`` whose timestamp is above a time; None if there is none.

        The log keeps the offsets of its source.
        """
        return self._other().first_above(spec, partition, offsets, time_ms)

    def write(self, write: LogWrite, look: SourceLook, window: ReadWindow) -> list[Block]:
        """Write the due rows of a log as staged files; return a block per landing and partition."""
        try:
            source = open_due(write.spec, write.columns, look, window, self._texts, write.partitions)
            is_here = source.rows <= self._most_rows
            if write.spec.source.format in TEXT_FORMATS:
                is_here = not self._texts.are_on_workers(portion.page for portion in source.portions)
            with naming_bad_rows(write, look, source.bad_times):
                if is_here:
                    blocks = self._land_here(write, source)
                else:
                    self._tell(
                        write.spec,
                        f"{source.rows:,} rows are more than the {self._most_rows:,} that land without (`inline:`)",
                    )
                    blocks = self._schedule(write, source)
        except UnsuitableError as error:
            return self._left(write.spec, look, error).write(write, look, window)
        return sorted(blocks, key=lambda block: (block.landing, block.partition))

    def _left(self, spec: LogSpec, look: SourceLook, error: UnsuitableError) -> LandingEngine:
        """Return the other engine for a source that Arrow cannot read because of ``error``.

        Raises the errors of `check_for_spark`.
        """
        check_for_spark(spec, look, error)
        self._tell(spec, str(error))
        return self._other()

    def _tell(self, spec: LogSpec, why: str) -> None:
        """Report why a source is not landed in this process."""
        if self._on_other is not None:
            self._on_other(f"read {spec.source.name}: {why}")

    def _followed(self, portions: Sequence[Portion]) -> Iterator[Portion]:
        """Yield portions. After each portion, report the finished share of all portions."""
        for done, portion in enumerate(portions, start=1):
            yield portion
            if self._on_share is not None:
                self._on_share(done / len(portions))

    def _land_here(self, write: LogWrite, source: ArrowSource) -> list[Block]:
        if self.project_root not in sys.path:
            sys.path.insert(0, self.project_root)
        reader = source.reader
        with scratch_folder() as folder:
            chunks = _due_chunks(reader, self._followed(source.portions), write.memory_bytes)
            head = deque(islice(chunks, 2))
            # A single chunk means that all rows fit into memory, so no files are needed for sorting.
            if len(head) < 2:
                blocks = write_log(write, head)
            else:
                runs = list(write_runs(released(head, chunks), folder, write.attempt))
                blocks = merge(write, runs, range(write.partitions))
            with as_in_a_worker():
                return list(blocks)


def split(
    reader: RowReader, portions: Iterable[Portion], memory_bytes: int, folder: str, attempt: str
) -> Iterator[Run]:
    """First pass of a large landing: sort the due rows of some portions, and write them to new files (runs) in a folder."""
    return write_runs(_due_chunks(reader, portions, memory_bytes), folder, attempt)


def merge(write: LogWrite, runs: Sequence[Run], partitions: Iterable[int]) -> Iterator[Block]:
    """Second pass: write some partitions of a log from the rows of all runs. Raises the errors of `write_log`."""
    return write_log(write, _of_partitions(runs, partitions, row_order(write.spec, write.columns)))


def _due_chunks(reader: RowReader, portions: Iterable[Portion], memory_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the due rows of some portions in sorted chunks that fit into the memory."""
    return sorted_chunks(
        chain.from_iterable(map(reader.read, portions)), row_order(reader.spec, reader.columns), memory_bytes
    )


def _of_partitions(runs: Sequence[Run], partitions: Iterable[int], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for partition in sorted(partitions):
        own = [read_run(run, partition) for run in runs if partition in run.batches]
        yield from merged(own, names)


def wrong_columns(spec: LogSpec, look: SourceLook, texts: TextFiles | None = None) -> RewindowError | None:
    """Return the error if the configuration names columns that do not exist; None if all exist, or if only rows would tell.

    Without ``texts``, JSON files are read only if they are small.
    """
    try:
        names = _names(spec, look, texts)
    except RewindowError as error:
        return error
    return missing_columns(spec, names) if names else None


def _names(spec: LogSpec, look: SourceLook, texts: TextFiles | None) -> Sequence[str] | None:
    """Return the names of the columns of all files; None if they are not certain.

    CSV columns are in the order of their first occurrence.
    """
    source, pieces = spec.source, (*look.rest, *look.fresh)
    if look.schema is not None or not pieces:
        return None
    directories = sorted({name for piece in pieces for name in directory_columns(piece.path, look.base)})
    if source.schema is not None:
        return [*declared_columns(spec, source.schema), *directories]
    if source.format == "parquet" and not source.options:
        files = parquet_fields(source, pieces, look.base)
        present = {name for file in files for name in file.present if "." not in name}
        return sorted(present) if len(files) == len(pieces) else None
    if source.format == JSON:
        if texts is None and sum(file.stat().st_size for file in local_files(pieces)) > SMALL_JSON_BYTES:
            return None
        read = (texts or TextFiles()).read(spec, pieces, infers=True)
        return [*sorted({name for file in read for name in file.names}), *directories]
    if source.format != CSV:
        return None
    headers = [header for piece in pieces if (header := csv_columns(source, piece.path)) is not None]
    spelling = {name.lower(): name for header in reversed(headers) for name in header}
    in_order = [name.lower() for header in headers for name in header]
    return [*(spelling[name] for name in dict.fromkeys(in_order)), *directories] if headers else None


_UNSURE = "unsure"
"""The type of a column whose type is not certain."""


_MOST_BYTES = 16 << 20
"""Files are read to infer a schema only if they have at most this many bytes together."""


def expected_schema(spec: LogSpec, look: SourceLook) -> str | None:
    """Return the schema (Spark's JSON) of a source, with `_UNSURE` for uncertain types; None if the columns are unknown.

    Raises a `RewindowError` for files that cannot be landed.
    """
    source = spec.source
    if source.format not in TEXT_FORMATS:
        try:
            return inferred_schema(spec, look)
        except UnsuitableError:
            return look.schema
    files = local_files(look.fresh)
    if source.schema is not None or sum(file.stat().st_size for file in files) <= _MOST_BYTES:
        return text_schema(spec, look, TextFiles())
    names = csv_columns(source, str(files[0])) if source.format == CSV else None
    if not names:
        return None
    kinds: dict[str, Any] = {**dict.fromkeys(names, _UNSURE), **dict.fromkeys(nested_renames(spec, names), _UNSURE)}
    keys = {old for old, new in (spec.renames or {}).items() if new in spec.key} | set(spec.key)
    return schema_of({name: "string" if name in keys else kind for name, kind in kinds.items()})
