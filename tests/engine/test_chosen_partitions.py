"""Topics and partitions that user code chooses, from files to files: the rows of the in-memory replay, or a clear error."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from rewindow import StreamsBuilder, Topology
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.streams.settings import Semantics
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.testing import Epoch, LocalReplay
from tests import landed
from tests.refusals import containing, refused

FEED, PARTITIONS = "numbers", 3
RECORDS = tuple(("in", key, number, number) for number, key in enumerate("abcabcabc"))


def of_value(_topic: str, _key: Any, value: int, partitions: int, *, plus: int = 0) -> int:
    return value % partitions + plus


def by_parity(_key: Any, value: int) -> str:
    return "even" if value % 2 == 0 else "odd"


def topology(plus: int = 0, wrong: int | None = None) -> Topology:
    builder = StreamsBuilder()
    moved = builder.stream("in").repartition(name="again", partitioner=partial(of_value, plus=plus))
    moved.to(
        lambda key, value: "typo" if value == wrong else by_parity(key, value), outputs=["odd", "even"], name="route"
    )
    return builder.build()


def written(warehouse: str, topic: str) -> list[tuple[Any, ...]]:
    rows = read_rows(table_path(warehouse, landed.output_of("main", topic))).to_pylist()
    return [(topic, row["_partition"], row["_offset"], row["key"], row["value"]) for row in rows]


def test_tables_have_the_chosen_rows_and_partitions(tmp_path: Path) -> None:
    landed.land(str(tmp_path), FEED, [Epoch(RECORDS, 9)], {"in": landed.LONG}, PARTITIONS)
    landed.replay(DeltaTables(str(tmp_path)), LocalEngine(), FEED, "main", topology, Semantics(), [1])
    memory = LocalReplay(topology(), partitions=PARTITIONS)
    memory.run([Epoch(RECORDS, 9)])
    expected = [(s.topic, s.partition, s.offset, s.record.key, s.record.value) for s in memory.sent]
    found = written(str(tmp_path), "odd") + written(str(tmp_path), "even")
    assert sorted(found) == sorted(expected)
    assert all(partition == value % PARTITIONS for _, partition, _, _, value in found)


def test_a_wrong_partition_fails_the_run_and_commits_nothing(tmp_path: Path) -> None:
    landed.land(str(tmp_path), FEED, [Epoch(RECORDS, 9)], {"in": landed.LONG}, PARTITIONS)
    tables, load = DeltaTables(str(tmp_path)), partial(topology, 1)
    with refused(
        "partitioner-result-invalid",
        topic="again-repartition",
        result="3",
        partitions=3,
        key="'c'",
        last=containing("2"),
    ):
        landed.replay(tables, LocalEngine(), FEED, "main", load, Semantics(), [1])
    assert tables.state(landed.JOB).branch("main").head is None


def test_an_undeclared_topic_fails_the_run_and_commits_nothing(tmp_path: Path) -> None:
    landed.land(str(tmp_path), FEED, [Epoch(RECORDS, 9)], {"in": landed.LONG}, PARTITIONS)
    tables, load = DeltaTables(str(tmp_path)), partial(topology, 0, 5)
    with refused("extracted-topic-undeclared", topic="'typo'", key="'c'", topics="'odd', 'even'"):
        landed.replay(tables, LocalEngine(), FEED, "main", load, Semantics(), [1])
    assert tables.state(landed.JOB).branch("main").head is None
