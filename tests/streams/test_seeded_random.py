"""Deterministic random numbers and ids. Their values are pinned, because the results of a replay depend on them."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pytest

from rewindow import Processor, ProcessorContext, Record, StreamsBuilder
from rewindow.errors import DataError
from rewindow.streams.record_context import SeededRandom
from rewindow.testing import TopologyTestDriver
from tests.refusals import refused


def test_the_numbers_are_pinned() -> None:
    random = SeededRandom("orders/0/5/enrich/0")
    assert [random.getrandbits(8) for _ in range(4)] == [85, 74, 232, 124]
    assert random.random() == 0.7998306409679496
    assert [random.randint(1, 6) for _ in range(6)] == [3, 2, 4, 1, 5, 4]
    items = list(range(8))
    random.shuffle(items)
    assert items == [4, 3, 7, 2, 1, 0, 6, 5]


def test_the_numbers_are_uniformly_distributed() -> None:
    random = SeededRandom("a seed")
    drawn = Counter(random.randbelow(10) for _ in range(10_000))
    assert set(drawn) == set(range(10))
    assert all(850 < count < 1150 for count in drawn.values())
    assert all(0 <= random.random() < 1 for _ in range(1000))
    assert all(2 <= random.uniform(2, 3) <= 3 for _ in range(100))
    assert sorted(random.sample(range(20), 20)) == list(range(20))
    assert random.choice("x") == "x"
    assert random.getrandbits(1000).bit_length() > 900


@pytest.mark.parametrize(
    "draw", [lambda c: c.randbelow(0), lambda c: c.choice([]), lambda c: c.sample([1], 2), lambda c: c.getrandbits(-1)]
)
def test_an_impossible_draw_is_rejected(draw: Any) -> None:
    with pytest.raises(DataError):
        draw(SeededRandom("a seed"))


class Drawing(Processor):
    def process(self, record: Record) -> None:
        context = self.context
        self.context.forward(record.with_value((context.uuid(), context.uuid(), context.random().randint(0, 10**9))))


def drawn(node: str = "draw") -> list[Any]:
    builder = StreamsBuilder()
    builder.stream("in").process(Drawing, name=node).to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "k", 1, 10)
    driver.pipe("in", "k", 1, 10)
    return [record.value for record in driver.read("out")]


def test_a_call_id_depends_on_record_node_and_count() -> None:
    found = drawn()
    assert found == drawn(), "a second draw gives the same values"
    ids = [one for first, second, _ in [*found, *drawn("other")] for one in (first, second)]
    assert len(ids) == len(dict.fromkeys(ids)) == 8
    for text in ids:
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 8, uuid.RFC_4122)


def test_init_and_close_have_no_call_ids() -> None:
    class Early(Processor):
        def init(self, context: ProcessorContext) -> None:
            context.uuid()

    builder = StreamsBuilder()
    builder.stream("in").process(Early, name="early").to("out")
    with refused("random-number-without-record", node="early"):
        TopologyTestDriver(builder.build())
