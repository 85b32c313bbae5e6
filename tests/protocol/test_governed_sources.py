"""Tables of a catalog as sources: what is new in them is found without opening a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rewindow.config.feed import FeedConfig, feed_spec
from rewindow.contracts.ingest import NEW_ROWS, OLD_ROWS, Piece, ReadWindow
from rewindow.control.ledger_steps import drive
from rewindow.errors import ConfigError, DataError, SourceError, StorageError
from rewindow.streams.record import TopicPartition
from rewindow.streams.topology import output_lags
from tests.ingest.local_engine import HOUR, T0, feed_config
from tests.protocol import backends
from tests.protocol.backends import Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Make = Callable[..., str]
TRACKED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"


@pytest.fixture(scope="module")
def governed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    return backends.through_spark(spark, tmp_path_factory.mktemp("governed"), most_here=0)


@pytest.fixture(scope="module")
def raw(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Return a function that creates an empty table `raw_sources.<name>`. In the warehouse of files it is `raw.<name>`."""
    root = tmp_path_factory.mktemp("raw")
    spark.sql(f"CREATE SCHEMA spark_catalog.raw_sources LOCATION '{root / 'raw'}'")

    def make(name: str, columns: str = "user STRING, t BIGINT, got BIGINT, x BIGINT", properties: str = TRACKED) -> str:
        spark.sql(f"CREATE TABLE spark_catalog.raw_sources.{name} ({columns}) USING delta {properties}")
        return f"raw_sources.{name}"

    return make


def feed(table: str, **parts: Any) -> FeedConfig:
    name = table.rpartition(".")[2]
    log = {"source": {"table": table}, **parts.pop("log", {})}
    return feed_config(feed=name, log=log, **parts)


def look(backend: Backend, config: FeedConfig, position: Any = None, window: ReadWindow | None = None) -> Any:
    (spec,) = feed_spec(config, project_root="", warehouse="").logs
    return backend.feeds()[0].look(spec, position, window or ReadWindow())


def add(spark: SparkSession, table: str, *rows: tuple[Any, ...]) -> None:
    values = ", ".join(str(row) for row in rows)
    spark.sql(f"INSERT INTO spark_catalog.{table} VALUES {values}")


def test_what_is_new_is_told_by_the_history(governed: Backend, spark: SparkSession, raw: Make) -> None:
    table = raw("looked")
    config = feed(table)
    first = look(governed, config)
    assert first.fresh == (Piece(NEW_ROWS),)
    assert first.governed.after is None, "the first look reads the whole table"
    add(spark, table, ("ann", 1, 1, 1))
    second = look(governed, config, first.position, ReadWindow(0, HOUR))
    assert (second.fresh, second.rest) == ((Piece(NEW_ROWS),), (Piece(OLD_ROWS),))
    assert second.governed.after == first.version < second.version
    spark.sql(f"OPTIMIZE spark_catalog.{table}")
    third = look(governed, config, second.position)
    assert third.fresh == (), "OPTIMIZE adds nothing"
    spark.sql(f"DELETE FROM spark_catalog.{table} WHERE x = 1")
    with pytest.raises(DataError, match=r"DELETE.*new-generation"):
        look(governed, config, third.position)
    with pytest.raises(SourceError, match="dropped and created again"):
        look(governed, config, {**third.position, "id": "other"})
    with pytest.raises(SourceError, match=r"no table spark_catalog\.raw_sources\.gone"):
        look(governed, feed("raw_sources.gone"))


def test_without_row_tracking_nobody_can_tell(governed: Backend, raw: Make) -> None:
    with pytest.raises(ConfigError, match="enableRowTracking"):
        look(governed, feed(raw("plain", properties="")))


