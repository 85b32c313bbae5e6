"""Transformers and fixed-key processors: results are forwarded, and the key is kept."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import (
    FixedKeyProcessor,
    ProcessorContext,
    Record,
    StreamsBuilder,
    Transformer,
    ValueTransformer,
    ValueTransformerWithKey,
)
from rewindow.errors import DataError
from tests.refusals import refused
from tests.streams.two_children import driver, sent

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_the_result_of_a_transformer_is_forwarded() -> None:
    class Doubling(Transformer):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            self.total = 0
            context.schedule("10ms")

        def transform(self, key: Any, value: Any) -> tuple[Any, Any] | None:
            self.total += value
            return (f"{key}2", value * 2) if value else None

        def punctuate(self, timestamp: int) -> tuple[Any, Any] | None:
            return ("total", self.total) if self.total > 1 else None

    one = driver(lambda stream: stream.transform(Doubling, name="t"))
    one.pipe("in", "k", 1, 12)
    one.pipe("in", "k", 0, 15)
    one.pipe("in", "k", 2, 22)
    assert [row for row in sent(one) if row[1] == "left"] == [
        ("k2", "left", 2, 12),
        ("k2", "left", 4, 22),
        ("total", "left", 3, 22),
    ]


def test_a_flat_transformer_returns_several_pairs() -> None:
    class Each(Transformer):
        def transform(self, key: Any, value: Any) -> list[tuple[Any, Any]] | None:
            return [(key, item) for item in value] if value is not None else None

    one = driver(lambda stream: stream.flat_transform(Each, name="t"))
    one.pipe("in", "k", [1, 2], 12)
    one.pipe("in", "k", None, 13)
    assert [row[2:] for row in sent(one) if row[1] == "left"] == [(1, 12), (2, 12)]


def test_a_value_transformer_keeps_the_key() -> None:
    class Naming(ValueTransformerWithKey):
        def transform(self, key: Any, value: Any) -> str | None:
            return None if value is None else f"{key}:{value}"

    class Unchanged(ValueTransformer):
        def transform(self, value: Any) -> Any:
            return value

    class Each(ValueTransformer):
        def transform(self, value: Any) -> Any:
            return None if value is None else [*value]

    one = driver(lambda s: s.transform_values(Naming, name="n").transform_values(Unchanged, name="p"))
    one.pipe("in", "k", "v", 12)
    one.pipe("in", "k", None, 13)
    assert [row for row in sent(one) if row[1] == "left"] == [("k", "left", "k:v", 12), ("k", "left", None, 13)]
    one = driver(lambda s: s.flat_transform_values(Each, name="e"))
    one.pipe("in", "k", "ab", 12)
    one.pipe("in", "k", None, 13)
    assert [row[2:] for row in sent(one) if row[1] == "left"] == [("a", 12), ("b", 12)]


def test_a_value_transformer_does_not_forward() -> None:
    class Forwarding(ValueTransformer):
        def transform(self, value: Any) -> Any:
            self.context.forward("k", value)

    class Punctuating(ValueTransformer):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            context.schedule("10ms")

        def transform(self, value: Any) -> Any:
            return value

        def punctuate(self, timestamp: int) -> Any:
            return timestamp

    for kind, words in ((Forwarding, "cannot forward"), (Punctuating, "must return None")):
        one = driver(lambda s, kind=kind: s.transform_values(kind, name="t"))
        with pytest.raises(DataError, match=words):
            one.pipe("in", "k", 1, 12)


def test_process_values_keeps_the_key() -> None:
    class KeepFunctions(FixedKeyProcessor):
        def process(self, record: Record) -> None:
            self.context.forward(record.with_value("one"))
            self.context.forward(Record(record.key, "two", 99))
            if record.value == "astray":
                self.context.forward(record.with_key("other"))

    one = driver(lambda s: s.process_values(KeepFunctions, name="v"))
    one.pipe("in", "k", None, 12)
    assert [row for row in sent(one) if row[1] == "left"] == [("k", "left", "one", 12), ("k", "left", "two", 99)]
    with refused("key-changed-in-process-values", key="'other'", handled="'k'"):
        one.pipe("in", "k", "astray", 13)


def test_grouping_after_process_values_needs_no_repartition() -> None:
    class Same(FixedKeyProcessor):
        def process(self, record: Record) -> None:
            self.context.forward(record)

    builder = StreamsBuilder()
    builder.stream("in").process_values(Same, name="v").group_by_key().count(store="n").to_stream().to("out")
    assert len(builder.build().sub_topologies()) == 1
