"""Which stores are asked only for the keys of a run's own records: those need not be restored whole."""

from __future__ import annotations

from rewindow import FixedKeyProcessor, Processor, StreamsBuilder, TimeWindows, Topology, key_value_store
from rewindow.dsl.operators.windowed import EmitStrategy
from rewindow.streams.key_pruning import asked_by_topics


def asked(topology: Topology) -> dict[str, set[str]]:
    return {store: set(topics) for part in topology.sub_topologies() for store, topics in asked_by_topics(part).items()}


def test_a_count_asks_for_the_keys_that_come_in() -> None:
    builder = StreamsBuilder()
    builder.stream("in").filter(lambda _key, _value: True).group_by_key().count(store="counts").to_stream().to("out")
    assert asked(builder.build()) == {"counts": {"in"}}


def test_below_a_repartition_they_are_those_of_the_internal_topic() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda _key, value: value, key=str).count(store="counts").to_stream().to("out")
    (topics,) = asked(builder.build()).values()
    assert [topic.endswith("-repartition") for topic in topics] == [True]


def test_a_join_asks_for_the_keys_of_both_its_topics() -> None:
    builder = StreamsBuilder()
    table = builder.table("table", store="rows")
    builder.stream("in").join(table, lambda left, right: (left, right)).to("out")
    assert asked(builder.build()) == {"rows": {"in", "table"}}


def test_results_that_leave_when_their_window_closes_are_those_of_all_keys() -> None:
    for emit, expected in (
        (EmitStrategy.on_window_update(), {"windows": {"in"}}),
        (EmitStrategy.on_window_close(), {}),
    ):
        builder = StreamsBuilder()
        windows = builder.stream("in").group_by_key().windowed_by(TimeWindows.of("1h", grace="10m")).emit_strategy(emit)
        windows.count(store="windows").to_stream().to("out")
        assert asked(builder.build()) == expected


def test_a_processor_of_the_users_may_ask_for_anything() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(Processor, name="p", stores=[key_value_store("own")]).to("out")
    builder.stream("other").process_values(FixedKeyProcessor, name="q").group_by_key().count(
        store="counts"
    ).to_stream().to("n")
    assert asked(builder.build()) == {}
