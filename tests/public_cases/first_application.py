"""Texts in upper case."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/tutorials/tree/0cadb2292636b7e71323b9b39b49f86509196f77/creating-first-apache-kafka-streams-application/kstreams/src/test/java/io/confluent/developer"
INPUT = {
    "input-topic": """
{"key": null, "value": "foo"}
{"key": null, "value": "bar"}
""",
}
LOGS = {
    "input-topic": {"key": "key", "value": "value", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "output-topic": """
{"value": "FOO"}
{"value": "BAR"}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("input-topic").map_values(str.upper, value=str).to("output-topic")
    return builder.build()
