"""Tables with Kafka's partitions and offsets: nothing is copied, and no offset may be missing or duplicated."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pydantic import ValidationError

from rewindow import StreamsBuilder, Topology
from rewindow.config.feed import FeedConfig
from rewindow.control.ingest.land import land
from rewindow.errors import ConfigError, DataError, StorageError
from rewindow.streams.record import TopicPartition
from rewindow.streams.settings import Semantics
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from tests import landed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = str(Path(__file__).parents[2])
T0 = 1_700_000_000_000
FIRST = {0: 0, 1: 1000}
"""The first offset of each partition in the table."""


def feed_config(**parts: Any) -> FeedConfig:
    log = {"source": {"table": "raw.clicks"}, "partition": "kp", "offset": "ko", "key": "user", "timestamp": "t"}
    base = {"feed": "clicks", "partitions": 2, "landing": {"max_ahead": "none"}}
    return FeedConfig.model_validate({**base, **parts, "logs": {"clicks": {**log, **parts.get("log", {})}}})


def record(partition: int, number: int) -> dict[str, Any]:
    time = T0 + 10 * number - 45 * (number % 4 == 3)
    return {"kp": partition, "ko": FIRST[partition] + number, "user": f"u{number % 5}", "t": time, "value": number}


def append(warehouse: str, records: list[dict[str, Any]]) -> None:
    kinds = {"kp": pa.int32(), "ko": pa.int64(), "user": pa.string(), "t": pa.int64(), "value": pa.int64()}
    permuted = random.Random(7).sample(records, len(records))
    write_deltalake(f"{warehouse}/raw/clicks", pa.Table.from_pylist(permuted, pa.schema(kinds)), mode="append")


def totals() -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("clicks").map_values(lambda row: row.value)
    stream.group_by_key().reduce(lambda one, other: one * 3 + other, store="totals").to_stream().to("totals")
    return builder.build()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"log": {"offset": None}}, "go together"),
        ({"log": {"arrived_at": "t"}}, "remove arrived_at"),
        ({"log": {"invalid_timestamp": "skip"}}, "can neither reorder nor skip records"),
        ({"log": {"timestamp": "a:b"}}, "a column of the source as timestamp"),
        ({"log": {"source": {"path": "x", "format": "delta"}}}, "a table of the warehouse"),
    ],
)
def test_what_does_not_go_with_given_offsets_is_refused(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        feed_config(**parts)


def test_it_shares_no_feed_with_a_log_that_land_hashed() -> None:
    kept_offsets = {"source": {"table": "a.b"}, "partition": "p", "offset": "o", "key": "k", "timestamp": "t"}
    hashed = {"source": {"table": "a.c"}, "key": "k", "timestamp": "t"}
    with pytest.raises(ValidationError, match="equal keys do not meet"):
        FeedConfig.model_validate({"feed": "f", "partitions": 2, "logs": {"one": kept_offsets, "other": hashed}})


def test_its_offsets_are_not_cut_by_arrival() -> None:
    with pytest.raises(ValidationError, match="remove `every`"):
        feed_config(landing={"every": "1h"})


@pytest.mark.spark
class TestOnSpark:
    @pytest.fixture
    def lands(self, spark: SparkSession, tmp_path: Path) -> Any:
        from rewindow.engine.spark.spark_landing import SparkLandingEngine

        engine, tables = SparkLandingEngine(spark, project_root=str(tmp_path)), DeltaFeedTables(f"{tmp_path}/w")
        return lambda **parts: land(feed_config(**parts), tables, engine, now_ms=T0)

    def test_it_is_landed_and_replayed_in_the_order_of_its_offsets(
        self, spark: SparkSession, tmp_path: Path, lands: Any
    ) -> None:
        from rewindow.engine.spark.spark_engine import SparkEngine

        warehouse = f"{tmp_path}/w"
        append(warehouse, [record(p, n) for p in (0, 1) for n in range(20)])
        assert lands(lag="55ms").rows == 40
        append(warehouse, [record(0, n) for n in range(20, 35)])
        assert lands(lag="55ms").rows == 15
        assert lands(lag="55ms").landings == ()
        assert not list(tmp_path.glob("w/logs/**/*.parquet")), "nothing is copied"
        tables = DeltaTables(warehouse)
        feed = tables.feed("clicks")
        late = feed.landings[1].ranges[TopicPartition("clicks", 0)]
        times = [record(0, n)["t"] for n in range(35)]
        watermark = max(times) - 55
        assert late.release == next(n for n, time in enumerate(times) if time > watermark)
        assert feed.landings[1].ranges[TopicPartition("clicks", 1)].base == 1000
        DeltaTable(f"{warehouse}/raw/clicks").optimize.compact()
        for branch, cuts in (("one", [2]), ("many", [1, 2])):
            engine = SparkEngine(spark, slots=2, import_paths=[ROOT])
            landed.replay(tables, engine, "clicks", branch, partial(totals), Semantics(), cuts)
        assert tables.hashes(landed.JOB, "one") == tables.hashes(landed.JOB, "many")
        rows = read_rows(table_path(warehouse, landed.output_of("one", "totals"))).to_pylist()
        released = {0: late.release, 1: feed.landings[1].ranges[TopicPartition("clicks", 1)].release}
        expected: dict[tuple[int, str], int] = {}
        for partition, end in released.items():
            for n in range(end):
                origin = (partition, f"u{n % 5}")
                expected[origin] = expected[origin] * 3 + n if origin in expected else n
        last = {
            (row["_partition"], row["user"]): int(row["value"]) for row in sorted(rows, key=lambda row: row["_offset"])
        }
        assert last == expected

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda rows: rows.pop(7), "offset 7 of partition 0 is missing"),
            (lambda rows: rows.append(rows[7]), "offset 7 of partition 0 is duplicated"),
            (lambda rows: rows.__setitem__(7, rows[8]), "offset 7 of partition 0 is missing"),
            (lambda rows: rows.append(rows[3] | {"ko": None}), "without a valid kp and ko"),
            (lambda rows: rows.append(rows[3] | {"t": None, "ko": 20}), "offset 20 has no timestamp"),
        ],
    )
    def test_what_is_not_there_exactly_once_is_said(self, tmp_path: Path, lands: Any, change: Any, said: str) -> None:
        rows = [record(0, n) for n in range(20)]
        change(rows)
        append(f"{tmp_path}/w", rows)
        with pytest.raises(DataError, match=said):
            lands()

    def test_an_offset_that_was_landed_and_a_partition_too_many_are_said(self, tmp_path: Path, lands: Any) -> None:
        append(f"{tmp_path}/w", [record(0, n) for n in range(20)])
        with pytest.raises(ConfigError, match="partitions"):
            append(f"{tmp_path}/w", [record(0, 20) | {"kp": 4}]) or lands()
        DeltaTable(f"{tmp_path}/w/raw/clicks").restore(0)
        lands()
        append(f"{tmp_path}/w", [record(0, 19)])
        with pytest.raises(DataError, match="offset 19 of partition 0 occurs again"):
            lands()

    def test_a_log_that_has_nothing_new_is_landed_with_one_that_has(self, spark: SparkSession, tmp_path: Path) -> None:
        from rewindow.engine.spark.spark_landing import SparkLandingEngine

        log = feed_config().logs["clicks"]
        other = log.model_copy(update={"source": log.source.model_copy(update={"table": "raw.views"})})
        config = feed_config().model_copy(update={"logs": {"clicks": log, "views": other}})
        append(f"{tmp_path}/w", [record(0, n) for n in range(4)])
        shutil.copytree(tmp_path / "w" / "raw" / "clicks", tmp_path / "w" / "raw" / "views")
        engine, tables = SparkLandingEngine(spark, project_root=str(tmp_path)), DeltaFeedTables(f"{tmp_path}/w")
        assert land(config, tables, engine, now_ms=T0).rows == 8
        append(f"{tmp_path}/w", [record(0, 4)])
        assert land(config, tables, engine, now_ms=T0).rows == 1

    def test_a_record_that_is_gone_when_it_is_read_is_said(
        self, spark: SparkSession, tmp_path: Path, lands: Any
    ) -> None:
        from rewindow.engine.spark.spark_engine import SparkEngine

        append(f"{tmp_path}/w", [record(0, n) for n in range(20)])
        lands()
        DeltaTable(f"{tmp_path}/w/raw/clicks").delete("ko = 4")
        engine = SparkEngine(spark, slots=2, import_paths=[ROOT])
        with pytest.raises(StorageError, match=r"offset 4 is missing or duplicated.*raw\.clicks"):
            landed.replay(DeltaTables(f"{tmp_path}/w"), engine, "clicks", "x", partial(totals), Semantics(), [1])
