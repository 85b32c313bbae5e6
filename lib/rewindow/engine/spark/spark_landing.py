"""The engines of `land` on Spark.

`SparkLandingEngine` lets Spark read the due rows of a source once and shuffle them once; the workers write them.
`SparkPasses` lands a large source that Arrow can read: workers read and write the files in two passes, and Spark carries only
names and reports.

A table from Kafka has records with their own partitions and offsets. `land` copies no rows of such a table and only records
the ranges of offsets. One aggregation over the new rows returns the range of each partition and its largest timestamp. It
also checks that the range contains each offset exactly once: it compares the count, sum and sum of squares of the offsets
with those of all numbers in the range. (In theory, three duplicate and three missing offsets could cancel out. The run that
reads the rows detects this.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

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
from rewindow.contracts.instants import UNITS, unit_of
from rewindow.contracts.landing_protocol import Block
from rewindow.contracts.source_fields import SourceFields
from rewindow.engine.spark.ingest_frames import (
    OFFSET,
    PATH,
    SourceFrame,
    offset_columns,
    source_columns,
    time_ms,
    unit_of_number,
)
from rewindow.engine.spark.spark_calls import Driver, following, in_utc, json_rows, mapped, open_delta, this_driver
from rewindow.engine.spark.spark_partitions import repartition_by
from rewindow.engine.worker.bad_rows import checks_units, naming_bad_rows
from rewindow.engine.worker.file_fields import stored_fields
from rewindow.engine.worker.landing.arrow_landing import merge, split, wrong_columns
from rewindow.engine.worker.landing.sorted_runs import ARRIVED, FAULT, PARTITION, TIMESTAMP, Run, row_order
from rewindow.engine.worker.landing.source_rows import ArrowSource, Portion, RowReader, split_evenly
from rewindow.engine.worker.landing.source_types import UnsuitableError
from rewindow.engine.worker.log_writer import write_log
from rewindow.engine.worker.source_files import look_at_files, unchanged
from rewindow.engine.worker.text.file_text import Part
from rewindow.engine.worker.text.reading import PartRead, TextRead, read_into
from rewindow.engine.worker.timestamps import arrivals_of
from rewindow.errors import ConfigError, DataError, RewindowError
from rewindow.storage.locations import filesystem_of
from rewindow.storage.progress import counted
from rewindow.streams.record import UNKNOWN

_ARRIVALS = pa.schema(
    [
        pa.field("start", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("next", pa.int64()),
        pa.field("fault", pa.string()),
    ]
)
_EXCHANGE = "_exchange"
"""The folder, in the log's folder, of the files that the first pass writes and the second pass reads. Delta ignores names
that start with an underscore."""
_UNSUITABLE = "unsuitable"
_Work = Callable[[int], Iterator[Mapping[str, Any]]]


class SparkLandingEngine:
    """Lands sources on a Spark session, one job per log. Workers import extractors from ``project_root``."""

    def __init__(
        self,
        spark: SparkSession | Callable[[], SparkSession],
        *,
        project_root: str,
        on_share: Callable[[float], None] | None = None,
    ) -> None:
        """``spark`` is a session, or a function that returns a session and is called when rows are first read.

        ``on_share`` gets the share of finished tasks of the current Spark job, from 0 to 1.
        """
        self._given, self._on_share = spark, on_share
        self.project_root = project_root

    @property
    def _spark(self) -> SparkSession:
        return self._given() if callable(self._given) else self._given

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the Spark jobs of the block in UTC, translate their errors, and report their progress."""
        with mapped(), in_utc(self._spark), following(self._spark, self._on_share):
            yield

    def look(self, spec: SourceSpec, position: Mapping[str, Any] | None) -> SourceLook:
        """Compare a file source with its landed position (see `look_at_files`)."""
        return look_at_files(spec, position)

    def check_unchanged(self, spec: SourceSpec, look: SourceLook) -> None:
        """Raise `SourceError` (66) if fresh files have changed since ``look`` was made."""
        unchanged(look, spec)

    def wrong_columns(self, spec: LogSpec, look: SourceLook) -> RewindowError | None:
        """Return what is wrong with the columns that the configuration names. Only headers and footers are read."""
        return wrong_columns(spec, look)

    def columns(self, spec: LogSpec, look: SourceLook) -> LogColumns:
        """Return the typed columns of a log, decided from its source.

        Raises `ConfigError` (78) for columns that cannot be landed.
        """
        with self.running():
            return SourceFrame(self._spark, spec, look).columns()

    def fields(self, spec: LogSpec, columns: LogColumns, look: SourceLook) -> SourceFields:
        """Return the fields of a log's schema and of the files to land."""
        return stored_fields(spec, columns, look)

    def intervals(
        self, spec: LogSpec, columns: LogColumns, look: SourceLook, window: ReadWindow, intervals: Intervals
    ) -> Arrivals:
        """Return the intervals in which the rows that are not landed arrived. Runs one job over their arrivals."""
        until_ms = FAR if window.until_ms is None else window.until_ms
        with self.running():
            frame = SourceFrame(self._spark, spec, look).due(columns, replace(window, until_ms=FAR), 1)
            rows = (
                frame.select(ARRIVED, FAULT)
                .mapInArrow(
                    partial(_arrivals, intervals, until_ms), "start bigint, rows bigint, next bigint, fault string"
                )
                .collect()
            )
        nexts = [row.next for row in rows if row.next is not None]
        return Arrivals(
            starts=frozenset(row.start for row in rows if row.next is None),
            waiting=sum(row.rows for row in rows if row.next is not None),
            next_ms=min(nexts, default=None),
            fault=min((row.fault for row in rows if row.fault is not None), default=None),
        )

    def later(self, spec: LogSpec, columns: LogColumns, look: SourceLook, until_ms: int) -> Mapping[str, int]:
        """Return the first arrival (epoch ms) at ``until_ms`` or later in each file, by file.

        Files without such an arrival are left out. Runs one job over the arrivals.
        """
        names = {piece.path: piece.name for piece in (*look.rest, *look.fresh)}
        with self.running():
            arrivals = SourceFrame(self._spark, spec, look).arrivals(columns)
            rows = arrivals.where(F.col(ARRIVED) >= until_ms).groupBy(PATH).agg(F.min(ARRIVED).alias(ARRIVED)).collect()
        return {names[row[PATH]]: row[ARRIVED] for row in rows}

    def first_above(self, spec: LogSpec, partition: int, offsets: tuple[int, int], time_ms: int) -> int | None:
        """Return the first of the offsets ``[first, end)`` whose timestamp is above a time; None if there is none.

        The log keeps the offsets of its source.
        """
        with self.running():
            return first_above(self._spark, spec, partition, offsets, time_ms)

    def write(self, write: LogWrite, look: SourceLook, window: ReadWindow) -> list[Block]:
        """Write the due rows of a log as staged files; return a block per landing and partition.

        For a table with its own offsets, no rows are written. The new rows are only counted. Raises the worker's own
        `RewindowError`.
        """
        if write.spec.source_offsets:
            with self.running():
                return source_offset_blocks(
                    write, SourceFrame(self._spark, write.spec, look).source_offsets(write.columns)
                )
        write_rows = partial(_write_rows, write, self.project_root, this_driver())
        with naming_bad_rows(write, look), self.running():
            rows = self._ordered(write, look, window).mapInArrow(write_rows, "block string").collect()
        blocks = [Block.from_json(json.loads(row.block)) for row in rows]
        return sorted(blocks, key=lambda block: (block.landing, block.partition))

    def _ordered(self, write: LogWrite, look: SourceLook, window: ReadWindow) -> DataFrame:
        """Return the due rows of a log, by partition and in offset order."""
        tasks = max(1, min(write.partitions, int(self._spark.conf.get("spark.sql.shuffle.partitions") or 1)))
        due = SourceFrame(self._spark, write.spec, look).due(write.columns, window, write.partitions)
        rows = repartition_by(due, tasks, F.col(PARTITION) % tasks)
        order = [F.col(f"`{name}`").asc_nulls_first() for name in row_order(write.spec, write.columns)]
        return rows.sortWithinPartitions(*order)


