"""The shuffle reader reads the same rows as the partition-local reader (L3), in both modes and after table maintenance."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rewindow import Count, StreamsBuilder, Sum, TimeWindows, Topology, until_window_closes
from rewindow.contracts.tasks import Execution
from rewindow.engine.spark.spark_engine import SparkEngine
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.errors import StorageError
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.settings import Semantics
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.testing import Epoch
from tests import landed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FEED, PARTITIONS = "shuffled", 3
ROOT = str(Path(__file__).parents[2])


def finals() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("left")
        .group_by_key()
        .windowed_by(TimeWindows.of("10ms", grace="5ms"))
        .aggregate({"events": Count(), "total": Sum()}, store="windows")
        .suppress(until_window_closes(), name="closed")
        .to_stream()
        .to("finals")
    )
    return builder.build()


def merged() -> Topology:
    builder = StreamsBuilder()
    left, right = builder.stream("left"), builder.stream("right")
    left.merge(right).group_by_key().count(store="counts").to_stream().to("counts")
    return builder.build()


def epochs(number: int) -> list[Epoch]:
    """Return out-of-order epochs of two topics, with null, empty and non-ASCII keys."""
    keys = ["a", "b", "", None, "ä", "k5", "k6"]
    rows = [
        ("left" if n % 3 else "right", keys[n * 5 % len(keys)], n, max(0, 4 * n - 31 * (n % 7 == 3)))
        for n in range(60 * number)
    ]
    made = []
    for first in range(0, len(rows), 60):
        some = tuple(rows[first : first + 60])
        made.append(Epoch(some, max(row[3] for row in some)))
    return made


def hashes(warehouse: str, load: Any, branch: str, *engines: LocalEngine, directly: bool) -> dict[str, str]:
    """Replay all epochs into a branch, one run per engine; return the content hash of each table."""
    tables = DeltaTables(warehouse, reads_directly=directly)
    for engine, through in zip(engines, (2, 4), strict=True):
        landed.replay(tables, engine, FEED, branch, partial(load), Semantics(), [through])
    return tables.hashes(landed.JOB, branch)


def engine(spark: SparkSession, *, slots: int = 2, execution: Execution = Execution.AUTO) -> SparkEngine:
    return SparkEngine(spark, slots=slots, import_paths=[ROOT], execution=execution)


HERE = LocalEngine(), LocalEngine()
"""Engines that read files without Spark, and fail if Spark has to read."""


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    warehouse_path = str(tmp_path / "w")
    landed.land(warehouse_path, FEED, epochs(4), dict.fromkeys(("left", "right"), landed.LONG), PARTITIONS)
    return warehouse_path


@pytest.mark.parametrize("load", [finals, merged])
def test_the_shuffle_reader_reads_what_the_partition_local_reader_reads(
    spark: SparkSession, warehouse: str, load: Any
) -> None:
    expected = hashes(warehouse, load, "aligned", *HERE, directly=True)
    # First, some tasks share a Spark task; then each has its own.
    two, three = engine(spark), engine(spark, slots=3)
    assert hashes(warehouse, load, "by-shuffle", two, three, directly=False) == expected
    if load is finals:
        by_record = [engine(spark, slots=slots, execution=Execution.RECORD) for slots in (2, 3)]
        found = hashes(warehouse, load, "records", *by_record, directly=False)
        assert found | {"metrics": ""} == expected | {"metrics": ""}  # only record execution samples the buffer


def test_the_partition_local_reader_reads_the_same_on_spark(spark: SparkSession, warehouse: str) -> None:
    expected = hashes(warehouse, merged, "here", *HERE, directly=True)
    assert hashes(warehouse, merged, "spark", engine(spark), engine(spark), directly=True) == expected


DONE_BY_OTHERS = {
    "optimized": (["OPTIMIZE {log}"], True),
    "clustered": (["OPTIMIZE {log} ZORDER BY (value)"], True),
    "with deletion vectors": (
        [
            "ALTER TABLE {log} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)",
            "UPDATE {log} SET arrived_at = 7 WHERE value % 5 = 0",
        ],
        False,
    ),
    "purged": (["REORG TABLE {log} APPLY (PURGE)"], True),
    "with mapped columns": (
        [
            "ALTER TABLE {log} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
            "ALTER TABLE {log} RENAME COLUMN arrived_at TO came_at",
            "UPDATE {log} SET landing = landing + 10 WHERE value % 7 = 0",
        ],
        False,
    ),
}
"""Maintenance of a log table in steps, each with whether the files can still be read directly."""


@pytest.mark.cluster
def test_maintenance_of_a_log_changes_no_row(spark: SparkSession, warehouse: str) -> None:
    expected = hashes(warehouse, finals, "before", *HERE, directly=True)
    for number, (what, (statements, is_direct)) in enumerate(DONE_BY_OTHERS.items()):
        for statement in statements:
            spark.sql(statement.format(log=f"delta.`{warehouse}/logs/{FEED}/left`"))
        tables = DeltaTables(warehouse)
        assert (tables.log_table(tables.feed(FEED), "left") is None) == is_direct, what
        engines = HERE if is_direct else (engine(spark), engine(spark))
        assert hashes(warehouse, finals, f"after{number}", *engines, directly=True) == expected, what


def test_a_deleted_record_is_reported(spark: SparkSession, warehouse: str) -> None:
    spark.sql(f"DELETE FROM delta.`{warehouse}/logs/{FEED}/left` WHERE offset = 5 AND partition = 1")
    for directly, engines in ((True, HERE), (False, (engine(spark), engine(spark)))):
        with pytest.raises(StorageError, match="log 'left': offset 5 is missing or duplicated"):
            hashes(warehouse, finals, f"deleted{directly}", *engines, directly=directly)


def newest(warehouse: str, topic: str) -> list[Path]:
    """Return the files of a topic's last landing, by partition."""
    log = Path(warehouse, "logs", FEED, topic)
    by_partition = [
        sorted(log.glob(f"*/partition={p}/*.parquet"), key=lambda f: f.stat().st_mtime_ns) for p in range(3)
    ]
    return [files[-1] for files in by_partition]


