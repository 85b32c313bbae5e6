"""The topology: validation, the order of sub-topologies, and watermark lags."""

from __future__ import annotations

import pytest

from rewindow import Processor, StreamsBuilder, TimeWindows, Topology, key_value_store, until_window_closes
from rewindow.streams.topology import output_lags
from tests.refusals import Refusal, refused


def test_a_topology_is_built_by_name() -> None:
    topology = Topology().add_source("in", "events").add_store(key_value_store("seen"))
    topology.add_processor("p", Processor, "in", stores=("seen",)).add_sink("out", "alerts", "p")
    (part,) = topology.sub_topologies()
    assert [node.name for node in part.nodes] == ["in", "p", "out"]
    assert [source.topic for source in part.sources] == ["events"]
    assert [sink.topic for sink in part.sinks] == ["alerts"]
    assert [store.name for store in part.stores] == ["seen"]


def wrong_parent() -> Topology:
    return Topology().add_source("in", "events").add_sink("out", "alerts", "nobody")


def sink_as_parent() -> Topology:
    return Topology().add_source("in", "events").add_sink("out", "alerts", "in").add_sink("more", "x", "out")


def no_parent() -> Topology:
    return Topology().add_source("in", "events").add_processor("p", Processor)


def same_name() -> Topology:
    return Topology().add_source("in", "events").add_processor("in", Processor, "in")


def topic_read_twice() -> Topology:
    return Topology().add_source("one", "events").add_source("two", "events")


def unknown_store() -> Topology:
    return Topology().add_source("in", "events").add_processor("p", Processor, "in", stores=("seen",))


def two_stores_of_one_name() -> Topology:
    return Topology().add_store(key_value_store("s", key=str)).add_store(key_value_store("s", key=int))


def nothing_read() -> Topology:
    topology = Topology()
    topology.sub_topologies()
    return topology


def written_by_two_parts() -> Topology:
    topology = Topology().add_source("a", "a").add_source("b", "b")
    topology.add_sink("one", "out", "a").add_sink("two", "out", "b").sub_topologies()
    return topology


def going_round() -> Topology:
    topology = Topology().add_source("in", "events")
    below = topology.add_repartition("again", "in")
    topology.add_processor("both", Processor, "in", below).sub_topologies()
    return topology


@pytest.mark.parametrize(
    ("build", "refusal"),
    [
        (wrong_parent, refused("node-parent-unknown", parent="nobody")),
        (sink_as_parent, refused("node-parent-unknown", parent="out")),
        (no_parent, refused("node-without-parent", node="p")),
        (same_name, refused("named-twice", name="in")),
        (topic_read_twice, refused("topic-read-twice", topic="events")),
        (unknown_store, refused("node-store-missing", store="seen")),
        (two_stores_of_one_name, refused("named-twice", name="s")),
        (nothing_read, refused("topology-without-source")),
        (written_by_two_parts, refused("topic-written-twice", topic="out")),
        (going_round, refused("repartitions-form-cycle", repartitions="again-repartition")),
    ],
)
def test_an_invalid_topology_is_rejected_by_name(build: object, refusal: Refusal) -> None:
    assert callable(build)
    with refusal:
        build()


def test_parts_run_upstream_first_whatever_the_order_of_their_nodes() -> None:
    topology = Topology().add_source("late", "late-repartition").add_source("in", "events")
    assert [part.sources[0].name for part in topology.sub_topologies()] == ["late", "in"]
    builder = StreamsBuilder()
    stream = builder.stream("events")
    counted = stream.group_by(lambda key, _value: key[:1]).count(store="first")
    counted.to_stream().group_by(lambda key, _value: key).count(store="second").to_stream().to("out")
    parts = builder.build().sub_topologies()
    assert [[source.topic for source in part.sources] for part in parts] == [
        ["events"],
        ["first-repartition"],
        ["second-repartition"],
    ]
    assert [part.index for part in parts] == [0, 1, 2]


def test_a_shared_store_makes_one_part() -> None:
    topology = Topology().add_source("a", "a").add_source("b", "b").add_store(key_value_store("s"))
    topology.add_processor("pa", Processor, "a", stores=("s",)).add_processor("pb", Processor, "b", stores=("s",))
    (part,) = topology.sub_topologies()
    assert [source.topic for source in part.sources] == ["a", "b"]


def test_a_watermark_is_lowered_by_the_longest_delay_above() -> None:
    builder = StreamsBuilder()
    events = builder.stream("events")
    hours = events.group_by_key().windowed_by(TimeWindows.of("60ms", grace="10ms")).count(store="hours")
    finals = hours.suppress(until_window_closes(), name="closed").to_stream(name="finals")
    days = finals.group_by(lambda _key, _value: "all").windowed_by(TimeWindows.of("1s", grace="0s")).count(store="days")
    days.suppress(until_window_closes(), name="closed-days").to_stream(name="days-finals").to("out")
    finals.merge(events, name="both").process(Processor, name="declares", holds="7ms").to("merged")
    lags = builder.build().watermark_lags()
    assert (lags["hours"], lags["closed"], lags["finals"]) == (0, 0, 70)
    assert (lags["days-repartition-source"], lags["days"], lags["closed-days"], lags["days-finals"]) == (
        70,
        70,
        70,
        1070,
    )
    assert (lags["both"], lags["declares"], lags["merged-sink"]) == (70, 70, 77)


def test_the_fingerprint_distinguishes_topologies() -> None:
    def build(size: str) -> Topology:
        builder = StreamsBuilder()
        windows = TimeWindows.of(size, grace="0s")
        builder.stream("events").group_by_key().windowed_by(windows).count(store="c").to_stream().to("out")
        return builder.build()

    assert build("1h").fingerprint() == build("60m").fingerprint()
    assert build("1h").fingerprint() != build("2h").fingerprint()


def test_the_lag_of_an_output_is_that_of_its_sink() -> None:
    builder = StreamsBuilder()
    events = builder.stream("events")
    hours = events.group_by_key().windowed_by(TimeWindows.of("60ms", grace="10ms")).count(store="hours")
    finals = hours.suppress(until_window_closes(), name="closed").to_stream(name="finals")
    finals.to("finals")
    finals.group_by(lambda _key, _value: "all").count(store="all").to_stream(name="totals").to("totals")
    events.to("events")
    finals.to("finals-global")
    finals.to("finals-repartition")
    lags = {"finals": 70, "totals": 70, "events": 0, "finals-global": 70, "finals-repartition": 70}
    assert output_lags(builder.build().describe()) == lags
