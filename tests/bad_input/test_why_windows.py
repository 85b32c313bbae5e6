"""`rewindow why --window TIME` never answers for a window that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.failures import Failure
from rewindow.app.why.output import told_sessions
from rewindow.streams.record import Window
from tests.bad_input.scene import TARGET, Bench, without_spark
from tests.ingest.local_engine import HOUR

FEED = """\
feed: orders
partitions: 2
landing: {every: 1d}
logs:
  orders:
    source: {format: csv, path: data, schema: "user STRING, t TIMESTAMP", options: {header: "true"}}
    key: user
    value: [t]
    timestamp: t
    arrived_at: t
"""
JOB = """\
job: counts
topology: bench_job:build_topology
feed: orders
outputs:
  tumbling: {table: shop.tumbling}
  hopping: {table: shop.hopping}
  sliding: {table: shop.sliding}
  sessions: {table: shop.sessions}
  daily: {table: shop.daily}
"""
MODULE = """\
from rewindow import SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows


def build_topology():
    builder = StreamsBuilder()
    grouped = builder.stream("orders").group_by_key()
    hours = TimeWindows.of("1h", grace="0s")
    grouped.windowed_by(hours).count(store="a").to_stream().to("tumbling")
    grouped.windowed_by(hours.advance_by("20m")).count(store="b").to_stream().to("hopping")
    grouped.windowed_by(SlidingWindows.of("1h", grace="0s")).count(store="c").to_stream().to("sliding")
    grouped.windowed_by(SessionWindows.of("1h", grace="0s")).count(store="d").to_stream().to("sessions")
    grouped.windowed_by(TimeWindows.of("1d", grace="0s")).count(store="e").to_stream().to("daily")
    return builder.build()
"""
HOLDING = """\
from rewindow import SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows, until_window_closes


def build_topology():
    builder = StreamsBuilder()
    grouped = builder.stream("orders").filter(lambda key, value: key != "eve", name="kept").group_by_key()
    kinds = {
        "hopping": TimeWindows.of("1h", grace="0s").advance_by("20m"),
        "sliding": SlidingWindows.of("1h", grace="0s"),
        "sessions": SessionWindows.of("1h", grace="0s"),
    }
    for name, windows in kinds.items():
        grouped.windowed_by(windows).count(store=name).suppress(until_window_closes()).to_stream().to(name)
    return builder.build()
"""
FINAL = """\
from rewindow import StreamsBuilder, TimeWindows, until_window_closes


def build_topology():
    builder = StreamsBuilder()
    grouped = builder.stream("orders").group_by_key()
    for name, size in (("hourly", "1h"), ("daily", "1d")):
        counts = grouped.windowed_by(TimeWindows.of(size, grace="0s")).count(store=name)
        counts.suppress(until_window_closes()).to_stream().to(name)
    return builder.build()
"""
DAY = "2026-01-05"
START = 1_767_571_200_000
"""The day's start."""
TIMES = ("16:10", "16:50", "17:20", "20:00", "20:20")


def at(text: str) -> int:
    hours, minutes = text.split(":")
    return START + int(hours) * HOUR + int(minutes) * 60_000


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("windows") / "project")
    bench.write("conf/feeds/orders.yaml", FEED)
    bench.write("conf/jobs/counts.yaml", JOB)
    bench.write("conf/targets/local.yaml", TARGET)
    bench.write("bench_job.py", MODULE)
    bench.write("data/one.csv", "user,t\n" + "".join(f"ann,{DAY}T{time}:00Z\n" for time in TIMES))
    with without_spark():
        bench.done("land orders", "run counts")
        yield bench


def found(shop: Bench, table: str, time: str, *more: str) -> dict[str, Any]:
    return shop.json(f"why shop.{table} ann --window {DAY}T{time} {' '.join(more)}")


def refused(shop: Bench, table: str, time: str, code: str, /, *more: str, **facts: object) -> Failure:
    return shop.refuses(f"why shop.{table} ann --window {DAY}T{time} {' '.join(more)}", code, **facts)


