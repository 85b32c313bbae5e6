"""`rewindow why --window TIME` never answers for a window that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.failures import Failure
from rewindow.app.why.asked_window import told_sessions
from rewindow.streams.record import Window
from tests.bad_input.scene import CSV_FEED, Bench, project_of, topology, without_spark
from tests.ingest.local_engine import HOUR

TWO_PARTITIONS = CSV_FEED.replace("partitions: 1", "partitions: 2\nlanding: {every: 1d}")
GROUPED = 'grouped = builder.stream("orders").group_by_key()'
WINDOWS = {
    "tumbling": 'TimeWindows.of("1h", grace="0s")',
    "hopping": 'TimeWindows.of("1h", grace="0s").advance_by("20m")',
    "sliding": 'SlidingWindows.of("1h", grace="0s")',
    "sessions": 'SessionWindows.of("1h", grace="0s")',
    "daily": 'TimeWindows.of("1d", grace="0s")',
}


def counting(*names: str, grouped: str = GROUPED, final: bool = True) -> str:
    """Return a topology that counts in some of the windows, each with an output of its own."""
    sent = ".suppress(until_window_closes())" if final else ""
    verbs = (
        f'grouped.windowed_by({WINDOWS[name]}).count(store="{name}"){sent}.to_stream().to("{name}")' for name in names
    )
    return topology(grouped, *verbs)


WITHOUT_EVE = 'grouped = builder.stream("orders").filter(lambda key, value: key != "eve", name="kept").group_by_key()'
DAY = "2026-01-05"
START = 1_767_571_200_000
"""The day's start."""
TIMES = ("16:10", "16:50", "17:20", "20:00", "20:20")


def at(text: str) -> int:
    hours, minutes = text.split(":")
    return START + int(hours) * HOUR + int(minutes) * 60_000


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    module = counting(*WINDOWS, final=False)
    bench = project_of(tmp_path_factory.mktemp("windows") / "project", TWO_PARTITIONS, module, *WINDOWS)
    bench.write("data/one.csv", "user,t\n" + "".join(f"ann,{DAY}T{time}:00Z\n" for time in TIMES))
    with without_spark():
        bench.done("land orders", "run counts")
        yield bench


def found(shop: Bench, table: str, time: str, *more: str) -> dict[str, Any]:
    return shop.json(f"why shop.{table} ann --window {DAY}T{time} {' '.join(more)}")


def refused(shop: Bench, table: str, time: str, code: str, /, *more: str, **facts: object) -> Failure:
    return shop.refuses(f"why shop.{table} ann --window {DAY}T{time} {' '.join(more)}", code, **facts)


def replayed(root: Path, module: str, rows: list[str], *outputs: str, feed: str = TWO_PARTITIONS) -> Bench:
    """Return a project whose job has replayed the rows of a file."""
    bench = project_of(root, feed, module, *outputs)
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
    bench = replayed(tmp_path, counting("tumbling", "daily"), rows, "tumbling", "daily")
    for table, start, closes in (("tumbling", "20:00", "21:00"), ("daily", "00:00", "24:00")):
        facts = found(bench, table, "20:30", "--missing")
        assert (facts["why"], facts["window_start_ms"], facts["closes_at_ms"]) == ("open", at(start), at(closes))


