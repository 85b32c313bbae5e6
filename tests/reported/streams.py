"""Reports about joins, windows and aggregates of streams and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rewindow import (
    JoinWindows,
    KTable,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    until_window_closes,
    versioned_store,
)
from tests.reported.report import Report, Stream, github, jira


def pair(left: Any, right: Any) -> str:
    """Join two values as text."""
    return f"{left}|{right}"


def stream_join(verb: str, windows: Callable[[], JoinWindows]) -> Callable[[], Topology]:
    """Return a topology that joins two streams."""

    def topology() -> Topology:
        builder = StreamsBuilder()
        left, right = builder.stream("left"), builder.stream("right")
        getattr(left, verb)(right, pair, windows(), name="j", value=str).to("out")
        return builder.build()

    return topology


def stream_table(verb: str, **table: Any) -> Callable[[], Topology]:
    """Return a topology that joins a stream with a table."""

    def topology() -> Topology:
        builder = StreamsBuilder()
        store = table["store"]() if table else "t"
        getattr(builder.stream("left"), verb)(builder.table("right", store=store), pair, value=str).to("out")
        return builder.build()

    return topology


def global_table(verb: str) -> Callable[[], Topology]:
    """Return a topology whose stream finds rows of a global table by its values."""

    def topology() -> Topology:
        builder = StreamsBuilder()
        table = builder.global_table("right", store="t")
        getattr(builder.stream("left"), verb)(table, lambda _key, value: value or None, pair, value=str).to("out")
        return builder.build()

    return topology


def foreign_key(verb: str) -> Callable[[], Topology]:
    """Return a topology that joins tables by the first part of the left value, `key:name`; an empty part is no key."""

    def topology() -> Topology:
        builder = StreamsBuilder()
        left, right = builder.table("left", store="l"), builder.table("right", store="r")
        joined = getattr(left, verb)(
            right, pair, foreign_key=lambda _key, value: value.partition(":")[0] or None, store="j", value=str
        )
        joined.to_stream().to("out")
        return builder.build()

    return topology


def tables(verb: str, history: str | None = None) -> Callable[[], Topology]:
    """Return a topology that joins two tables."""

    def topology() -> Topology:
        builder = StreamsBuilder()
        stores = [name if history is None else versioned_store(name, history=history) for name in ("l", "r")]
        left, right = builder.table("left", store=stores[0]), builder.table("right", store=stores[1])
        getattr(left, verb)(right, pair, value=str).to_stream().to("out")
        return builder.build()

    return topology


def grouped_table(aggregate: Callable[[Any], KTable]) -> Callable[[], Topology]:
    """Return a topology that groups a table by its value's first letter."""

    def topology() -> Topology:
        builder = StreamsBuilder()
        grouped = builder.table("in", store="t").group_by(lambda _key, value: (value[0], value[1:]), key=str, value=str)
        aggregate(grouped).to_stream().to("out")
        return builder.build()

    return topology


def counted(windows: Callable[[], Any] | None = None, *, is_final: bool = False) -> Callable[[], Topology]:
    """Return a topology that counts records by key."""

    def topology() -> Topology:
        builder = StreamsBuilder()
        grouped: Any = builder.stream("in").group_by_key()
        table = (grouped if windows is None else grouped.windowed_by(windows())).count(store="n")
        (table.suppress(until_window_closes(), name="s") if is_final else table).to_stream().to("out")
        return builder.build()

    return topology


def mapped(verb: str, function: Callable[[Any], Any]) -> Callable[[], Topology]:
    """Return a topology that sends what a function makes of each value."""

    def topology() -> Topology:
        builder = StreamsBuilder()
        getattr(builder.stream("in"), verb)(function).to("out")
        return builder.build()

    return topology


def reduced() -> Topology:
    """Add up values by key; a sum of zero deletes the row."""
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().reduce(lambda one, other: one + other or None, store="n").to_stream().to("out")
    return builder.build()


def self_joined() -> Topology:
    """Join a stream with itself."""
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.join(stream, pair, JoinWindows.of("10ms", grace="0ms"), name="j", value=str).to("out")
    return builder.build()


def out(*records: tuple[Any, Any, int]) -> tuple[tuple[str, Any, Any, int], ...]:
    """Return records of the topic `out`."""
    return tuple(("out", *record) for record in records)


def into(topic: str, *records: tuple[Any, Any, int]) -> tuple[tuple[str, Any, Any, int], ...]:
    """Return records of a topic."""
    return tuple((topic, *record) for record in records)


