"""Key pruning: which stores are read only with the keys of a run's own records."""

from __future__ import annotations

from rewindow import FixedKeyProcessor, Processor, StreamsBuilder, TimeWindows, Topology, key_value_store
from rewindow.dsl.operators.window_aggregate import EmitStrategy
from rewindow.streams.topology import key_topics


def asked(topology: Topology) -> dict[str, set[str]]:
    return {store: set(topics) for part in topology.sub_topologies() for store, topics in key_topics(part).items()}


def test_a_count_reads_only_the_keys_of_its_topic() -> None:
    builder = StreamsBuilder()
    builder.stream("in").filter(lambda _key, _value: True).group_by_key().count(store="counts").to_stream().to("out")
    assert asked(builder.build()) == {"counts": {"in"}}


def test_below_a_repartition_only_keys_of_the_internal_topic_are_read() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda _key, value: value, key=str).count(store="counts").to_stream().to("out")
    (topics,) = asked(builder.build()).values()
    assert [topic.endswith("-repartition") for topic in topics] == [True]


def test_a_join_reads_the_keys_of_both_topics() -> None:
    builder = StreamsBuilder()
    table = builder.table("table", store="rows")
    builder.stream("in").join(table, lambda left, right: (left, right)).to("out")
    assert asked(builder.build()) == {"rows": {"in", "table"}}


def test_a_cogroup_reads_the_keys_of_all_its_topics() -> None:
    builder = StreamsBuilder()
    one, other = builder.stream("one").group_by_key(), builder.stream("other").group_by_key()
    both = one.cogroup(lambda _key, value, total: total + value).cogroup(other, lambda _key, _value, total: total)
    both.aggregate(int, store="sums", value=int).to_stream().to("out")
    assert asked(builder.build()) == {"sums": {"one", "other"}}


def test_results_on_window_close_read_all_keys() -> None:
    for emit, expected in (
        (EmitStrategy.on_window_update(), {"windows": {"in"}}),
        (EmitStrategy.on_window_close(), {}),
    ):
        builder = StreamsBuilder()
        windows = builder.stream("in").group_by_key().windowed_by(TimeWindows.of("1h", grace="10m")).emit_strategy(emit)
        windows.count(store="windows").to_stream().to("out")
        assert asked(builder.build()) == expected


def test_a_user_processor_may_read_any_key() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(Processor, name="p", stores=[key_value_store("own")]).to("out")
    builder.stream("other").process_values(FixedKeyProcessor, name="q").group_by_key().count(
        store="counts"
    ).to_stream().to("n")
    assert asked(builder.build()) == {}
