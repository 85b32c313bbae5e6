"""`rewindow why --window TIME` never answers for a window that does not exist."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.why.windows import told_sessions
from rewindow.streams.record import Window
from tests.bad_input.scene import TARGET, Answer, Bench, without_spark
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
        for words in (("land", "orders"), ("run", "counts")):
            answer = bench.run(*words)
            assert answer.code == 0, answer
        yield bench


def ask(shop: Bench, table: str, time: str, *more: str) -> Answer:
    return shop.run("why", f"shop.{table}", "ann", "--window", f"{DAY}T{time}", *more)


def found(shop: Bench, table: str, time: str, *more: str) -> dict[str, Any]:
    answer = ask(shop, table, time, "--json", *more)
    assert answer.code == 0, answer
    facts: dict[str, Any] = json.loads(answer.out)
    return facts


@pytest.mark.parametrize(
    ("table", "start", "end", "count"),
    [("tumbling", "16:00", "17:00", 2), ("daily", "00:00", "24:00", 5), ("sessions", "16:10", "17:20", 3)],
)
def test_a_time_in_the_only_window_that_contains_it_is_answered_for_that_window(
    shop: Bench, table: str, start: str, end: str, count: int
) -> None:
    answer = ask(shop, table, "16:53")
    assert answer.code == 0, answer
    assert answer.out.startswith(f"{DAY} 16:53:00Z is in the window from {DAY} {start}:00Z:\n")
    facts = found(shop, table, "16:53")
    assert facts["asked_ms"] == at("16:53")
    assert (facts["row"]["window_start"], facts["row"]["window_end"]) == (at(start), at(end))
    assert (facts["row"]["value"], len(facts["records"])) == (count, count)
    missing = found(shop, table, "16:53", "--missing")
    assert (missing["why"], missing["asked_ms"], missing["window_start_ms"]) == ("exists", at("16:53"), at(start))


def test_the_start_of_a_window_needs_no_explanation(shop: Bench) -> None:
    for table, start in (("tumbling", "16:00"), ("hopping", "16:20"), ("sliding", "15:10"), ("sessions", "16:10")):
        answer = ask(shop, table, start)
        assert answer.code == 0, answer
        assert answer.out.startswith(f"shop.{table}: user=ann, window_start={DAY} {start}:00Z")


@pytest.mark.parametrize("more", [(), ("--missing",)])
def test_a_time_in_several_windows_is_refused_with_the_commands_to_type(shop: Bench, more: tuple[str, ...]) -> None:
    starts = {
        "hopping": ("16:00:00Z", "16:20:00Z", "16:40:00Z"),
        "sliding": ("16:10:00.001Z", "16:20:00Z", "16:50:00.001Z"),
    }
    for table, named in starts.items():
        answer = ask(shop, table, "16:53", *more)
        assert answer.code == 2, answer
        assert f"{DAY} 16:53:00Z is not the start of a window of shop.{table}, and 3 windows contain it" in answer.err
        commands = [line.split() for line in answer.err.splitlines()[1:-1]]
        assert [words[-1 - len(more)] for words in commands] == [f"{DAY}T{start}" for start in named]
        for words in commands:
            assert shop.run(*words[1:]).code == 0


def test_of_many_windows_that_contain_a_time_five_are_named(shop: Bench) -> None:
    shop.edit("bench_job.py", 'advance_by("20m")', 'advance_by("1m")')
    try:
        answer = ask(shop, "hopping", "18:53:30", "--missing")
    finally:
        shop.edit("bench_job.py", 'advance_by("1m")', 'advance_by("20m")')
    assert answer.code == 2, answer
    assert "[window-ambiguous]" in answer.err
    assert "60 windows contain it: ask for one of them by its start, such as these 5:" in answer.err
    assert len(answer.err.splitlines()) == 7


def test_a_window_without_a_row_is_named_by_its_start_and_by_the_time_in_it(shop: Bench) -> None:
    answer = ask(shop, "tumbling", "18:53")
    assert answer.code == 1
    assert f"in the window from {DAY} 18:00:00Z, which contains {DAY} 18:53:00Z" in answer.err
    missing = found(shop, "tumbling", "18:53", "--missing")
    assert (missing["why"], missing["window_start_ms"]) == ("never_landed", at("18:00"))


def test_between_two_sessions_there_is_none(shop: Bench) -> None:
    answer = ask(shop, "sessions", "18:53")
    assert answer.code == 1
    assert f"no row of the key ann in a window that contains {DAY} 18:53:00Z" in answer.err
    missing = found(shop, "sessions", "18:53", "--missing")
    assert missing["why"] == "never_landed"
    assert missing["headline"] == f"no session of the key contains {DAY} 18:53:00Z"
    spans = (f"{DAY} 16:10:00Z to {DAY} 17:20:00Z", f"{DAY} 20:00:00Z to {DAY} 20:20:00Z")
    assert (
        missing["reasons"][0]
        == f"The sessions that its records make, if the job leaves none out, are {', '.join(spans)}"
    )


def test_of_many_sessions_the_nearest_are_named() -> None:
    many = [Window(at(f"{hour:02}:00"), at(f"{hour:02}:10"), is_session=True) for hour in range(20)]
    near = ", ".join(f"{DAY} 0{hour}:00:00Z to {DAY} 0{hour}:10:00Z" for hour in range(1, 6))
    told = f"The sessions that its records make are 20, the nearest ones {near}"
    assert told_sessions(many, "its records make", at("03:30")) == told


def test_a_time_of_day_or_before_all_windows_is_refused(shop: Bench) -> None:
    for words, said in (
        (("tumbling", "16:53"), "'16:53' names no day"),
        (("tumbling", "1969-12-31"), "no window of shop.tumbling contains a time before 1970"),
    ):
        answer = shop.run("why", f"shop.{words[0]}", "ann", "--window", words[1])
        assert answer.code == 2, answer
        assert said in answer.err


def test_each_output_of_a_sub_topology_has_its_own_windows(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "project")
    bench.write("conf/feeds/orders.yaml", FEED)
    outputs = "outputs: {hourly: {table: shop.hourly}, daily: {table: shop.daily}}\n"
    bench.write("conf/jobs/counts.yaml", f"{JOB.partition('outputs:')[0]}{outputs}")
    bench.write("conf/targets/local.yaml", TARGET)
    bench.write("bench_job.py", FINAL)
    bench.write("data/one.csv", "user,t\n" + "".join(f"ann,{DAY}T{time}:00Z\n" for time in TIMES))
    with without_spark():
        for words in (("land", "orders"), ("run", "counts")):
            assert bench.run(*words).code == 0
        for table, start, closes in (("hourly", "20:00", "21:00"), ("daily", "00:00", "24:00")):
            facts = found(bench, table, "20:30", "--missing")
            assert (facts["why"], facts["window_start_ms"], facts["closes_at_ms"]) == ("open", at(start), at(closes))


def test_without_a_window_each_open_window_of_the_key_is_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "project")
    bench.write("conf/feeds/orders.yaml", FEED)
    outputs = "".join(f"  {name}: {{table: shop.{name}}}\n" for name in ("hopping", "sliding", "sessions"))
    bench.write("conf/jobs/counts.yaml", f"{JOB.partition('outputs:')[0]}outputs:\n{outputs}")
    bench.write("conf/targets/local.yaml", TARGET)
    bench.write("bench_job.py", HOLDING)
    rows = [*(f"ann,{DAY}T{time}:00Z" for time in TIMES), f"eve,{DAY}T20:20:00Z"]
    bench.write("data/one.csv", "user,t\n" + "".join(f"{row}\n" for row in rows))
    starts = {"hopping": ("19:40", "20:00", "20:20"), "sliding": ("19:20", "20:00"), "sessions": ("20:00",)}
    with without_spark():
        for words in (("land", "orders"), ("run", "counts")):
            assert bench.run(*words).code == 0
        for table, named in starts.items():
            answer = bench.run("why", f"shop.{table}", "ann", "--missing")
            assert answer.code == 0, answer
            facts = json.loads(bench.run("why", f"shop.{table}", "ann", "--missing", "--json").out)
            assert facts["why"] == "open"
            assert [one["start_ms"] // 60_000 * 60_000 for one in facts["open_windows"]] == [at(one) for one in named]
            assert answer.out.count("- The window from ") == (len(named) if len(named) > 1 else 0)
            assert f"window from {DAY} {named[0]}:00Z is open until {DAY} 2" in answer.out
            assert f"The clock of {table}-suppress in partition 1 is at {DAY} 20:20:00Z" in answer.out
            assert "Of another window there is a row of the key" in answer.out
        let_go = json.loads(bench.run("why", "shop.hopping", "eve", "--missing", "--json").out)
        assert (let_go["why"], let_go["open_windows"]) == ("let_go", [])


def test_a_key_of_json_is_shown_as_people_write_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "project")
    bench.write("conf/feeds/orders.yaml", FEED)
    bench.write("conf/jobs/counts.yaml", f"{JOB.partition('outputs:')[0]}outputs: {{kinds: {{table: shop.kinds}}}}\n")
    bench.write("conf/targets/local.yaml", TARGET)
    by_day = 'builder.stream("orders").map(lambda key, row: (key, 1)).group_by_key().count(store="kinds")'
    bench.write(
        "bench_job.py",
        "from rewindow import StreamsBuilder\n\n\ndef build_topology():\n    builder = StreamsBuilder()\n"
        f'    {by_day}.to_stream().to("kinds")\n    return builder.build()\n',
    )
    bench.write("data/one.csv", f"user,t\nann,{DAY}T10:00:00Z\n")
    with without_spark():
        for words in (("land", "orders"), ("run", "counts")):
            assert bench.run(*words).code == 0
        answer = bench.run("why", "shop.kinds", "Filiale=Berlin")
        assert answer.code == 2, answer
        assert "or key=VALUE, as in `rewindow why shop.kinds key=ann` [key-column-unknown]" in answer.err
        assert bench.run("why", "shop.kinds", "key=ann").code == 0


def test_sessions_that_the_clock_has_separated_are_told_apart(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "project")
    bench.write(
        "conf/feeds/orders.yaml", FEED.replace("user STRING, t TIMESTAMP", "user STRING, t TIMESTAMP, got TIMESTAMP")
    )
    bench.edit("conf/feeds/orders.yaml", "arrived_at: t", "arrived_at: got")
    bench.edit("conf/feeds/orders.yaml", "partitions: 2", "partitions: 1")
    bench.write(
        "conf/jobs/counts.yaml", f"{JOB.partition('outputs:')[0]}outputs: {{sessions: {{table: shop.sessions}}}}\n"
    )
    bench.write("conf/targets/local.yaml", TARGET)
    module = HOLDING.replace('SessionWindows.of("1h", grace="0s")', 'SessionWindows.of("20m", grace="0s")')
    others = [line for line in module.splitlines() if '"hopping": ' not in line and '"sliding": ' not in line]
    bench.write("bench_job.py", "\n".join(others) + "\n")
    times = (("ann", "10:00"), ("bob", "10:40"), ("ann", "10:20"))
    rows = [f"{user},{DAY}T{time}:00Z,{DAY}T11:0{number}:00Z" for number, (user, time) in enumerate(times)]
    bench.write("data/one.csv", "user,t,got\n" + "".join(f"{row}\n" for row in rows))
    with without_spark():
        for words in (("land", "orders"), ("run", "counts")):
            answer = bench.run(*words)
            assert answer.code == 0, answer
        assert found(bench, "sessions", "10:00")["row"]["value"] == 1
        for more in ((), ("--window", f"{DAY}T10:20")):
            facts = json.loads(bench.run("why", "shop.sessions", "ann", "--missing", "--json", *more).out)
            assert (facts["why"], facts["window_start_ms"], len(facts["records"])) == ("open", at("10:20"), 1), facts