def project(root: Path, outputs: tuple[str, ...], module: str, rows: list[str], feed: str = FEED) -> Bench:
    """Land and replay a job of one file."""
    bench = Bench(root)
    bench.write("conf/feeds/orders.yaml", feed)
    tables = "".join(f"  {name}: {{table: shop.{name}}}\n" for name in outputs)
    bench.write("conf/jobs/counts.yaml", f"{JOB.partition('outputs:')[0]}outputs:\n{tables}")
    bench.write("conf/targets/local.yaml", TARGET)
    bench.write("bench_job.py", module)
    bench.write("data/one.csv", "\n".join(rows) + "\n")
    bench.done("land orders", "run counts")
    return bench


@pytest.mark.parametrize(
    ("table", "start", "end", "count"),
    [("tumbling", "16:00", "17:00", 2), ("daily", "00:00", "24:00", 5), ("sessions", "16:10", "17:20", 3)],
)
def test_a_time_in_the_only_window_that_contains_it_is_answered_for_that_window(
    shop: Bench, table: str, start: str, end: str, count: int
) -> None:
    facts = found(shop, table, "16:53")
    assert facts["asked_ms"] == at("16:53")
    assert (facts["row"]["window_start"], facts["row"]["window_end"]) == (at(start), at(end))
    assert (facts["row"]["value"], len(facts["records"])) == (count, count)
    missing = found(shop, table, "16:53", "--missing")
    assert (missing["why"], missing["asked_ms"], missing["window_start_ms"]) == ("exists", at("16:53"), at(start))


@pytest.mark.parametrize(
    ("table", "starts", "more"),
    [
        ("hopping", ("16:00:00Z", "16:20:00Z", "16:40:00Z"), ""),
        ("sliding", ("16:10:00.001Z", "16:20:00Z", "16:50:00.001Z"), "--missing"),
    ],
)
def test_a_time_in_several_windows_is_refused_with_the_commands_to_type(
    shop: Bench, table: str, starts: tuple[str, ...], more: str
) -> None:
    refusal = refused(shop, table, "16:53", "window-ambiguous", more, table=f"shop.{table}")
    commands = [line.split() for line in refusal.message.splitlines()[1:]]
    assert [word for words in commands for word in words if word.startswith(DAY)] == [f"{DAY}T{one}" for one in starts]
    for words in commands:
        assert shop.run(*words[1:]).code == 0


def test_of_many_windows_that_contain_a_time_five_are_named(shop: Bench) -> None:
    shop.edit("bench_job.py", 'advance_by("20m")', 'advance_by("1m")')
    try:
        refusal = refused(shop, "hopping", "18:53:30", "window-ambiguous", "--missing")
    finally:
        shop.edit("bench_job.py", 'advance_by("1m")', 'advance_by("20m")')
    assert len(refusal.message.splitlines()) == 6


def test_a_window_without_a_row_is_named_by_its_start_and_by_the_time_in_it(shop: Bench) -> None:
    refused(shop, "tumbling", "18:53", "key-row-missing")
    missing = found(shop, "tumbling", "18:53", "--missing")
    assert (missing["why"], missing["window_start_ms"]) == ("never_landed", at("18:00"))


def test_between_two_sessions_there_is_none(shop: Bench) -> None:
    refused(shop, "sessions", "18:53", "key-row-missing")
    missing = found(shop, "sessions", "18:53", "--missing")
    assert missing["why"] == "never_landed"
    spans = (f"{DAY} 16:10:00Z to {DAY} 17:20:00Z", f"{DAY} 20:00:00Z to {DAY} 20:20:00Z")
    assert ", ".join(spans) in missing["reasons"][0]


def test_of_many_sessions_the_nearest_are_named() -> None:
    many = [Window(at(f"{hour:02}:00"), at(f"{hour:02}:10"), is_session=True) for hour in range(20)]
    near = ", ".join(f"{DAY} 0{hour}:00:00Z to {DAY} 0{hour}:10:00Z" for hour in range(1, 6))
    assert near in told_sessions(many, "its records make", at("03:30"))


