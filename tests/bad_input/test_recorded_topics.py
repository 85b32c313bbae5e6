"""A topic recorded in files: its windows are Kafka's, with the records late that were late in the topic."""

from __future__ import annotations

import random

import pytest

from rewindow import StreamsBuilder, TimeWindows, Topology, until_window_closes
from rewindow.tables.delta.commit import table_path
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
    rows = read_rows(table_path(str(bench.warehouse), "windows")).to_pylist()
    return {(row["user"], row["window_start"], row["value"]) for row in rows}


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
