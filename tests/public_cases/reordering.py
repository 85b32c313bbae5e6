"""Events in the order of their times, every ten hours of the times at which they arrived."""

from __future__ import annotations

from typing import NamedTuple

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder, Topology, key_value_store

SOURCE = "https://github.com/confluentinc/tutorials/tree/0cadb2292636b7e71323b9b39b49f86509196f77/reordering-streams/kstreams/src/test/java/io/confluent/developer"
INPUT = {
    "input": """
{"name": "A", "eventTime": 1635980400000, "at": 1636070460000}
{"name": "B", "eventTime": 1635987900000, "at": 1636070520000}
{"name": "C", "eventTime": 1635988200000, "at": 1636070580000}
{"name": "D", "eventTime": 1635990000000, "at": 1636070640000}
{"name": "E", "eventTime": 1635992700000, "at": 1636070700000}
{"name": "F", "eventTime": 1635988800000, "at": 1636070760000}
{"name": "G", "eventTime": 1635993900000, "at": 1636070820000}
{"name": "H", "eventTime": 1635991200000, "at": 1636070880000}
{"name": "I", "eventTime": 1635994800000, "at": 1636070940000}
{"name": "J", "eventTime": 1635993600000, "at": 1636071000000}
{"name": "K", "eventTime": 1635992400000, "at": 1636466400000}
{"name": "L", "eventTime": 1636070400000, "at": 1636502400000}
""",
}
LOGS = {
    "input": {"key": "name", "timestamp": "at"},
}
EXPECTED = {
    "output": """
{"name": "A", "eventTime": 1635980400000}
{"name": "B", "eventTime": 1635987900000}
{"name": "C", "eventTime": 1635988200000}
{"name": "F", "eventTime": 1635988800000}
{"name": "D", "eventTime": 1635990000000}
{"name": "H", "eventTime": 1635991200000}
{"name": "K", "eventTime": 1635992400000}
{"name": "E", "eventTime": 1635992700000}
{"name": "J", "eventTime": 1635993600000}
{"name": "G", "eventTime": 1635993900000}
{"name": "I", "eventTime": 1635994800000}
{"name": "L", "eventTime": 1636070400000}
""",
}


class Event(NamedTuple):
    eventTime: int


class Reorder(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.waiting = context.store("waiting")
        context.schedule("10h", PunctuationType.STREAM_TIME, self.forward, name="forward", start_time="0s")

    def process(self, record: Record) -> None:
        self.waiting.put_if_absent(record.value.eventTime, record.key)

    def forward(self, now_ms: int) -> None:
        for time_ms, name in list(self.waiting.all()):
            self.context.forward(Record(name, Event(time_ms), now_ms))
            self.waiting.delete(time_ms)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    store = key_value_store("waiting", key=int, value=str)
    events = builder.stream("input")
    events.process(Reorder, name="reorder", stores=[store], key=events.key, value=Event).to("output")
    return builder.build()
