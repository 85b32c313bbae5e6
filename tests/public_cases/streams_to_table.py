"""A stream as it is, and as a table."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/tutorials/tree/0cadb2292636b7e71323b9b39b49f86509196f77/streams-to-table/kstreams/src/test/java/io/confluent/developer"
INPUT = {
    "input-topic": """
{"key": "1", "value": "one"}
{"key": "2", "value": "two"}
{"key": "3", "value": "three"}
""",
}
LOGS = {
    "input-topic": {"key": "key", "value": "value", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "streams-output-topic": """
{"key": "1", "value": "one"}
{"key": "2", "value": "two"}
{"key": "3", "value": "three"}
""",
    "table-output-topic": """
{"key": "1", "value": "one"}
{"key": "2", "value": "two"}
{"key": "3", "value": "three"}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("input-topic")
    words.to("streams-output-topic")
    words.to_table(store="words").to_stream().to("table-output-topic")
    return builder.build()
