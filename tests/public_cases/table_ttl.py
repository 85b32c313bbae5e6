"""A table whose rows are deleted ten seconds of stream time after their last update."""

from __future__ import annotations

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder, Topology, key_value_store

SOURCE = "https://github.com/confluentinc/tutorials/tree/0cadb2292636b7e71323b9b39b49f86509196f77/schedule-ktable-ttl/kstreams/src/test/java/io/confluent/developer"
INPUT = [
    {
        "input-topic-for-table": """
{"key": "alice", "value": "a", "at": 5}
{"key": "bobby", "value": "b", "at": 10}
""",
        "input-topic-for-stream": """
{"key": "alice", "value": "11", "at": 10}
{"key": "bobby", "value": "21", "at": 15}
{"key": "alice", "value": "12", "at": 30}
""",
    },
    {
        "input-topic-for-table": """
{"key": "freddy", "value": "f", "at": 65000}
""",
    },
    {
        "input-topic-for-stream": """
{"key": "alice", "value": "13", "at": 70006}
{"key": "bobby", "value": "22", "at": 70016}
""",
    },
]
LOGS = {
    "input-topic-for-table": {"key": "key", "value": "value", "timestamp": "at"},
    "input-topic-for-stream": {"key": "key", "value": "value", "timestamp": "at"},
}
EXPECTED = {
    "output-topic": """
{"key": "alice", "value": "11 a"}
{"key": "bobby", "value": "21 b"}
{"key": "alice", "value": "12 a"}
{"key": "alice", "value": "13"}
{"key": "bobby", "value": "22"}
""",
}


class Expire(Processor):
    """Forward updates, and a deletion for each key whose last update is older than ten seconds."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.updated = context.store("updated")
        context.schedule("5s", PunctuationType.STREAM_TIME, self.expire, name="expire", start_time="0s")

    def process(self, record: Record) -> None:
        self.updated.put(record.key, self.context.stream_time_ms)
        self.context.forward(record)

    def expire(self, now_ms: int) -> None:
        for key, updated_ms in list(self.updated.all()):
            if updated_ms < now_ms - 10_000:
                self.updated.delete(key)
                self.context.forward(Record(key, None, now_ms))


def both(left: str, right: str | None) -> str:
    return left if right is None else f"{left} {right}"


def build_topology() -> Topology:
    builder = StreamsBuilder()
    store = key_value_store("updated", key=str, value=int)
    rows = builder.stream("input-topic-for-table")
    living = rows.process(Expire, name="expire", stores=[store], key=rows.key, value=rows.value)
    table = living.to_table(store="living")
    builder.stream("input-topic-for-stream").left_join(table, both).to("output-topic")
    return builder.build()