def grace_0() -> JoinWindows:
    return JoinWindows.of("10ms", grace="0ms")


def grace_20() -> JoinWindows:
    return JoinWindows.of("5ms", grace="20ms")


def only_before() -> JoinWindows:
    return JoinWindows.of("100ms", grace="0ms").after("0ms")


def sessions(grace: str = "0ms") -> Callable[[], SessionWindows]:
    return lambda: SessionWindows.of("5ms", grace=grace)


DAY = 86_400_000
NO_FK = ("null-foreign-key",)
FK = (("right", "f1", "R1", 0), ("right", "f2", "R2", 1))

REPORTS: tuple[Report, ...] = (
    jira(
        "KAFKA-10847",
        "A left join of streams sent a record with null although its partner came within the window.",
        "A record is sent with null only when no partner can come any more.",
        Stream(
            "left join",
            stream_join("left_join", grace_0),
            (("left", "A", 1, 0), ("right", "A", 2, 5)),
            out(("A", "1|2", 5)),
        ),
        Stream(
            "at the last moment",
            stream_join("left_join", grace_0),
            (("left", "A", 1, 0), ("right", "A", 2, 10)),
            out(("A", "1|2", 10)),
        ),
        Stream(
            "outer join, without partners",
            stream_join("outer_join", grace_0),
            (("left", "A", 1, 0), ("right", "B", 2, 11), ("left", "C", 3, 22)),
            out(("A", "1|None", 0), ("B", "None|2", 11)),
        ),
    ),
    jira(
        "KAFKA-15417",
        "With `after` zero, a left join sent results with null too early or twice.",
        "A record without later partners is sent with null when the clock has passed it.",
        Stream(
            "the partner is too late",
            stream_join("left_join", only_before),
            (("left", "A", 0, 0), ("left", "B", 1, 100), ("right", "B", 9, 110)),
            out(("A", "0|None", 0), ("B", "1|None", 100)),
        ),
        Stream(
            "the partner is earlier, and out of order",
            stream_join("left_join", only_before),
            (("left", "A", 0, 100), ("right", "A", 9, 60)),
            out(("A", "0|9", 100)),
        ),
    ),
    jira(
        "KAFKA-19536",
        "An out-of-order record was sent with null before its grace period was over, and joined later.",
        "It waits for the grace period (D12).",
        Stream(
            "left",
            stream_join("left_join", grace_20),
            (("left", "A", 1, 20), ("left", "B", 2, 10), ("right", "B", 3, 12), ("left", "C", 4, 60)),
            out(("B", "2|3", 12), ("A", "1|None", 20)),
        ),
        Stream(
            "right",
            stream_join("outer_join", grace_20),
            (("right", "A", 1, 20), ("right", "B", 2, 10), ("left", "B", 3, 12), ("left", "C", 4, 60)),
            out(("B", "3|2", 12), ("A", "None|1", 20)),
        ),
        Stream(
            "without a partner",
            stream_join("left_join", grace_20),
            (("left", "A", 1, 30), ("left", "B", 2, 10), ("left", "A", 3, 36)),
            out(("B", "2|None", 10)),
        ),
    ),
    jira(
        "KAFKA-16407",
        "A row whose foreign key had been null was not joined once it had one.",
        "It is joined.",
        Stream(
            "inner join",
            foreign_key("join"),
            (*FK, *into("left", ("k", ":a", 2), ("k", "f1:a", 3))),
            out(("k", "f1:a|R1", 3)),
            NO_FK,
        ),
        Stream(
            "left join",
            foreign_key("left_join"),
            (*FK, *into("left", ("k", ":a", 2), ("k", "f1:a", 3))),
            out(("k", ":a|None", 2), ("k", "f1:a|R1", 3)),
        ),
    ),
    jira(
        "KAFKA-16434",
        "The result stayed when the foreign key became null.",
        "A tombstone deletes it; a left join replaces it.",
        Stream(
            "inner join",
            foreign_key("join"),
            (*FK, *into("left", ("k", "f1:a", 2), ("k", ":b", 3))),
            out(("k", "f1:a|R1", 2), ("k", None, 3)),
            NO_FK,
        ),
        Stream(
            "left join",
            foreign_key("left_join"),
            (*FK, *into("left", ("k", "f1:a", 2), ("k", ":b", 3))),
            out(("k", "f1:a|R1", 2), ("k", ":b|None", 3)),
        ),
    ),
    jira(
        "KAFKA-16394",
        "A changed foreign key sent a null before the new result, and a deletion sent two.",
        "One update sends one result.",
        Stream(
            "changed, then deleted",
            foreign_key("left_join"),
            (*FK, *into("left", ("k", "f1:a", 2), ("k", "f2:a", 3), ("k", None, 4))),
            out(("k", "f1:a|R1", 2), ("k", "f2:a|R2", 3), ("k", None, 4)),
        ),
        Stream(
            "to a key that is not there, and back",
            foreign_key("left_join"),
            (*FK, *into("left", ("k", "f9:a", 2), ("k", "f2:a", 3))),
            out(("k", "f9:a|None", 2), ("k", "f2:a|R2", 3)),
        ),
    ),
    jira(
        "KAFKA-14748",
        "A row without a foreign key was missing in a left join.",
        "It is in the result, with null.",
        Stream("a null key", foreign_key("left_join"), into("left", ("k", ":a", 0)), out(("k", ":a|None", 0))),
        Stream("in an inner join there is none", foreign_key("join"), into("left", ("k", ":a", 0)), (), NO_FK),
    ),
    jira(
        "KAFKA-12317",
        "Left joins dropped records without a key.",
        "They are sent with null; inner joins skip and count them.",
        Stream(
            "left join with a table", stream_table("left_join"), into("left", (None, 1, 5)), out((None, "1|None", 5))
        ),
        Stream(
            "left join of streams",
            stream_join("left_join", grace_0),
            into("left", (None, 1, 5)),
            out((None, "1|None", 5)),
        ),
        Stream("inner join with a table", stream_table("join"), into("left", (None, 1, 5)), (), ("null-key",)),
        Stream("inner join of streams", stream_join("join", grace_0), into("left", (None, 1, 5)), (), ("null-key",)),
    ),
    jira(
        "KAFKA-10277",
        "A record without a key was not joined with a global table, although its value has the key.",
        "The key of the row is that of the selector.",
        Stream(
            "inner join", global_table("join"), (("right", "a", "R", 0), ("left", None, "a", 1)), out((None, "a|R", 1))
        ),
        Stream(
            "left join without a row",
            global_table("left_join"),
            (("right", "a", "R", 0), ("left", None, "b", 1)),
            out((None, "b|None", 1)),
        ),
        Stream(
            "left join without a key",
            global_table("left_join"),
            (("right", "a", "R", 0), ("left", "k", "", 1)),
            out(("k", "|None", 1)),
        ),
    ),
    jira(
        "KAFKA-12446",
        "An update within a group sent a result without the old row, then one with the new row.",
        "The subtractor comes first, and one result is sent.",
        Stream(
            "in one group",
            grouped_table(lambda grouped: grouped.reduce(lambda a, b: f"{a}+{b}", lambda a, b: f"{a}-{b}", store="r")),
            into("in", ("A", "g1", 0), ("A", "g2", 1)),
            out(("g", "1", 0), ("g", "1-1+2", 1)),
        ),
        Stream(
            "counted",
            grouped_table(lambda grouped: grouped.count(store="r")),
            into("in", ("A", "g1", 0), ("B", "g1", 1), ("A", "g2", 2)),
            out(("g", 1, 0), ("g", 2, 1), ("g", 2, 2)),
        ),
    ),
    jira(
        "KAFKA-9533",
        "Whether a transformer that returns null sends a null or nothing changed between versions.",
        "A null is a value and is sent; an empty list sends nothing.",
        Stream("a null", mapped("map_values", lambda _value: None), into("in", ("A", 1, 5)), out(("A", None, 5))),
        Stream("an empty list", mapped("flat_map_values", lambda _value: []), into("in", ("A", 1, 5)), ()),
        Stream(
            "a list with a null",
            mapped("flat_map_values", lambda value: [None, value]),
            into("in", ("A", 1, 5)),
            out(("A", None, 5), ("A", 1, 5)),
        ),
    ),
    jira(
        "KAFKA-8289",
        "Sessions expired a millisecond early, and their final results did not wait for the gap.",
        "A final result waits for gap and grace, counted from the inclusive end.",
        Stream(
            "gap and grace",
            counted(sessions("10ms"), is_final=True),
            into("in", ("A", 1, 0), ("B", 1, 12), ("A", 1, 3), ("B", 1, 18), ("C", 1, 19)),
            out((("A", 0, 3), 2, 3)),
        ),
        Stream(
            "a record exactly one gap later",
            counted(sessions(), is_final=True),
            into("in", ("A", 1, 0), ("B", 1, 5), ("A", 1, 5), ("B", 1, 30)),
            out((("A", 0, 5), 2, 5), (("B", 5, 5), 1, 5)),
        ),
    ),
    jira(
        "KAFKA-6455",
        "The time of a result was that of the record that caused it, so results went back in time.",
        "It is the largest time of what the result was made of.",
        Stream(
            "tables",
            tables("join"),
            (("right", "A", "y", 2), ("left", "A", "x", 0), ("left", "A", None, 1)),
            out(("A", "x|y", 2), ("A", None, 2)),
        ),
        Stream("a count", counted(), into("in", ("A", 1, 5), ("A", 1, 3)), out(("A", 1, 5), ("A", 2, 5))),
        Stream(
            "streams", stream_join("join", grace_0), (("left", "A", 1, 9), ("right", "A", 2, 4)), out(("A", "1|2", 9))
        ),
    ),
    jira(
        "KAFKA-14834",
        "An out-of-order row was joined although a later tombstone had deleted it.",
        "Rows older than the latest version, also a deleted one, are dropped.",
        Stream(
            "after a tombstone",
            tables("join", "1h"),
            (("right", "A", "r", 0), *into("left", ("A", "1", 10), ("A", None, 20), ("A", "2", 15))),
            out(("A", "1|r", 10), ("A", None, 20)),
            ("not-latest",),
        ),
        Stream(
            "without history the later offset counts",
            tables("join"),
            (("right", "A", "r", 0), *into("left", ("A", "1", 10), ("A", None, 20), ("A", "2", 15))),
            out(("A", "1|r", 10), ("A", None, 20), ("A", "2|r", 15)),
        ),
    ),
    github(
        "thriving-dev/kafka-streams-cassandra-state-store",
        21,
        "An out-of-order record was joined with a row that was not there at its time.",
        "A versioned table has the row of that time; another table has the last one.",
        Stream(
            "versioned",
            stream_table("join", store=lambda: versioned_store("t", history="1h")),
            (
                ("right", "k", "b0", 0),
                ("left", "k", "a1", 1),
                ("right", "k", "b3", 3),
                ("left", "k", "a4", 4),
                ("left", "k", "a2", 2),
            ),
            out(("k", "a1|b0", 1), ("k", "a4|b3", 4), ("k", "a2|b0", 2)),
        ),
        Stream(
            "not versioned",
            stream_table("join"),
            (
                ("right", "k", "b0", 0),
                ("left", "k", "a1", 1),
                ("right", "k", "b3", 3),
                ("left", "k", "a4", 4),
                ("left", "k", "a2", 2),
            ),
            out(("k", "a1|b0", 1), ("k", "a4|b3", 4), ("k", "a2|b3", 2)),
        ),
    ),
    jira(
        "KAFKA-5315",
        "A deletion was subtracted from a group that did not have the row.",
        "What was never added is not subtracted.",
        Stream(
            "deleted first, and twice",
            grouped_table(lambda grouped: grouped.count(store="r")),
            into("in", ("A", None, 0), ("A", "g1", 1), ("A", None, 2), ("A", None, 3)),
            out(("g", 1, 1), ("g", 0, 2)),
        ),
        Stream(
            "to another group and back",
            grouped_table(lambda grouped: grouped.count(store="r")),
            into("in", ("A", "g1", 0), ("A", "h1", 1), ("A", "g1", 2)),
            out(("g", 1, 0), ("g", 0, 1), ("h", 1, 1), ("h", 0, 2), ("g", 1, 2)),
        ),
    ),
    jira(
        "KAFKA-5636",
        "Records earlier than the length of a sliding window had windows that began before 1970.",
        "Their windows begin at 0.",
        Stream(
            "two early records",
            counted(lambda: SlidingWindows.of("10ms", grace="50ms")),
            into("in", ("A", 1, 5), ("A", 1, 7)),
            out((("A", 0, 10), 1, 5), (("A", 6, 16), 1, 7), (("A", 0, 10), 2, 7)),
        ),
        Stream(
            "an early record that comes late",
            counted(lambda: SlidingWindows.of("10ms", grace="50ms")),
            into("in", ("A", 1, 7), ("A", 1, 5)),
            out((("A", 0, 10), 1, 7), (("A", 6, 16), 1, 7), (("A", 0, 10), 2, 7)),
        ),
    ),
    jira(
        "BEAM-3568",
        "With no lateness allowed, a record within the gap of a session that was over made an overlapping session.",
        "As in Kafka Streams, a session of its own, if that is not over; each session has one final result.",
        Stream(
            "final results",
            counted(sessions(), is_final=True),
            into("in", ("A", 1, 0), ("B", 1, 6), ("A", 1, 3), ("B", 1, 9)),
            out((("A", 0, 0), 1, 0), (("A", 3, 3), 1, 3)),
        ),
        Stream(
            "over as well",
            counted(sessions(), is_final=True),
            into("in", ("A", 1, 0), ("B", 1, 9), ("A", 1, 3)),
            out((("A", 0, 0), 1, 0)),
            ("window-closed",),
        ),
    ),
    github(
        "hazelcast/hazelcast-jet",
        747,
        "A late record was counted in the next session.",
        "It is dropped and counted.",
        Stream(
            "updates",
            counted(sessions()),
            into("in", ("A", 1, 0), ("A", 1, 20), ("A", 1, 2)),
            out((("A", 0, 0), 1, 0), (("A", 20, 20), 1, 20)),
            ("window-closed",),
        ),
        Stream(
            "with a grace period",
            counted(sessions("20ms")),
            into("in", ("A", 1, 0), ("A", 1, 20), ("A", 1, 2)),
            out((("A", 0, 0), 1, 0), (("A", 20, 20), 1, 20), (("A", 0, 0), None, 0), (("A", 0, 2), 2, 2)),
        ),
    ),
    github(
        "confluentinc/ksql",
        5633,
        "A record with a key and without a value was not counted, which nobody expected.",
        "As documented: counts of a stream skip it and say so.",
        Stream(
            "without a window", counted(), into("in", ("A", None, 0), ("A", 1, 1)), out(("A", 1, 1)), ("null-value",)
        ),
        Stream(
            "with a window, as in Kafka Streams",
            counted(lambda: TimeWindows.of("10ms", grace="0ms")),
            into("in", ("A", None, 0), ("A", 1, 1)),
            out((("A", 0, 10), 1, 0), (("A", 0, 10), 2, 1)),
        ),
    ),
    github(
        "confluentinc/ksql",
        4579,
        "A record of yesterday was missing in yesterday's window, without a word.",
        "Without a grace period it is dropped and counted, with one it is in the window.",
        Stream(
            "no grace period",
            counted(lambda: TimeWindows.of("1d", grace="0ms")),
            into("in", ("A", 1, DAY + 1), ("A", 1, DAY - 1)),
            out((("A", DAY, 2 * DAY), 1, DAY + 1)),
            ("window-closed",),
        ),
        Stream(
            "a day of grace",
            counted(lambda: TimeWindows.of("1d", grace="1d")),
            into("in", ("A", 1, DAY + 1), ("A", 1, DAY - 1)),
            out((("A", DAY, 2 * DAY), 1, DAY + 1), (("A", 0, DAY), 1, DAY - 1)),
        ),
        Stream(
            "at the end of the grace period",
            counted(lambda: TimeWindows.of("1d", grace="1d")),
            into("in", ("A", 1, 2 * DAY - 1), ("A", 1, 0), ("A", 1, 2 * DAY), ("A", 1, 0)),
            out((("A", DAY, 2 * DAY), 1, 2 * DAY - 1), (("A", 0, DAY), 1, 0), (("A", 2 * DAY, 3 * DAY), 1, 2 * DAY)),
            ("window-closed",),
        ),
    ),
    github(
        "confluentinc/ksql",
        2030,
        "A stream could be joined with itself only by way of a second topic.",
        "It is joined with itself; each pair comes once in each direction.",
        Stream(
            "two records",
            self_joined,
            into("in", ("A", 1, 0), ("A", 2, 5)),
            out(("A", "1|1", 0), ("A", "2|1", 5), ("A", "1|2", 5), ("A", "2|2", 5)),
        ),
        Stream(
            "out of order",
            self_joined,
            into("in", ("A", 1, 5), ("A", 2, 0)),
            out(("A", "1|1", 5), ("A", "2|1", 5), ("A", "2|2", 0), ("A", "1|2", 5)),
        ),
    ),
    jira(
        "KAFKA-7492",
        "What an aggregate that becomes null does was described nowhere.",
        "The row is deleted, and the next record starts again.",
        Stream(
            "a sum of zero",
            reduced,
            into("in", ("A", 1, 0), ("A", -1, 1), ("A", 5, 2)),
            out(("A", 1, 0), ("A", None, 1), ("A", 5, 2)),
        ),
        Stream(
            "beside another key",
            reduced,
            into("in", ("A", 1, 0), ("B", 2, 1), ("A", -1, 2)),
            out(("A", 1, 0), ("B", 2, 1), ("A", None, 2)),
        ),
    ),
)