@pytest.mark.usefixtures("in_process")
def test_without_a_window_each_open_window_of_the_key_is_named(tmp_path: Path) -> None:
    rows = ["user,t", *(f"ann,{DAY}T{time}:00Z" for time in TIMES), f"eve,{DAY}T20:20:00Z"]
    starts = {"hopping": ("19:40", "20:00", "20:20"), "sliding": ("19:20", "20:00"), "sessions": ("20:00",)}
    bench = replayed(tmp_path, counting(*starts, grouped=WITHOUT_EVE), rows, *starts)
    for table, named in starts.items():
        facts = bench.json(f"why shop.{table} ann --missing")
        assert facts["why"] == "open"
        assert [one["start_ms"] // 60_000 * 60_000 for one in facts["open_windows"]] == [at(one) for one in named]
    let_go = bench.json("why shop.hopping eve --missing")
    assert (let_go["why"], let_go["open_windows"]) == ("let_go", [])


@pytest.mark.usefixtures("in_process")
def test_a_key_of_json_is_shown_as_people_write_it(tmp_path: Path) -> None:
    kinds = 'builder.stream("orders").map(lambda key, row: (key, 1)).group_by_key().count(store="kinds")'
    module = topology(f'{kinds}.to_stream().to("kinds")')
    bench = replayed(tmp_path, module, ["user,t", f"ann,{DAY}T10:00:00Z"], "kinds")
    bench.refuses("why shop.kinds Filiale=Berlin", "key-column-unknown", column="Filiale")
    bench.done("why shop.kinds key=ann")


@pytest.mark.usefixtures("in_process")
def test_sessions_that_the_clock_has_separated_are_told_apart(tmp_path: Path) -> None:
    feed = CSV_FEED.replace("t TIMESTAMP", "t TIMESTAMP, got TIMESTAMP").replace("arrived_at: t", "arrived_at: got")
    module = counting("sessions").replace("1h", "20m")
    times = (("ann", "10:00"), ("bob", "10:40"), ("ann", "10:20"))
    rows = [f"{user},{DAY}T{time}:00Z,{DAY}T11:0{number}:00Z" for number, (user, time) in enumerate(times)]
    bench = replayed(tmp_path, module, ["user,t,got", *rows], "sessions", feed=feed)
    assert found(bench, "sessions", "10:00")["row"]["value"] == 1
    for more in ("", f" --window {DAY}T10:20"):
        facts = bench.json(f"why shop.sessions ann --missing{more}")
        assert (facts["why"], facts["window_start_ms"], len(facts["records"])) == ("open", at("10:20"), 1), facts


DAILY = f"{CSV_FEED}landing: {{every: 1d}}\n"
LIMITED = topology(
    """
grouped = builder.stream("orders").group_by_key()
counts = grouped.windowed_by(TimeWindows.of("1d", grace="0s")).count(store="windows")
counts.suppress(until_time_limit("30m"), name="slow-windows").to_stream().to("windowed")
grouped.count(store="totals").suppress(until_time_limit("30m"), name="slow").to_stream().to("plain")
"""
)


@pytest.fixture(scope="module")
def limits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = project_of(tmp_path_factory.mktemp("limits") / "project", DAILY, LIMITED, "windowed", "plain")
    rows = [("ann", "16:10"), ("bob", "16:15"), ("ann", "16:20"), ("bob", "16:25")]
    bench.write("data/one.csv", "user,t\n" + "".join(f"{user},{DAY}T{time}:00Z\n" for user, time in rows))
    with without_spark():
        bench.done("land orders", "run counts")
        yield bench


def waiting(limits: Bench, table: str, *more: str) -> dict[str, Any]:
    return limits.json(f"why shop.{table} ann --missing {' '.join(more)}")


@pytest.mark.parametrize("more", [(), ("--window", DAY)])
def test_a_window_waits_for_the_limit_after_its_first_update_not_after_its_end(
    limits: Bench, more: tuple[str, ...]
) -> None:
    facts = waiting(limits, "windowed", *more)
    assert (facts["why"], facts["closes_at_ms"], facts["clock_ms"]) == ("open", at("16:40"), at("16:25"))


def test_a_plain_table_says_until_when_its_result_waits(limits: Bench) -> None:
    facts = waiting(limits, "plain")
    assert (facts["why"], facts["closes_at_ms"]) == ("waiting", at("16:40"))


def test_what_no_buffer_holds_has_no_time_at_which_it_is_final(limits: Bench) -> None:
    facts = limits.json("why shop.windowed eve --missing")
    assert (facts["why"], facts["closes_at_ms"], facts["open_windows"]) == ("never_landed", None, [])
