"""Sinks: names, topics chosen by a function, and partitions chosen by a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rewindow import StreamsBuilder, Topology
from rewindow.errors import DataError
from rewindow.streams.nodes import SinkNode
from rewindow.testing import Epoch, LocalReplay, TopologyTestDriver
from tests.refusals import Refusal, refused

PARTITIONS = 3
TYPO = (
    "the extractor returned 'typo' for the key 'k', which is not a declared output ('odd', 'even'): add it to outputs"
)


def routed(extractor: Callable[[Any, Any], Any], **options: Any) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").to(extractor, outputs=["odd", "even"], **options)
    return builder.build()


def by_parity(_key: Any, value: Any) -> str:
    return {0: "even", 1: "odd"}.get(value % 10, "typo")


def test_a_function_sends_each_record_to_one_of_the_outputs() -> None:
    driver = TopologyTestDriver(routed(by_parity))
    for at, value in enumerate((1, 10, 21)):
        driver.pipe("in", "k", value, at)
    assert driver.outputs == ("even", "odd")
    assert [(topic, record.value) for topic, record in driver.read_all()] == [("odd", 1), ("even", 10), ("odd", 21)]


def test_a_topic_that_is_not_declared_fails_and_names_the_record() -> None:
    driver = TopologyTestDriver(routed(by_parity, name="by-parity"))
    driver.pipe("in", "k", 1, 0)
    with pytest.raises(DataError) as failed:
        driver.pipe("in", "k", 5, 1)
    assert TYPO in str(failed.value)
    assert "[at in offset 1, partition 0, node 'by-parity']" in str(failed.value)
    assert failed.value.exit_code == 65


@pytest.mark.parametrize("wrong", [None, 7, ["odd"]])
def test_a_result_that_is_no_topic_fails(wrong: Any) -> None:
    driver = TopologyTestDriver(routed(lambda _key, _value: wrong))
    with refused("extracted-topic-undeclared"):
        driver.pipe("in", "k", 1, 0)


def test_a_record_with_an_undeclared_topic_can_go_to_the_quarantine() -> None:
    driver = TopologyTestDriver(routed(by_parity, name="by-parity"), on_error={"by-parity": "quarantine"})
    for at, value in enumerate((1, 5, 10)):
        driver.pipe("in", "k", value, at)
    assert [(topic, record.value) for topic, record in driver.read_all()] == [("odd", 1), ("even", 10)]
    assert [(one.node, one.record) for one in driver.dropped] == [("by-parity", '{"key":"k","value":5}')]


@pytest.mark.parametrize(
    ("outputs", "refusal"),
    [
        (None, refused("outputs-not-listed")),
        ([], refused("outputs-not-listed")),
        ("odd", refused("outputs-not-listed")),
        (["odd", ""], refused("outputs-not-listed")),
        (["odd", "odd"], refused("outputs-topic-twice")),
    ],
)
def test_outputs_that_are_no_list_of_topics_are_refused(outputs: Any, refusal: Refusal) -> None:
    with refusal:
        StreamsBuilder().stream("in").to(by_parity, outputs=outputs)


def test_outputs_of_a_fixed_topic_and_functions_of_other_arguments_are_refused() -> None:
    stream = StreamsBuilder().stream("in")
    with refused("outputs-without-function", topic="odd"):
        stream.to("odd", outputs=["odd"])
    with refused("function-parameters-wrong", arguments="key, value"):
        stream.to(lambda value: value, outputs=["odd"])


def test_a_topic_that_is_written_twice_is_refused_whatever_the_sinks_are_called() -> None:
    stream = StreamsBuilder().stream("in")
    stream.to("odd", name="first")
    with refused("topic-written-twice", topic="odd"):
        stream.to(by_parity, outputs=["odd", "even"])


def test_a_sink_has_the_name_it_is_given() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out", name="mine")
    assert [node.name for node in builder.build().nodes.values() if isinstance(node, SinkNode)] == ["mine"]


def partitioned(partitioner: Any) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").repartition(name="again", partitioner=partitioner).to("out")
    return builder.build()


def test_a_partitioner_chooses_the_task_of_each_record() -> None:
    asked = []

    def by_value(topic: str, key: Any, value: Any, partitions: int) -> int | None:
        asked.append((topic, key, value, partitions))
        return None if value == 5 else value % partitions

    replay = LocalReplay(partitioned(by_value), partitions=PARTITIONS)
    replay.run(
        [Epoch((("in", "a", 0, 0), ("in", "a", 1, 1), ("in", "b", 2, 2), ("in", "a", 5, 3), ("in", None, 1, 4)))]
    )
    # None sends a record to the partition of its key; a null key is dropped before.
    assert {sent.record.value: sent.partition for sent in replay.sent} == {0: 0, 1: 1, 2: 2, 5: home_of("a")}
    assert asked[0] == ("again-repartition", "a", 0, PARTITIONS)
    assert len(asked) == 4


def home_of(key: str) -> int:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    replay = LocalReplay(builder.build(), partitions=PARTITIONS)
    replay.run([Epoch((("in", key, 0, 0),))])
    return replay.sent[0].partition


@pytest.mark.parametrize("wrong", [PARTITIONS, -1, "1", 1.0, True, {0, 1}])
def test_a_partition_that_does_not_exist_fails_and_names_the_record(wrong: Any) -> None:
    driver = TopologyTestDriver(partitioned(lambda _topic, _key, _value, _count: wrong), partitions=PARTITIONS)
    facts = {"topic": "again-repartition", "result": repr(wrong), "key": "'k'", "partitions": 3}
    with refused("partitioner-result-invalid", **facts) as failed:
        driver.pipe("in", "k", 1, 0)
    assert "at in offset 0, partition" in str(failed.value)


def test_a_failing_partitioner_is_named_with_its_record() -> None:
    driver = TopologyTestDriver(partitioned(lambda _topic, _key, value, _count: value.missing), partitions=PARTITIONS)
    with refused("node-failed", node="again-partitioner", position="in offset 0"):
        driver.pipe("in", "k", 1, 0)


def test_a_partitioner_of_other_arguments_is_refused() -> None:
    with refused("function-parameters-wrong", arguments="topic, key, value, partitions"):
        partitioned(lambda key, _value: key)


def test_a_partitioner_is_part_of_the_fingerprint() -> None:
    with_one, without = partitioned(lambda _topic, _key, _value, _count: 0), partitioned(None)
    assert with_one.fingerprint() != without.fingerprint()
