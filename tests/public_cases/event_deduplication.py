"""Events without keys, whose ids occur again within ten minutes. The published ids are random, so letters stand for them."""

from __future__ import annotations

from rewindow import Processor, ProcessorContext, Record, StreamsBuilder, Topology, window_store

SOURCE = "https://github.com/confluentinc/kafka-streams-examples/blob/7b8c252054ce5de7d2d545cc2b2c944e0e0789f6/src/test/java/io/confluent/examples/streams/EventDeduplicationLambdaIntegrationTest.java"
INPUT = {
    "events": """
{"key": null, "id": "a"}
{"key": null, "id": "b"}
{"key": null, "id": "a"}
{"key": null, "id": "a"}
{"key": null, "id": "b"}
{"key": null, "id": "c"}
{"key": null, "id": "c"}
{"key": null, "id": "a"}
{"key": null, "id": "b"}
""",
}
LOGS = {"events": {"key": "key", "value": "id", "timestamp": "tests.public_cases.times:first"}}
EXPECTED = {
    "deduplicated": """
{"id": "a"}
{"id": "b"}
{"id": "c"}
""",
}


AROUND_MS = 5 * 60_000


class Deduplicate(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.ids = context.store("ids")

    def process(self, record: Record) -> None:
        event, time_ms = record.value, record.timestamp
        if not list(self.ids.fetch_range(event, time_ms - AROUND_MS, time_ms + AROUND_MS)):
            self.context.forward(record)
        self.ids.put(event, time_ms, time_ms)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.add_store(window_store("ids", size="10m", retention="10m", key=str, value=int))
    events = builder.stream("events")
    events.process(Deduplicate, name="new", stores=["ids"], key=events.key, value=events.value).to("deduplicated")
    return builder.build()
