"""A topic recorded in files: its windows are Kafka's, with the records late that were late in the topic."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from rewindow import StreamsBuilder, TimeWindows, Topology, until_window_closes
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from rewindow.testing import TopologyTestDriver
from tests.bad_input.scene import Bench
from tests.refusals import told

MINUTE = 60_000
T0 = 1_700_000_000_000 // (60 * MINUTE) * (60 * MINUTE)
FEED = """\
feed: clicks
partitions: 1
logs:
  clicks: {source: {format: csv, path: raw}, %skey: user, timestamp: ts}
"""
JOB = """\
job: windows
topology: jobs.windows:build_topology
feed: clicks
outputs:
  windows: {table: windows}
"""
CODE = """\
from rewindow import StreamsBuilder, TimeWindows, until_window_closes


def build_topology():
    builder = StreamsBuilder()
    windows = builder.stream("clicks").group_by_key().windowed_by(TimeWindows.of("30m", grace="5m"))
    windows.count(store="counts").suppress(until_window_closes()).to_stream().to("windows")
    return builder.build()
"""


def build_topology() -> Topology:
    builder = StreamsBuilder()
    windows = builder.stream("clicks").group_by_key().windowed_by(TimeWindows.of("30m", grace="5m"))
    windows.count(store="counts").suppress(until_window_closes()).to_stream().to("windows")
    return builder.build()


Click = tuple[str, int, str]


def clicks(seed: int, count: int = 60) -> list[Click]:
    """Return clicks in the order of their topic. Some are late by more than the grace period."""
    rng = random.Random(seed)
    return [
        (rng.choice("ab"), T0 + (5 * n - rng.choice([0, 0, 0, 20, 90])) * MINUTE, f"/{rng.randrange(9)}")
        for n in range(20, 20 + count)
    ]


def windows_of_kafka(records: list[Click]) -> set[tuple[str, int, int]]:
    """Return key, start and count of each window that closes, as a task counts them in the order of the topic."""
    driver = TopologyTestDriver(build_topology)
    for user, ts, page in records:
        driver.pipe("clicks", user, page, ts)
    return {(sent.key.key, sent.key.window.start_ms, sent.value) for sent in driver.read("windows")}


@pytest.fixture
def recorded(new_shop: Bench) -> Bench:
    new_shop.write("conf/feeds/clicks.yaml", FEED % "order: file, ")
    new_shop.write("conf/jobs/windows.yaml", JOB)
    new_shop.write("jobs/windows.py", CODE)
    return new_shop


def record(bench: Bench, name: str, records: list[Click]) -> None:
    bench.write(f"raw/{name}.csv", "user,ts,page\n" + "".join(f"{user},{ts},{page}\n" for user, ts, page in records))


def windows(bench: Bench) -> set[tuple[str, int, int]]:
    return {(row["user"], row["window_start"], row["value"]) for row in rows_of(bench)}


@pytest.mark.parametrize("files_of_a_landing", [1, 2, 4])
def test_windows_of_recorded_files_are_kafkas_however_they_are_landed(recorded: Bench, files_of_a_landing: int) -> None:
    records = clicks(7)
    for number in range(4):
        record(recorded, str(number), records[15 * number : 15 * number + 15])
        if (number + 1) % files_of_a_landing == 0:
            recorded.done("land clicks", "run windows")
    assert windows(recorded) == windows_of_kafka(records)


def test_without_the_order_of_files_other_windows_come_and_land_says_so(recorded: Bench) -> None:
    records = clicks(7)
    record(recorded, "0", records)
    recorded.write("conf/feeds/clicks.yaml", FEED % "")
    assert "order: file" in recorded.done("land clicks").out
    recorded.done("run windows")
    assert windows(recorded) != windows_of_kafka(records)
    recorded.write("conf/feeds/clicks.yaml", FEED % "order: file, ")
    recorded.done("land clicks --new-generation", "reset windows --yes", "run windows")
    assert windows(recorded) == windows_of_kafka(records)


def test_a_file_whose_name_comes_too_early_is_noticed(recorded: Bench) -> None:
    for name, is_early in (("2", False), ("10", True), ("3", False)):
        record(recorded, name, clicks(int(name), 3))
        report = recorded.land("clicks")
        if is_early:
            told(report.warnings, "file-before-landed", file=f"{name}.csv", landed="2.csv")
        else:
            assert report.warnings == ()


DUMP = """\
feed: clicks
partitions: 2
logs:
  clicks:
    source: {format: json, path: raw}
    partition: partition
    offset: offset
    key: %s
    value: %s
    timestamp: %s
"""
KCAT, CONSUMER = DUMP % ("key", "payload", "ts"), DUMP % ("key", "value", "timestamp")
Recorded = tuple[int, int, Click]


def recorded_topic(seed: int, count: int = 60) -> list[Recorded]:
    """Return partition, offset and click of each record. Keys are in Kafka's partitions; a transaction leaves gaps in offsets."""
    rng, next_offset = random.Random(seed), [1000, 5]
    found = []
    for click in clicks(seed, count):
        partition = "ab".index(click[0])
        next_offset[partition] += rng.choice([1, 1, 2])
        found.append((partition, next_offset[partition], click))
    return found


