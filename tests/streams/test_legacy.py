"""Kafka's signatures from before KIP-138 and KIP-251: they work in legacy processors and name their replacements."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from rewindow import (
    LegacyProcessor,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    To,
    Transformer,
)
from rewindow.errors import DataError
from rewindow.testing import TopologyTestDriver
from tests.refusals import refused
from tests.streams.two_children import Made, driver, sent

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def process(kind: type[Processor]) -> Made:
    return lambda stream: stream.process(kind, name="p")


with pytest.warns(DeprecationWarning, match="LegacyProcessor is deprecated"):

    class Counting(LegacyProcessor):
        """Counts records in a field, for one epoch."""

        def init(self, context: ProcessorContext) -> None:
            self.context = context
            self.records = 0
            context.schedule("10ms")

        def process(self, key: Any, value: Any) -> None:
            self.records += 1

        def punctuate(self, timestamp: int) -> None:
            self.context.forward("records", self.records, "left")
            self.context.forward("records", self.records, To.child("left").with_timestamp(timestamp + 1))


def test_schedule_with_an_interval_alone_calls_punctuate_on_stream_time() -> None:
    one = driver(process(Counting))
    for at in (12, 15, 22, 47, 52):
        one.pipe("in", "k", None, at)
    assert sent(one) == [
        ("records", "left", number, at + later)
        for number, at in ((1, 12), (3, 22), (4, 47), (5, 52))
        for later in (0, 1)
    ]


def test_it_is_the_schedule_that_kip_138_writes() -> None:
    class Today(Counting):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            self.records = 0
            context.schedule("10ms", PunctuationType.STREAM_TIME, self.punctuate)

    results = []
    for kind in (Counting, Today):
        one = driver(process(kind))
        for at in (12, 15, 22, 47):
            one.pipe("in", "k", None, at)
            one.cut()
        results.append(sent(one))
    assert results[0] == results[1] != []


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda context: context.forward("k", "v"), r"write forward\(Record\(key, value\)"),
        (lambda context: context.forward("k", "v", "left"), r"derive the class from LegacyProcessor"),
        (lambda context: context.schedule("10ms"), "schedule takes an interval, a PunctuationType and a callback"),
    ],
)
def test_an_ordinary_processor_rejects_the_old_signatures(action: Any, words: str) -> None:
    class Today(Processor):
        def process(self, record: Record) -> None:
            action(self.context)

    with pytest.raises(DataError, match=rf"node 'p' failed at in offset 0, .*{words}"):
        driver(process(Today)).pipe("in", "k", None, 12)


def test_a_legacy_processor_may_use_the_old_signatures_in_punctuations() -> None:
    class Half(LegacyProcessor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            context.schedule("10ms")

        def process(self, key: Any, value: Any) -> None:
            self.context.forward(key, "by name", "right")
            self.context.forward(key, "by index", 0)

        def punctuate(self, timestamp: int) -> None:
            self.context.forward("fired", timestamp, To.child("left").with_timestamp(3))

    one = driver(process(Half))
    one.pipe("in", "k", None, 12)
    assert sent(one) == [("k", "right", "by name", 12), ("k", "left", "by index", 12), ("fired", "left", 12, 3)]


def test_forward_to_all_by_name_by_number_and_by_to() -> None:
    class Forwarding(LegacyProcessor):
        def process(self, key: Any, value: Any) -> None:
            self.context.forward(key, "all")
            self.context.forward(key, "first", 0)
            self.context.forward(key, "second", 1)
            self.context.forward(key, "named", "right")
            self.context.forward(key, "to", To.child("left").with_timestamp(3))
            self.context.forward(Record(key, "today", 4), to=To.child("left"))

    one = driver(process(Forwarding))
    one.pipe("in", "k", None, 10)
    assert sent(one) == [
        ("k", "left", "all", 10),
        ("k", "right", "all", 10),
        ("k", "left", "first", 10),
        ("k", "right", "second", 10),
        ("k", "right", "named", 10),
        ("k", "left", "to", 3),
        ("k", "left", "today", 4),
    ]


@pytest.mark.parametrize("child", [2, -1, "middle", None])
def test_an_unknown_child_is_rejected(child: Any) -> None:
    class Astray(LegacyProcessor):
        def process(self, key: Any, value: Any) -> None:
            self.context.forward(key, value, child)

    one = driver(process(Astray))
    with pytest.raises(DataError, match=r"p has no child .*\(children: left, right"):
        one.pipe("in", "k", None, 10)


def test_a_forwarded_key_and_value_keep_the_record_s_headers() -> None:
    headers = (("trace", b"1"),)
    seen: list[Any] = []

    class Heading(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(record._replace(headers=headers))

    class Old(LegacyProcessor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            context.schedule("10ms")

        def process(self, key: Any, value: Any) -> None:
            self.context.forward(key, value)

        def punctuate(self, timestamp: int) -> None:
            self.context.forward("punctuated", None)

    class Last(Processor):
        def process(self, record: Record) -> None:
            seen.append((record.key, record.headers))

    builder = StreamsBuilder()
    builder.stream("in").process(Heading, name="h").process(Old, name="o").process(Last, name="l").to("out")
    TopologyTestDriver(builder.build()).pipe("in", "k", None, 10)
    assert seen == [("k", headers), ("punctuated", ())]


def test_misuse_is_rejected_with_the_fix() -> None:
    class NoPair(Transformer):
        def transform(self, key: Any, value: Any) -> Any:
            return value

    one = driver(lambda s: s.transform(NoPair, name="t"))
    with refused("transformer-result-not-pair", method="transform"):
        one.pipe("in", "k", 1, 12)

    class Half(LegacyProcessor):
        def init(self, context: ProcessorContext) -> None:
            context.schedule("10ms", PunctuationType.STREAM_TIME)

    with refused("schedule-without-callback"):
        driver(process(Half)).pipe("in", "k", 1, 12)
    with refused("supplier-result-wrong-class", type="Counting", expected="Transformer"):
        driver(lambda s: s.transform(Counting, name="t")).pipe("in", "k", 1, 12)


def test_each_old_signature_warns_at_the_caller_s_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")

        class Old(LegacyProcessor):
            def init(self, context: ProcessorContext) -> None:
                self.context = context
                context.schedule("10ms")

            def process(self, key: Any, value: Any) -> None:
                self.context.forward(key, value)

        one = driver(process(Old))
        for at in range(5):
            one.pipe("in", "k", None, at)
        driver(lambda s: s.transform(Transformer, name="t"))
        driver(lambda s: s.branch(lambda _k, _v: True)[0])
    assert [str(w.message).split(" is ")[0] for w in caught if w.category is DeprecationWarning] == [
        "LegacyProcessor",
        "schedule(interval)",
        "forward(key, value)",
        "transform",
        "branch(*predicates)",
    ]
    assert {w.filename for w in caught if w.category is DeprecationWarning} == {__file__}