@pytest.mark.cluster
@pytest.mark.parametrize("arrives", ["declared", "committed"])
def test_hourly_landings_are_those_of_one_call_though_the_table_is_optimized(
    governed: Backend, spark: SparkSession, raw: Make, arrives: str
) -> None:
    table = raw(f"grows_{arrives}")
    config = feed(table)
    if arrives == "committed":
        config = feed(table, landing={}, log={"arrived_at": None, "timestamp": "t"})
    landed = []
    for hour in range(3):
        for part in range(2):
            at = [T0 + hour * HOUR + part * 1000 + n for n in range(4)]
            add(spark, table, *((f"u{n}", time, time, hour) for n, time in enumerate(at)))
        landed.append(drive(governed.landing(config, T0 + (hour + 1) * HOUR)).rows)
        spark.sql(f"OPTIMIZE spark_catalog.{table}")
    assert landed == [8, 8, 8]
    assert drive(governed.landing(config, T0 + 3 * HOUR)).landings == ()
    rows = governed.landed(config.feed)["log"]
    if arrives == "committed":
        assert all(row["arrived_at"] for row in rows)
        return
    bulk = config.model_copy(update={"feed": "bulk"})
    drive(governed.landing(bulk, T0 + 3 * HOUR))
    hourly, once = governed.landed(config.feed), governed.landed("bulk")
    assert hourly == once


@pytest.mark.cluster
def test_a_table_with_offsets_of_its_own_is_not_copied(governed: Backend, spark: SparkSession, raw: Make) -> None:
    columns = "kp INT, ko BIGINT, user STRING, t BIGINT, value BIGINT"
    table = raw("clicks", columns, properties="")
    log = {"source": {"table": table}, "partition": "kp", "offset": "ko", "key": "user", "timestamp": "t"}
    base = {"feed": "clicks", "partitions": 2, "landing": {"max_ahead": "none"}, "lag": "5ms"}
    config = FeedConfig.model_validate({**base, "logs": {"clicks": log}})
    add(spark, table, *((p, 100 * p + n, f"u{n}", T0 + n, n) for p in range(2) for n in range(10)))
    assert drive(governed.landing(config, T0)).rows == 20
    spark.sql(f"OPTIMIZE spark_catalog.{table}")
    assert drive(governed.landing(config, T0)).landings == ()
    add(spark, table, *((1, 100 + n, f"u{n}", T0 + n, n) for n in range(10, 15)))
    assert drive(governed.landing(config, T0)).rows == 5
    found = governed.tables().feed("clicks").landings[-1].ranges[TopicPartition("clicks", 1)]
    assert (found.start, found.end, found.base, found.release) == (10, 15, 100, 10)
    add(spark, table, (1, 117, "u", T0 + 20, 1))
    with pytest.raises(DataError, match="offset 115 of partition 1 is missing"):
        drive(governed.landing(config, T0))


@pytest.mark.cluster
def test_a_jobs_output_is_landed_epoch_by_epoch(governed: Backend, spark: SparkSession) -> None:
    from tests.crash import scene

    governed.land_scene(3)
    governed.run("main", 2)
    log = {"source": {"job": scene.JOB, "output": "hourly"}, "key": "key", "timestamp": "_timestamp"}
    config = FeedConfig.model_validate({"feed": "below", "partitions": 2, "logs": {scene.TOPIC: log}})
    assert len(drive(governed.landing(config, T0)).landings) == 2
    governed.run("main", scene.LANDINGS)
    tables = governed.tables()
    name = tables.name_of(tables.state(scene.JOB).branch("main").tables["output/hourly"].path).quoted
    spark.sql(f"UPDATE {name} SET _timestamp = _timestamp + 1")
    with pytest.raises(StorageError, match="has other rows of run main/2: it was altered outside rewindow"):
        drive(governed.landing(config, T0))
    spark.sql(f"UPDATE {name} SET _timestamp = _timestamp - 1")
    drive(governed.landing(config, T0))
    landed = governed.landed("below")
    upstream = [landing.watermark_ms for landing in governed.tables().feed(scene.FEED).landings]
    held_ms = output_lags(governed.tables().state(scene.JOB).branch("main").runs[0].spec.binding.topology)["hourly"]
    assert [landing["watermark"] for landing in landed["landings"]] == [max(one - held_ms, -1) for one in upstream]
    (table,) = [
        one for name, one in governed.tables().state(scene.JOB).branch("main").tables.items() if name == "output/hourly"
    ]
    assert len(landed["log"]) == governed.tables().count_rows(table) > 0
