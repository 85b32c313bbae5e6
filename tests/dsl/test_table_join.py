"""Joins of tables by key: examples J15, J17, J18, J25 and S14 of the semantics reference."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import KTable, StreamsBuilder, TimeWindows, until_time_limit, versioned_store
from rewindow.streams.metrics import LATE_RECORD_DROP, SKIPPED_RECORDS
from rewindow.testing import TopologyTestDriver
from tests.dsl.test_tables import both_modes, dropped
from tests.refusals import refused

Steps = list[tuple[str, Any, int, list[str]]]
"""Topic, value, timestamp, what is sent. The key is always k."""


def text(left: Any, right: Any) -> str:
    return f"{left}-{right}"


def tables(*, left: str | None = None, right: str | None = None) -> tuple[StreamsBuilder, KTable, KTable]:
    """Make two tables, versioned if they have a history."""
    builder = StreamsBuilder()
    stores = [versioned_store(name, history=h) if h else name for name, h in (("L", left), ("R", right))]
    return builder, builder.table("L", store=stores[0]), builder.table("R", store=stores[1])


def joined(how: str, store: str | None = None, **histories: str) -> TopologyTestDriver:
    builder, left, right = tables(**histories)
    verb = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[how]
    verb(right, text, store=store, value=str).to_stream().to("out")
    return TopologyTestDriver(builder.build())


def play(driver: TopologyTestDriver, steps: Steps, *, cut: bool) -> None:
    for topic, value, at, expected in steps:
        driver.pipe(topic, "k", value, at)
        assert [f"{record.value}@{record.timestamp}" for record in driver.read("out")] == expected, (topic, value, at)
        if cut:
            driver.cut()


@both_modes
@pytest.mark.parametrize("store", [None, "joined"])
def test_a_joiner_may_take_the_key(store: str | None, *, cut: bool) -> None:
    builder, left, right = tables()
    keyed = left.outer_join(right, lambda *both: ":".join(map(str, both)), with_key=True, store=store, value=str)
    builder.stream("S").join(keyed, lambda value, row: f"{value}?{row}", value=str).to("out")
    keyed.to_stream().to("out2")
    driver = TopologyTestDriver(builder.build())
    steps: Steps = [("L", "a", 5, []), ("R", "x", 3, []), ("S", "s", 9, ["s?k:a:x@9"]), ("L", None, 11, [])]
    play(driver, steps, cut=cut)
    assert [record.value for record in driver.read("out2")] == ["k:a:None", "k:a:x", "k:None:x"]


INNER: Steps = [
    ("L", "a", 5, []),
    ("R", "x", 3, ["a-x@5"]),
    ("L", "b", 2, ["b-x@3"]),
    ("R", None, 9, ["None@9"]),
    ("R", None, 10, ["None@10"]),
    ("L", None, 11, []),
]
LEFT: Steps = [
    ("L", "a", 5, ["a-None@5"]),
    ("R", "x", 3, ["a-x@5"]),
    ("R", None, 9, ["a-None@9"]),
    ("L", None, 11, ["None@11"]),
    ("L", None, 12, []),
]
OUTER: Steps = [
    ("L", None, 4, []),
    ("L", "a", 5, ["a-None@5"]),
    ("R", "x", 6, ["a-x@6"]),
    ("L", None, 9, ["None-x@9"]),
    ("R", None, 10, ["None@10"]),
    ("R", None, 11, []),
]


@both_modes
@pytest.mark.parametrize("store", [None, "joined"])
@pytest.mark.parametrize(("how", "steps"), [("inner", INNER), ("left", LEFT), ("outer", OUTER)])
def test_j15_j17_each_side_joins_the_other_side_s_current_row(
    how: str,
    steps: Steps,
    store: str | None,
    cut: bool,  # noqa: FBT001 - pytest gives it
) -> None:
    play(joined(how, store), steps, cut=cut)


@both_modes
def test_j18_only_the_latest_version_is_joined(cut: bool) -> None:  # noqa: FBT001
    driver = joined("inner", left="1h", right="1h")
    steps: Steps = [
        ("L", "a", 5, []),
        ("R", "x", 3, ["a-x@5"]),
        ("L", "b", 2, []),
        ("R", "w", 1, []),
        ("L", "c", 7, ["c-x@7"]),
    ]
    play(driver, steps, cut=cut)
    assert dropped(driver, LATE_RECORD_DROP) == {"not-latest": 2}


@both_modes
def test_j25_a_side_without_versions_keeps_the_order_of_its_offsets(cut: bool) -> None:  # noqa: FBT001
    driver = joined("inner", left="1h")
    play(driver, [("L", "a", 5, []), ("R", "x", 3, ["a-x@5"]), ("L", "b", 2, []), ("R", "w", 1, ["a-w@5"])], cut=cut)
    assert dropped(driver, LATE_RECORD_DROP) == {"not-latest": 1}


@both_modes
def test_s14_a_suppressed_table_is_looked_up_as_last_sent(cut: bool) -> None:  # noqa: FBT001
    builder, left, right = tables()
    left.suppress(until_time_limit("5ms"), name="held").join(right, text).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for topic, key, value, at, expected in (
        ("L", "k", "v1", 0, []),
        ("R", "k", "r1", 1, []),
        ("L", "z", "y", 5, ["v1-r1@1"]),
        ("L", "k", "v2", 6, []),
        ("R", "k", "r2", 7, ["v1-r2@7"]),
        ("L", "z", "y", 11, ["v2-r2@7"]),
        ("R", "k", "r3", 12, ["v2-r3@12"]),
    ):
        driver.pipe(topic, key, value, at)
        assert [f"{r.value}@{r.timestamp}" for r in driver.read("out")] == expected, (topic, value)
        if cut:
            driver.cut()


def test_a_joiner_that_changes_the_value_of_a_suppressed_table_changes_nothing_that_is_sent() -> None:
    def changing(value: list[str], other: str) -> str:
        value.append(other)
        return "".join(value)

    builder = StreamsBuilder()
    held = builder.table("L", store="left").suppress(until_time_limit("5ms"), name="held")
    held.group_by(lambda _k, v: ("all", "".join(v))).aggregate(
        lambda: "", lambda _k, v, s: f"{s}+{v}", lambda _k, v, s: f"{s}-{v}", store="t", value=str
    ).to_stream().to("trace")
    held.join(builder.table("R", store="right"), changing).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for topic, key, value, at in (
        ("L", "k", ["a"], 0),
        ("R", "k", "x", 1),
        ("L", "z", ["z"], 6),
        ("L", "k", ["b"], 7),
        ("R", "k", "y", 8),
        ("L", "z", ["z"], 15),
    ):
        driver.pipe(topic, key, value, at)
    assert [record.value for record in driver.read("trace")][-1] == "+a+z-a+b"


@both_modes
def test_a_group_below_a_join_subtracts_what_it_added(cut: bool) -> None:  # noqa: FBT001
    builder, left, right = tables()
    join = left.left_join(right, text).filter(lambda _k, v: not v.startswith("b"))
    trace = join.group_by(lambda _k, v: ("all", v)).aggregate(
        lambda: "", lambda _k, v, s: f"{s}+{v}", lambda _k, v, s: f"{s}(-){v}", store="t", value=str
    )
    trace.to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    steps: Steps = [
        ("L", "a", 1, ["+a-None@1"]),
        ("R", "x", 2, ["+a-None(-)a-None+a-x@2"]),
        ("L", "b", 3, ["+a-None(-)a-None+a-x(-)a-x@3"]),
        ("R", "y", 4, []),
        ("L", "c", 5, ["+a-None(-)a-None+a-x(-)a-x+c-y@5"]),
    ]
    play(driver, steps, cut=cut)


@both_modes
def test_tables_of_a_windowed_key_are_joined_by_window(cut: bool) -> None:  # noqa: FBT001
    builder = StreamsBuilder()
    windows = TimeWindows.of("10ms", grace="0ms")
    one, other = (
        builder.stream(topic).group_by_key().windowed_by(windows).count(store=f"n-{topic}") for topic in ("L", "R")
    )
    one.join(other, lambda n, m: n * 10 + m, store="both", value=int).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    steps: Steps = [("L", "x", 1, []), ("R", "x", 3, ["11@3"]), ("L", "x", 2, ["21@3"]), ("R", "x", 12, [])]
    play(driver, steps, cut=cut)
    assert [(key.key, key.window.start_ms, kept) for key, kept in driver.store("both").items()] == [("k", 0, (21, 3))]


@both_modes
def test_a_table_joined_with_itself_sees_each_update_from_both_sides(cut: bool) -> None:  # noqa: FBT001
    builder = StreamsBuilder()
    table = builder.table("L", store="t")
    table.join(table, text).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    play(driver, [("L", "a", 5, ["a-a@5", "a-a@5"]), ("L", "b", 3, ["b-b@3", "b-b@3"]), ("L", None, 4, [])], cut=cut)


@pytest.mark.parametrize("verb", ["filter", "group_by", "suppress"])
def test_a_join_with_shared_updates_needs_a_store_for_verbs_that_use_old_values(verb: str) -> None:
    table = StreamsBuilder().table("t", store="t")
    with_itself = table.join(table.filter(lambda _k, v: v > 1), text)
    given: Any = until_time_limit("1ms") if verb == "suppress" else (lambda _k, _v: True)
    with refused("old-values-unknown"):
        getattr(with_itself, verb)(given)
    with_itself.filter(lambda _k, _v: True, store="own")
    kept = table.join(table.filter(lambda _k, v: v > 2), text, store="kept")
    kept.filter(lambda _k, _v: True)


def test_a_null_key_is_skipped() -> None:
    driver = joined("outer")
    driver.pipe("L", None, "a", 1)
    assert dropped(driver, SKIPPED_RECORDS) == {"null-key": 1}


def test_suppress_rejects_a_versioned_table() -> None:
    _, left, _ = tables(left="1h")
    with refused("suppress-after-versioned-table"):
        left.filter(lambda _k, _v: True).suppress(until_time_limit("1ms"))
    left.map_values(str, store="unversioned").suppress(until_time_limit("1ms"))
