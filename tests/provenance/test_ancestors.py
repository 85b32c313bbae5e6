"""A replay runs only the nodes that lead to the output, and gives the same rows."""

from __future__ import annotations

from rewindow import Processor, Record, StreamsBuilder, TimeWindows, To, Topology, key_value_store
from rewindow.testing import TopologyTestDriver
from tests.provenance.in_memory import SEMANTICS, Scene

INPUTS = [
    ("in", "a", "1", 10),
    ("in", "b", "2", 5_000_000),
    ("other", "a", "3", 20),
    ("in", "a", "4", 30),
    ("in", "a", "5", 6_000_000),
]


class _Routes(Processor):
    """Forwards to both of its children by name."""

    def process(self, record: Record) -> None:
        self.context.forward(record, to=To.child("sums"))
        self.context.forward(record, to=To.child("unused"))


class _Writes(Processor):
    """Fills a store that another node reads, and sends nothing."""

    def process(self, record: Record) -> None:
        self.context.store("shared").put(record.key, record.value)


class _Reads(Processor):
    """Sends what the store has."""

    def process(self, record: Record) -> None:
        found = self.context.store("shared").get(record.key)
        self.context.forward(record.with_value([record.value, found]))


class _Fails(Processor):
    """Takes no record."""

    def process(self, record: Record) -> None:
        raise AssertionError(record)


def topology() -> Topology:
    built = Topology()
    built.add_source("source", "in").add_source("others", "other")
    built.add_store(key_value_store("shared"))
    built.add_processor("routes", _Routes, "source")
    built.add_processor("writes", _Writes, "source", "others", stores=("shared",))
    built.add_processor("sums", _Reads, "routes", stores=("shared",))
    built.add_processor("unused", Processor, "routes")
    built.add_processor("nothing", Processor, "writes")
    built.add_sink("out", "out", "sums").add_sink("else", "else", "unused").add_sink("none", "none", "nothing")
    return built


def driven(topology: Topology) -> list[Record]:
    driver = TopologyTestDriver(topology, semantics=SEMANTICS)
    for topic, key, value, at in sorted(INPUTS, key=lambda one: one[3]):
        driver.pipe(topic, key, value, at)
    driver.finish()
    return driver.read("out")


def test_nodes_that_share_a_store_or_are_named_by_a_processor_stay() -> None:
    made = topology()
    scene = Scene(made, [sorted(INPUTS, key=lambda one: one[3])])
    assert {node.name for part, _ in scene.traced.tasks() for node in part.nodes} == {
        *("source", "others", "routes", "writes", "sums", "out"),
    }
    sent, _ = scene.rows()
    assert [(one.record.key, one.record.value) for one in sent] == [(one.key, one.value) for one in driven(made)]


def test_nodes_of_other_outputs_are_not_run_and_drop_nothing() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    for name, size in (("out", "1h"), ("tens", "10s")):
        stream.group_by_key().windowed_by(TimeWindows.of(size, grace="0s")).count(store=name).to_stream().to(name)
    built = builder.build()
    built.add_processor("fails", _Fails, next(name for name, node in built.nodes.items() if not node.parents))
    scene = Scene(built, [[one for one in INPUTS if one[0] == "in"]])
    sent, drops = scene.rows()
    assert len(sent) == 3
    assert {drop.dropped.node for drop in drops} == {"out"}
