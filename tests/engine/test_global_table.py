"""Global tables from files to files: one run or many, on this machine or on Spark, give the rows of the in-memory replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rewindow import StreamsBuilder, Topology
from rewindow.control.plan.spec import CHANGELOG
from rewindow.control.run import Engine, RunReport
from rewindow.engine.spark.spark_engine import SparkEngine
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.streams.settings import Semantics
from rewindow.tables.delta.checkpoints import changelog_files
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_file, read_rows, table_schema
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.state_query import Stores
from rewindow.testing import Epoch, LocalReplay
from tests import landed

FEED, PARTITIONS = "shop", 3
LOGS = {"orders": landed.STRING, "late": landed.STRING, "products": landed.STRING}
KEYS = "abcdefgh"


def product_of(_key: Any, value: str) -> str | None:
    return value[0] if value != "-" else None


def named(value: str, row: str | None) -> str:
    return f"{value}:{row or 'unknown'}"


def topology() -> Topology:
    """Join two streams in different sub-topologies, one of them twice, with one global table."""
    builder = StreamsBuilder()
    products = builder.global_table("products", store="products")
    orders = builder.stream("orders").left_join(products, product_of, named, value=str, name="named")
    orders.to("enriched")
    by_product = orders.select_key(product_of, key=str).repartition(name="by-product")
    by_product.join(products, lambda key, _value: key, named, value=str, name="again").to("twice")
    builder.stream("late").join(products, product_of, named, value=str, name="late-named").to("late-enriched")
    return builder.build()


def epochs() -> list[Epoch]:
    """Return epochs in which rows of all partitions change between the records that read them, also out of order."""
    made = []
    for number in range(6):
        start = number * 100
        records: list[tuple[str, Any, Any, int]] = []
        for index, key in enumerate(KEYS):
            deletes = (number + index) % 7 == 0
            records.append(("products", key, None if deletes else f"{key}{number}", start + index * 10))
            records.append(("orders", KEYS[-index], f"{key}!", start + (index * 37) % 90))
            records.append(("late", key, f"{KEYS[index - 3]}?", start + (index * 53) % 90))
        records.append(("orders", "a", "-", start + 95))
        made.append(Epoch(tuple(records), start + 99))
    return made


def check_equal(warehouse: str, engines: dict[str, Engine]) -> None:
    landed.land(warehouse, FEED, epochs(), LOGS, PARTITIONS)
    tables = DeltaTables(warehouse)
    landed.replay(tables, engines["one"], FEED, "one", topology, Semantics(), [6])
    landed.replay(tables, engines["many"], FEED, "many", topology, Semantics(), [1, 2, 4, 5, 6])
    assert tables.hashes(landed.JOB, "one") == tables.hashes(landed.JOB, "many")
    memory = LocalReplay(topology(), partitions=PARTITIONS)
    memory.run(epochs())
    expected = [(s.topic, s.partition, s.offset, s.record.key, s.record.value, s.record.timestamp) for s in memory.sent]
    assert written(warehouse, ["enriched", "twice", "late-enriched"]) == sorted(expected)


def written(warehouse: str, topics: list[str]) -> list[tuple[Any, ...]]:
    columns = ("_partition", "_offset", "key", "value", "_timestamp")
    return sorted(
        (topic, *(row[name] for name in columns))
        for topic in topics
        for row in read_rows(table_path(warehouse, landed.output_of("one", topic))).to_pylist()
    )


def test_one_run_or_many_give_the_rows_of_the_replay_in_memory(tmp_path: Path) -> None:
    check_equal(str(tmp_path), {"one": LocalEngine(), "many": LocalEngine()})


@pytest.mark.spark
def test_spark_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    root = str(Path(__file__).parent.parent.parent)
    engines = {
        name: SparkEngine(spark, slots=slots, import_paths=[root])
        for slots, name in enumerate(("one", "many"), start=1)
    }
    check_equal(str(tmp_path), engines)


def test_the_rows_of_a_global_table_are_stored_once(tmp_path: Path) -> None:
    landed.land(str(tmp_path), FEED, epochs(), LOGS, PARTITIONS)
    tables = DeltaTables(str(tmp_path))
    landed.replay(tables, LocalEngine(), FEED, "many", topology, Semantics(), [1, 2, 4, 5, 6])
    state = tables.state(landed.JOB)
    head = state.branch("many").head
    assert head is not None
    stored = Stores(tables, state, head).rows("products")
    assert stored["key"].to_pylist() == [key for index, key in enumerate(KEYS) if (5 + index) % 7]
    target = f"{CHANGELOG}products"
    path = table_path(tables.warehouse, head.spec.binding.tables[target].path)
    files = changelog_files(path, target, state.basis(head.spec.run), tables.reports)
    rows = [read_file(Folder(path), file, table_schema(DeltaTable(path))) for file in files]
    assert {partition for one in rows for partition in one["_partition"].to_pylist()} == {0}
    assert len(files) == 5


def test_every_task_takes_each_global_record_and_the_audit_knows(tmp_path: Path) -> None:
    warehouse = str(tmp_path)
    landed.land(warehouse, FEED, epochs(), LOGS, PARTITIONS)
    (report,) = landed.replay(DeltaTables(warehouse), LocalEngine(), FEED, "one", topology, Semantics(), [6])
    assert isinstance(report, RunReport)
    state = DeltaTables(warehouse).state(landed.JOB)
    head = state.branch("one").head
    assert head is not None
    assert head.commit.consumed["products"] == 6 * len(KEYS)
    readers = sum(any(source.is_global for source in part.sources) for part in topology().sub_topologies())
    assert head.commit.consumed["products-global"] == 6 * len(KEYS) * PARTITIONS * readers