class SparkPasses:
    """Runs the two passes of a large landing as two jobs of a Spark session."""

    def __init__(
        self,
        spark: Callable[[], SparkSession],
        *,
        slots: int,
        project_root: str,
        on_share: Callable[[float], None] | None = None,
    ) -> None:
        """``spark`` returns the session. It is called at the first large landing. ``slots`` is the number of concurrent tasks.

        ``on_share`` gets the share of finished tasks of the current pass, from 0 to 1.
        """
        self._spark, self._slots, self._project_root, self._on_share = spark, slots, project_root, on_share

    def __call__(self, write: LogWrite, source: ArrowSource) -> list[Block]:
        """Land a source. Raises the worker's own `RewindowError`, or `UnsuitableError`."""
        folder = f"{write.log_root}/{_EXCHANGE}"
        system, location = filesystem_of(folder)
        system.create_dir(location, recursive=True)
        parts = split_evenly(source, self._slots)
        runs: list[Run] = []
        try:
            split_part = partial(_split, source.reader, parts, write.memory_bytes, folder, write.attempt)
            for report in self._run(len(parts), split_part):
                if _UNSUITABLE in report:
                    raise UnsuitableError(report[_UNSUITABLE])
                runs.append(Run.from_json(report))
            partitions = sorted({partition for run in runs for partition in run.batches})
            groups = [partitions[start :: self._slots] for start in range(min(self._slots, len(partitions)))]
            merge_group = partial(_merge, write, runs, groups)
            return [Block.from_json(report) for report in self._run(len(groups), merge_group)] if groups else []
        finally:
            _remove(folder, write.attempt)

    def read(self, read: TextRead, parts: Sequence[Part], folder: str) -> list[PartRead]:
        """Tokenize parts of text files into pages in a folder, as one job. Raises the worker's own `RewindowError`."""
        return [PartRead.from_json(part) for part in self._run(len(parts), partial(_read_part, read, parts, folder))]

    def _run(self, tasks: int, work: _Work) -> list[Mapping[str, Any]]:
        if not tasks:
            return []
        do = partial(_do, work, self._project_root, this_driver())
        with mapped(), following(self._spark(), self._on_share):
            rows = self._spark().range(0, tasks, 1, tasks).mapInArrow(do, "text string").collect()
        return [json.loads(row.text) for row in rows]