def by_kcat(record: Recorded) -> dict[str, Any]:
    partition, offset, (key, ts, page) = record
    topic = {"topic": "clicks", "partition": partition, "offset": offset, "tstype": "create", "ts": ts, "broker": 0}
    return {**topic, "headers": ["trace", "1"], "key": key, "payload": page}


def by_consumer(record: Recorded) -> dict[str, Any]:
    partition, offset, (key, ts, page) = record
    position = {"partition": partition, "offset": offset, "timestamp": ts, "headers": {}}
    return {**position, "key": key, "value": page}


def dump(bench: Bench, name: str, records: list[dict[str, Any]]) -> None:
    bench.write(f"raw/{name}.json", "".join(json.dumps(record) + "\n" for record in records))


def windows_of_partitions(records: list[Recorded]) -> set[tuple[str, int, int]]:
    """Return the windows of Kafka, which has a task with a stream time of its own for each partition."""
    return set().union(
        *(windows_of_kafka([click for own, _, click in records if own == number]) for number in range(2))
    )


@pytest.mark.parametrize(("feed", "written"), [(KCAT, by_kcat), (CONSUMER, by_consumer)])
def test_a_dump_of_a_topic_keeps_its_partitions_and_the_order_of_offsets(
    recorded: Bench, feed: str, written: Any
) -> None:
    recorded.write("conf/feeds/clicks.yaml", feed)
    records = recorded_topic(3)
    # Consumers mix the partitions, and each file has them in another order.
    mixed = [sorted(records[:30], key=lambda record: record[0]), records[30:]]
    for number, part in enumerate(mixed):
        dump(recorded, str(number), [written(record) for record in part])
        recorded.done("land clicks", "run windows")
    found = {(row["key"], row["window_start"], row["value"]) for row in rows_of(recorded)}
    assert found == windows_of_partitions(records)


def rows_of(bench: Bench) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_rows(table_path(str(bench.warehouse), "windows")).to_pylist()
    return rows


def test_an_offset_that_occurs_again_is_refused(recorded: Bench) -> None:
    recorded.write("conf/feeds/clicks.yaml", KCAT)
    records = [by_kcat(record) for record in recorded_topic(3, 10)]
    dump(recorded, "0", [*records, records[4]])
    recorded.refuses("land clicks", "topic-offset-repeated", offset=records[4]["offset"])
    dump(recorded, "0", records)
    recorded.done("land clicks")
    dump(recorded, "1", records[-1:])
    recorded.refuses("land clicks", "topic-offset-repeated", offset=records[-1]["offset"])


@pytest.mark.parametrize("wrong", [{"partition": 2}, {"partition": -1}, {"offset": -3}, {"partition": None}])
def test_a_record_without_a_valid_position_is_refused_or_quarantined(recorded: Bench, wrong: dict[str, Any]) -> None:
    recorded.write("conf/feeds/clicks.yaml", KCAT)
    records = [by_kcat(record) for record in recorded_topic(3, 10)]
    dump(recorded, "0", [*records[:4], records[4] | wrong, *records[5:]])
    assert recorded.run("land", "clicks").code == 65
    recorded.write("conf/feeds/clicks.yaml", KCAT + "    unreadable: skip\n")
    report = recorded.land("clicks")
    assert (report.rows, report.quarantined) == (9, 1)


def test_a_deletion_in_a_dump_is_a_null_value(recorded: Bench) -> None:
    recorded.write("conf/feeds/clicks.yaml", KCAT)
    records = [by_kcat(record) for record in recorded_topic(3, 10)]
    dump(recorded, "0", [*records[:-1], records[-1] | {"payload": None}])
    recorded.done("land clicks")
    rows = read_rows(table_path(str(recorded.warehouse), "logs/clicks/clicks")).to_pylist()
    assert [row["payload"] for row in rows].count(None) == 1


def test_a_repartition_cannot_meet_the_partitions_of_a_topic(recorded: Bench) -> None:
    other = KCAT[KCAT.index("  clicks:") :].replace("clicks", "pages")
    recorded.write("conf/feeds/clicks.yaml", KCAT + other)
    recorded.write("jobs/windows.py", JOINED)
    dump(recorded, "0", [by_kcat(record) for record in recorded_topic(3, 10)])
    recorded.done("land clicks")
    recorded.refuses("plan windows", "log-keeps-source-partitions", log="pages")


JOINED = """\
from rewindow import StreamsBuilder


def build_topology():
    builder = StreamsBuilder()
    clicks = builder.stream("clicks").select_key(lambda key, value: value, key=str).to_table(store="by-page")
    builder.stream("pages").join(clicks, lambda page, click: click, value=str).to("windows")
    return builder.build()
"""
