"""Land tables whose records have their own partitions and offsets, as from Kafka: `land` only records their ranges.

One aggregation over the new rows returns each partition's range, its largest timestamp, and whether the range contains each
offset exactly once: count, sum and sum of squares must be those of the range. (Three duplicate and three missing offsets
could cancel out; the run that reads the rows detects that.)
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import LogSpec, LogWrite
from rewindow.contracts.instants import UNITS, unit_of
from rewindow.contracts.landing import Block
from rewindow.engine.spark.ingest_columns import offset_columns, source_columns, time_ms, unit_of_number
from rewindow.engine.spark.ingest_frames import OFFSET
from rewindow.engine.spark.spark_job import open_delta
from rewindow.engine.worker.faults import checks_units
from rewindow.engine.worker.log_blocks import PARTITION, TIMESTAMP
from rewindow.errors import ConfigError, DataError
from rewindow.streams.record import UNKNOWN

_LONGEST = 2**63 - 1


def source_offset_blocks(write: LogWrite, rows: DataFrame) -> list[Block]:
    """Return the block of each partition of the call's only landing.

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
    """Return whether these are the sums over all numbers from ``first`` to ``last``."""
    if count != last - first + 1:
        return False
    up_to = [number * (number + 1) * (2 * number + 1) // 6 for number in (last, first - 1)]
    return int(total) == (first + last) * count // 2 and int(squares) == up_to[0] - up_to[1]


def _first_break(rows: DataFrame, partition: int) -> tuple[int, str]:
    """Return the first missing or duplicate offset of a partition, and which of both it is."""
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