def _write_rows(
    write: LogWrite, project_root: str, driver: Driver, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    blocks = (block.as_json() for block in write_log(write, counted(batches)))
    return json_rows("block", [project_root], driver, lambda: blocks)


def _arrivals(intervals: Intervals, until_ms: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield one row per interval with due rows, one for a faulty arrival, and one for the rows that wait."""
    arrivals = arrivals_of(intervals, until_ms, ((batch.column(0), batch.column(1)) for batch in batches))
    rows: list[dict[str, Any]] = [{"start": start} for start in arrivals.starts if start is not None]
    rows += [{"fault": arrivals.fault}] if arrivals.fault is not None else []
    rows += [{"rows": arrivals.waiting, "next": arrivals.next_ms}] if arrivals.waiting else []
    yield pa.RecordBatch.from_pylist(rows, schema=_ARRIVALS)


def _do(work: _Work, project_root: str, driver: Driver, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tasks = (task for batch in batches for task in batch.column(0).to_pylist())
    return json_rows("text", [project_root], driver, lambda: chain.from_iterable(map(work, tasks)))


def _read_part(read: TextRead, parts: Sequence[Part], folder: str, task: int) -> Iterator[Mapping[str, Any]]:
    yield read_into(read, parts[task], folder).as_json()


def _split(
    reader: RowReader, parts: Sequence[Sequence[Portion]], memory_bytes: int, folder: str, attempt: str, task: int
) -> Iterator[Mapping[str, Any]]:
    try:
        for run in split(reader, parts[task], memory_bytes, folder, attempt):
            yield run.as_json()
    except UnsuitableError as error:
        yield {_UNSUITABLE: str(error)}


def _merge(
    write: LogWrite, runs: Sequence[Run], groups: Sequence[Sequence[int]], task: int
) -> Iterator[Mapping[str, Any]]:
    for block in merge(write, runs, groups[task]):
        yield block.as_json()


def _remove(folder: str, attempt: str) -> None:
    """Delete the exchange files of this landing, including files of tasks that died."""
    system, location = filesystem_of(folder)
    for info in system.get_file_info(fs.FileSelector(location, allow_not_found=True)):
        if info.base_name.startswith(f"{attempt}-"):
            system.delete_file(info.path)


_LONGEST = 2**63 - 1


def source_offset_blocks(write: LogWrite, rows: DataFrame) -> list[Block]:
    """Return the block of each partition. ``write`` has a single landing.

    Raises `DataError` (65) for a missing or duplicate offset, or a record without a valid partition, offset or timestamp;
    `ConfigError` (78) for a partition that the feed does not have.
    """
    (landing,) = write.landings
    return [_block(write, rows, landing.number, facts) for facts in _ranges(write, rows)]


def first_above(
    spark: SparkSession, spec: LogSpec, partition: int, offsets: tuple[int, int], above_ms: int
) -> int | None:
    """Return the first of a partition's offsets ``[first, end)`` in the table with a timestamp above a time."""
    frame = open_delta(spark, spec.source.location)
    sources = source_columns(spec, frame.schema)
    partition_of_row, offset = offset_columns(spec, sources)
    in_range = (partition_of_row == partition) & (offset >= offsets[0]) & (offset < offsets[1])
    later = frame.where(in_range & (time_ms(spec, spec.timestamp, sources) > above_ms))
    (row,) = later.agg(F.min(offset).alias("first")).collect()
    return None if row["first"] is None else int(row["first"])


def _ranges(write: LogWrite, rows: DataFrame) -> list[Any]:
    offset, time = F.col(OFFSET), F.col(TIMESTAMP)
    ahead = write.policy.max_ahead_ms
    latest = _LONGEST if ahead is None else write.now_ms + ahead
    wrong = time.isNull() | (time < 0) | (time > latest)
    if checks_units(write):
        wrong |= unit_of_number(time).isNotNull()
    exact = offset.cast("decimal(19,0)")
    facts = rows.groupBy(PARTITION).agg(
        F.count(offset).alias("count"),
        F.count("*").alias("all"),
        F.min(offset).alias("first"),
        F.max(offset).alias("last"),
        F.sum(exact).alias("sum"),
        F.sum((exact * exact).cast("decimal(38,0)")).alias("squares"),
        F.max(time).alias("latest"),
        F.min(F.when(wrong, F.struct(offset, time))).alias("wrong"),
    )
    ranges = sorted(facts.collect(), key=lambda row: (row[PARTITION] is not None, row[PARTITION] or 0))
    for row in ranges:
        _check_partition(write, row)
        if row["wrong"] is not None:
            raise _bad_time(write, row)
    return ranges


def _block(write: LogWrite, rows: DataFrame, landing: int, facts: Any) -> Block:
    partition, first, last, count = facts[PARTITION], facts["first"], facts["last"], facts["count"]
    start, latest = write.starts.get(partition, (0, UNKNOWN))
    base = write.bases.get(partition, first)
    expected = start + base
    if first < expected:
        raise _offset_error(write, partition, first, "occurs again, after it was landed")
    if first > expected:
        raise _offset_error(write, partition, expected, "is missing")
    if not _is_whole(first, last, count, facts["sum"], facts["squares"]):
        raise _offset_error(write, partition, *_first_break(rows, partition))
    return Block(landing, partition, start, start + count, max(latest, facts["latest"]), 0, 0, (), (), base=base)


def _is_whole(first: int, last: int, count: int, total: Any, squares: Any) -> bool:
    """Return whether the count, sum and sum of squares of offsets equal those of all numbers from ``first`` to ``last``."""
    if count != last - first + 1:
        return False
    up_to = [number * (number + 1) * (2 * number + 1) // 6 for number in (last, first - 1)]
    return int(total) == (first + last) * count // 2 and int(squares) == up_to[0] - up_to[1]


def _first_break(rows: DataFrame, partition: int) -> tuple[int, str]:
    """Return the first missing or duplicate offset of a partition, and the words ``is missing`` or ``is duplicated``."""
    before = F.lag(OFFSET).over(Window.orderBy(OFFSET))
    steps = rows.where(F.col(PARTITION) == partition).select(OFFSET, before.alias("_before"))
    (row,) = steps.where(F.col(OFFSET) != F.col("_before") + 1).orderBy(OFFSET).limit(1).collect()
    is_repeated = row[OFFSET] == row["_before"]
    return (row[OFFSET], "is duplicated") if is_repeated else (row["_before"] + 1, "is missing")


def _check_partition(write: LogWrite, row: Any) -> None:
    names = " and ".join(write.spec.source_offsets or ())
    partition = row[PARTITION]
    if partition is None or row["count"] < row["all"] or row["first"] < 0:
        raise DataError(
            "record-offset-invalid",
            "{source} has records without a valid {columns}. Fix the table or configure other columns",
            source=write.spec.source.name,
            columns=names,
        )
    if not 0 <= partition < write.partitions:
        raise ConfigError(
            "partition-out-of-range",
            "{source} has records of partition {partition}, but the feed {feed} has the partitions 0 to "
            "{last}. Set `partitions: {needed}` or the number of partitions of the topic",
            source=write.spec.source.name,
            partition=partition,
            feed=write.feed,
            last=write.partitions - 1,
            needed=partition + 1,
        )


def _bad_time(write: LogWrite, row: Any) -> DataError:
    offset, time = row["wrong"]
    reason = "no timestamp" if time is None else f"the timestamp {time}, which is negative or beyond `max_ahead`"
    if time is not None and checks_units(write) and (unit := unit_of(time, write.now_ms)):
        reason = (
            f"the timestamp {time}, which is in {UNITS[unit]} (`units: {{{write.spec.timestamp}: ms}}` if it is not)"
        )
    return DataError(
        "offset-record-time-invalid",
        "feed {feed}, topic {topic}, partition {partition}: the record at offset {offset} has {reason}. Nothing "
        "was landed. Fix the table or configure another `timestamp:`. A log with its source's offsets "
        "cannot skip records",
        feed=write.feed,
        topic=write.spec.topic,
        partition=row[PARTITION],
        offset=offset,
        reason=reason,
    )


def _offset_error(write: LogWrite, partition: int, offset: int, reason: str) -> DataError:
    return DataError(
        "offsets-not-consecutive",
        "feed {feed}, topic {topic}: offset {offset} of partition {partition} {reason} in {source}. Nothing "
        "was landed. Fix the table, or let rewindow assign offsets: remove `partition:` and `offset:` (a "
        "compacted topic has gaps)",
        feed=write.feed,
        topic=write.spec.topic,
        offset=offset,
        partition=partition,
        reason=reason,
        source=write.spec.source.name,
    )
