"""A list in an output is a column of JSON text, and a list again for a job that reads the output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rewindow.config.feed import FeedConfig
from rewindow.control.ingest.land import land
from rewindow.engine.spark.spark_landing import SparkLandingEngine
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.landed_outputs import NewEpochs
from tests.bad_input.scene import Bench
from tests.ingest.local_engine import T0, log_rows

LISTS = """\
from typing import NamedTuple

from rewindow import Collect, StreamsBuilder


class Found(NamedTuple):
    all: list[int]
    pairs: dict[str, int]
    none: list[int] | None


def described(value) -> Found:
    return Found(value.all, {"first": value.all[0]}, None)


def build():
    builder = StreamsBuilder()
    lists = builder.stream("events").group_by_key().aggregate({"all": Collect("x")}, store="lists")
    lists.to_stream().map_values(described).to("lists")
    return builder.build()
"""
READER = """\
from rewindow import StreamsBuilder


def lengths(value) -> str:
    return f"{type(value.all).__name__} {len(value.all)} {value.pairs['first'] == value.all[0]} {value.none}"


def build():
    builder = StreamsBuilder()
    builder.stream("lists").map_values(lengths).to("lengths")
    return builder.build()
"""


OF_TEXTS = """\
import json

from rewindow import StreamsBuilder


def lengths(value) -> str:
    return f"{type(value.all).__name__} {len(json.loads(value.all))}"


def build():
    builder = StreamsBuilder()
    builder.stream("lists").map_values(lengths).to("lengths")
    return builder.build()
"""
SOURCE = {"source": {"job": "lists", "output": "lists"}, "key": "user", "timestamp": "_timestamp"}


def rows_of(bench: Bench, job: str) -> list[dict[str, Any]]:
    return list(bench.json(f"head {job} -n 100")["tables"][0]["rows"])


def add_jobs(bench: Bench) -> None:
    bench.write("collected_lists.py", LISTS)
    bench.write("collected_reader.py", READER)
    for name, module, feed in (("lists", "collected_lists", "activity"), ("lengths", "collected_reader", "lists")):
        outputs = f"outputs: {{{name}: {{table: seen.{name}}}}}"
        bench.write(f"conf/jobs/{name}.yaml", f"job: {name}\ntopology: {module}:build\nfeed: {feed}\n{outputs}\n")
    bench.write("conf/feeds/lists.yaml", f"feed: lists\npartitions: 2\nlogs:\n  lists: {json.dumps(SOURCE)}\n")


def feed_columns(warehouse: Path, feed: str) -> dict[str, str]:
    (log,) = DeltaTables(str(warehouse)).feed(feed).definition.logs.values()
    return {column.name: column.type for column in log.value}


def test_a_second_job_reads_a_collected_list_as_a_list(bench: Bench) -> None:
    add_jobs(bench)
    bench.done("land activity", "run lists", "land lists", "run lengths")
    lists = rows_of(bench, "lists")
    assert {type(row["all"]) for row in lists} == {str}
    assert sorted(row["value"] for row in rows_of(bench, "lengths")) == sorted(
        f"list {len(json.loads(row['all']))} True None" for row in lists
    )


def test_a_log_that_has_texts_keeps_them_until_everything_is_landed_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_jobs(bench)
    bench.write("collected_reader.py", OF_TEXTS)
    with monkeypatch.context() as earlier:  # as before ADR-139
        earlier.setattr(NewEpochs, "marked", lambda _self, schema: schema)
        bench.done("run lists", "land lists", "run lengths")
    bench.done("land activity", "run lists", "land lists", "run lengths")
    bench.done("land lists --new-generation --keep 2", "rewind lengths --to 1", "run lengths")
    assert {row["value"].split()[0] for row in rows_of(bench, "lengths")} == {"str"}
    bench.write("collected_reader.py", READER)
    bench.done("land lists --new-generation", "rewind lengths --to 0", "run lengths --accept-changes")
    assert {row["value"].split()[0] for row in rows_of(bench, "lengths")} == {"list"}


@pytest.mark.spark
def test_spark_lands_what_arrow_lands(bench: Bench, spark: SparkSession) -> None:
    add_jobs(bench)
    bench.done("run lists", "land lists")
    tables = DeltaFeedTables(str(bench.warehouse))
    again = FeedConfig.model_validate({"feed": "again", "partitions": 2, "logs": {"lists": SOURCE}})
    land(again, tables, SparkLandingEngine(spark, project_root=str(bench.root)), now_ms=T0)
    assert log_rows(tables, "lists", "again") == log_rows(tables, "lists", "lists") != []
    columns = [feed_columns(bench.warehouse, feed) for feed in ("again", "lists")]
    assert columns[0] == columns[1] == {"all": "json", "pairs": "json", "none": "json"}
