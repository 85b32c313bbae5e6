"""Tables whose records have partitions and offsets of their own, as Kafka gave them: `land` only says how far they go.

One aggregation over the new rows tells each partition's range, its largest timestamp, and whether each offset is there
exactly once: there are as many as the range has room for, and their sum and the sum of their squares are those of the
range. (Three doubled ones and three missing ones could hide behind each other; the run that reads them finds those.)
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import Block, LogSpec, LogWrite
from rewindow.engine.spark.ingest_columns import offset_columns, source_columns, time_ms
from rewindow.engine.spark.ingest_frames import OFFSET
from rewindow.engine.spark.open_table import open_delta
from rewindow.engine.worker.log_blocks import PARTITION, TIMESTAMP
from rewindow.errors import ConfigError, DataError
from rewindow.streams.record import UNKNOWN

_LONGEST = 2**63 - 1


def source_offset_blocks(write: LogWrite, rows: DataFrame) -> list[Block]:
    """Return what the one landing of a call gets in each partition.

    Raises `DataError` (65) for an offset that is missing or there twice, or a record without a valid place or timestamp;
    `ConfigError` (78) for a partition that the feed does not have.
    """
    (landing,) = write.landings
    return [_block(write, rows, landing.number, found) for found in _ranges(write, rows)]


def first_above(
    spark: SparkSession, spec: LogSpec, partition: int, offsets: tuple[int, int], above_ms: int
) -> int | None:
    """Return the first of a partition's offsets ``[first, end)``, as the table has them, with a timestamp above a time."""
    frame = open_delta(spark, spec.source.location)
    found = source_columns(spec, frame.schema)
    here, offset = offset_columns(spec, found)
    inside = (here == partition) & (offset >= offsets[0]) & (offset < offsets[1])
    later = frame.where(inside & (time_ms(spec, spec.timestamp, found) > above_ms))
    (row,) = later.agg(F.min(offset).alias("first")).collect()
    return None if row["first"] is None else int(row["first"])


def _ranges(write: LogWrite, rows: DataFrame) -> list[Any]:
    offset, time = F.col(OFFSET), F.col(TIMESTAMP)
    ahead = write.policy.max_ahead_ms
    latest = _LONGEST if ahead is None else write.now_ms + ahead
    wrong = time.isNull() | (time < 0) | (time > latest)
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
    found = sorted(facts.collect(), key=lambda row: (row[PARTITION] is not None, row[PARTITION] or 0))
    for row in found:
        _check_place(write, row)
        if row["wrong"] is not None:
            raise _bad_time(write, row)
    return found


def _block(write: LogWrite, rows: DataFrame, landing: int, found: Any) -> Block:
    partition, first, last, count = found[PARTITION], found["first"], found["last"], found["count"]
    start, latest = write.starts.get(partition, (0, UNKNOWN))
    base = write.bases.get(partition, first)
    expected = start + base
    if first < expected:
        raise _offset_error(write, partition, first, "is there again, it was landed before")
    if first > expected:
        raise _offset_error(write, partition, expected, "is missing")
    if not _is_whole(first, last, count, found["sum"], found["squares"]):
        raise _offset_error(write, partition, *_first_break(rows, partition))
    return Block(landing, partition, start, start + count, max(latest, found["latest"]), 0, 0, (), (), base=base)


def _is_whole(first: int, last: int, count: int, total: Any, squares: Any) -> bool:
    """Return whether these are the sums of all numbers from first to last."""
    if count != last - first + 1:
        return False
    up_to = [number * (number + 1) * (2 * number + 1) // 6 for number in (last, first - 1)]
    return int(total) == (first + last) * count // 2 and int(squares) == up_to[0] - up_to[1]


def _first_break(rows: DataFrame, partition: int) -> tuple[int, str]:
    """Return the first offset of a partition that is not there exactly once, and what is wrong with it."""
    before = F.lag(OFFSET).over(Window.orderBy(OFFSET))
    steps = rows.where(F.col(PARTITION) == partition).select(OFFSET, before.alias("_before"))
    (row,) = steps.where(F.col(OFFSET) != F.col("_before") + 1).orderBy(OFFSET).limit(1).collect()
    is_twice = row[OFFSET] == row["_before"]
    return (row[OFFSET], "is there twice") if is_twice else (row["_before"] + 1, "is missing")


def _check_place(write: LogWrite, row: Any) -> None:
    names = " and ".join(write.spec.source_offsets or ())
    partition = row[PARTITION]
    if partition is None or row["count"] < row["all"] or row["first"] < 0:
        message = (
            f"{write.spec.source.name} has records that have no valid {names}: fix the table, or name other columns"
        )
        raise DataError(message)
    if not 0 <= partition < write.partitions:
        message = (
            f"{write.spec.source.name} has records of partition {partition}, the feed {write.feed} has the partitions 0 to "
            f"{write.partitions - 1}: say `partitions: {partition + 1}` or as many as the topic has"
        )
        raise ConfigError(message)


def _bad_time(write: LogWrite, row: Any) -> DataError:
    offset, time = row["wrong"]
    what = "no timestamp" if time is None else f"the timestamp {time}, which is below 0 or beyond `max_ahead`"
    message = (
        f"feed {write.feed}, topic {write.spec.topic}, partition {row[PARTITION]}: the record at offset {offset} has {what}. "
        "Nothing was landed: fix the table, or name another `timestamp:`. What its source has placed cannot be left out"
    )
    return DataError(message)


def _offset_error(write: LogWrite, partition: int, offset: int, what: str) -> DataError:
    message = (
        f"feed {write.feed}, topic {write.spec.topic}: offset {offset} of partition {partition} {what} in "
        f"{write.spec.source.name}. Nothing was landed: fix the table, or land it with offsets of its own (leave "
        "`partition:` and `offset:` out; a compacted topic has gaps)"
    )
    return DataError(message)
