"""A list in an output is a column of JSON text, and so is it for a job that reads the output."""

from __future__ import annotations

import json

from tests.bad_input.scene import Bench

LISTS = """\
from rewindow import Collect, StreamsBuilder


def build():
    builder = StreamsBuilder()
    lists = builder.stream("events").group_by_key().aggregate({"all": Collect("x")}, store="lists")
    lists.to_stream().to("lists")
    return builder.build()
"""
READER = """\
import json

from rewindow import StreamsBuilder


def lengths(value) -> str:
    return f"{type(value.all).__name__} {len(json.loads(value.all))}"


def build():
    builder = StreamsBuilder()
    builder.stream("lists").map_values(lengths).to("lengths")
    return builder.build()
"""


def test_a_second_job_reads_a_collected_list_as_json_text(bench: Bench) -> None:
    bench.write("collected_lists.py", LISTS)
    bench.write("collected_reader.py", READER)
    for name, module, feed in (("lists", "collected_lists", "activity"), ("lengths", "collected_reader", "lists")):
        outputs = f"outputs: {{{name}: {{table: seen.{name}}}}}"
        bench.write(f"conf/jobs/{name}.yaml", f"job: {name}\ntopology: {module}:build\nfeed: {feed}\n{outputs}\n")
    source = "{source: {job: lists, output: lists}, key: user, timestamp: _timestamp}"
    bench.write("conf/feeds/lists.yaml", f"feed: lists\npartitions: 2\nlogs:\n  lists: {source}\n")
    for words in ("land activity", "run lists", "land lists", "run lengths"):
        answer = bench.run(*words.split())
        assert answer.code == 0, answer
    rows = {
        name: json.loads(bench.run("head", name, "-n", "100", "--json").out)["tables"][0]["rows"]
        for name in ("lists", "lengths")
    }
    assert {type(row["all"]) for row in rows["lists"]} == {str}
    assert sorted(row["value"] for row in rows["lengths"]) == sorted(
        f"str {len(json.loads(row['all']))}" for row in rows["lists"]
    )