def swap(warehouse: str, topic: str) -> list[Path]:
    """Swap two files of partitions with the same offsets."""
    first, second, _ = newest(warehouse, topic)
    here, there = first.read_bytes(), second.read_bytes()
    first.write_bytes(there)
    second.write_bytes(here)
    return [first, second]


def flip(warehouse: str, topic: str) -> list[Path]:
    """Flip a bit in a footer, which no page checksum covers, where Parquet readers do not notice it."""
    *_, file = newest(warehouse, topic)
    data = bytearray(file.read_bytes())
    data[data.rindex(b"parquet-cpp")] ^= 1
    file.write_bytes(data)
    return [file]


@pytest.fixture
def even(tmp_path: Path) -> str:
    """Land two epochs in which all partitions of a topic have the same offsets."""
    keys = [next(key for key in "abcdefgh" if partition_of(key, PARTITIONS) == p) for p in range(PARTITIONS)]
    rows = [(topic, keys[n % 3], n, 2 * n) for n in range(120) for topic in ("left", "right")]
    warehouse_path = str(tmp_path / "even")
    parts = [Epoch(tuple(some), some[-1][3]) for some in (rows[:120], rows[120:])]
    landed.land(warehouse_path, FEED, parts, dict.fromkeys(("left", "right"), landed.LONG), PARTITIONS)
    return warehouse_path


def replayed(tables: DeltaTables, engine: LocalEngine, load: Any, branch: str, through: int) -> dict[str, str]:
    landed.replay(tables, engine, FEED, branch, partial(load), Semantics(), [through])
    return tables.hashes(landed.JOB, branch)


# A single log uses the colocated reader, several use a shuffle.
@pytest.mark.parametrize(("load", "harms"), [(finals, [swap, flip]), (merged, [swap])])
def test_a_corrupt_log_file_is_rejected(spark: SparkSession, even: str, load: Any, harms: list[Any]) -> None:
    tables, by_spark = DeltaTables(even), DeltaTables(even, reads_directly=False)
    before = replayed(tables, LocalEngine(), load, "main", 1)
    good = {file: file.read_bytes() for file in newest(even, "left")}
    for harm in harms:
        harmed = harm(even, "left")
        for read, by in ((tables, LocalEngine()), (by_spark, engine(spark))):
            with pytest.raises(StorageError) as raised:
                replayed(read, by, load, "main", 2)
            assert raised.value.exit_code == 74
            expected_message = (
                f"log 'left': cannot read {harmed[0]}: its bytes differ from the checksum in its name. Restore"
            )
            assert str(raised.value).startswith(expected_message)
            assert tables.hashes(landed.JOB, "main") == before
        for file, data in good.items():
            file.write_bytes(data)


def test_a_corrupt_file_without_wanted_rows_is_not_read(spark: SparkSession, even: str) -> None:
    replayed(DeltaTables(even), LocalEngine(), finals, "main", 1)
    wanted = newest(even, "left")
    for file in Path(even, "logs").glob("*/left/*/*/*.parquet"):
        if file not in wanted:
            file.write_bytes(b"")
    replayed(DeltaTables(even, reads_directly=False), engine(spark), finals, "main", 2)