def test_a_time_of_day_or_before_all_windows_is_refused(shop: Bench) -> None:
    shop.refuses("why shop.tumbling ann --window 16:53", "time-without-day", given="16:53")
    shop.refuses("why shop.tumbling ann --window 1969-12-31", "window-before-1970", table="shop.tumbling")


@pytest.mark.usefixtures("in_process")
def test_each_output_of_a_sub_topology_has_its_own_windows(tmp_path: Path) -> None:
    rows = ["user,t", *(f"ann,{DAY}T{time}:00Z" for time in TIMES)]
    bench = project(tmp_path, ("hourly", "daily"), FINAL, rows)
    for table, start, closes in (("hourly", "20:00", "21:00"), ("daily", "00:00", "24:00")):
        facts = found(bench, table, "20:30", "--missing")
        assert (facts["why"], facts["window_start_ms"], facts["closes_at_ms"]) == ("open", at(start), at(closes))


@pytest.mark.usefixtures("in_process")
def test_without_a_window_each_open_window_of_the_key_is_named(tmp_path: Path) -> None:
    rows = ["user,t", *(f"ann,{DAY}T{time}:00Z" for time in TIMES), f"eve,{DAY}T20:20:00Z"]
    starts = {"hopping": ("19:40", "20:00", "20:20"), "sliding": ("19:20", "20:00"), "sessions": ("20:00",)}
    bench = project(tmp_path, tuple(starts), HOLDING, rows)
    for table, named in starts.items():
        facts = bench.json(f"why shop.{table} ann --missing")
        assert facts["why"] == "open"
        assert [one["start_ms"] // 60_000 * 60_000 for one in facts["open_windows"]] == [at(one) for one in named]
    let_go = bench.json("why shop.hopping eve --missing")
    assert (let_go["why"], let_go["open_windows"]) == ("let_go", [])


@pytest.mark.usefixtures("in_process")
def test_a_key_of_json_is_shown_as_people_write_it(tmp_path: Path) -> None:
    module = (
        "from rewindow import StreamsBuilder\n\n\ndef build_topology():\n    builder = StreamsBuilder()\n"
        '    kinds = builder.stream("orders").map(lambda key, row: (key, 1)).group_by_key().count(store="kinds")\n'
        '    kinds.to_stream().to("kinds")\n    return builder.build()\n'
    )
    bench = project(tmp_path, ("kinds",), module, ["user,t", f"ann,{DAY}T10:00:00Z"])
    bench.refuses("why shop.kinds Filiale=Berlin", "key-column-unknown", column="Filiale")
    bench.done("why shop.kinds key=ann")


@pytest.mark.usefixtures("in_process")
def test_sessions_that_the_clock_has_separated_are_told_apart(tmp_path: Path) -> None:
    feed = FEED.replace("user STRING, t TIMESTAMP", "user STRING, t TIMESTAMP, got TIMESTAMP")
    feed = feed.replace("arrived_at: t", "arrived_at: got").replace("partitions: 2", "partitions: 1")
    module = HOLDING.replace('SessionWindows.of("1h", grace="0s")', 'SessionWindows.of("20m", grace="0s")')
    others = [line for line in module.splitlines() if '"hopping": ' not in line and '"sliding": ' not in line]
    times = (("ann", "10:00"), ("bob", "10:40"), ("ann", "10:20"))
    rows = [f"{user},{DAY}T{time}:00Z,{DAY}T11:0{number}:00Z" for number, (user, time) in enumerate(times)]
    bench = project(tmp_path, ("sessions",), "\n".join(others) + "\n", ["user,t,got", *rows], feed)
    assert found(bench, "sessions", "10:00")["row"]["value"] == 1
    for more in ("", f" --window {DAY}T10:20"):
        facts = bench.json(f"why shop.sessions ann --missing{more}")
        assert (facts["why"], facts["window_start_ms"], len(facts["records"])) == ("open", at("10:20"), 1), facts
