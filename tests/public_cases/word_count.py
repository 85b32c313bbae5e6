"""Words of lines, counted."""

from __future__ import annotations

import re

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-streams-examples/blob/7b8c252054ce5de7d2d545cc2b2c944e0e0789f6/src/test/java/io/confluent/examples/streams/WordCountLambdaExampleTest.java"
INPUT = {
    "lines": """
{"key": null, "line": "Hello Kafka Streams", "ts": 1}
{"key": null, "line": "All streams lead to Kafka", "ts": 101}
{"key": null, "line": "Join Kafka Summit", "ts": 201}
{"key": null, "line": "И теперь пошли русские слова", "ts": 301}
""",
}
LOGS = {"lines": {"key": "key", "value": "line", "timestamp": "ts"}}
EXPECTED = {
    "counts": """
{"key": "hello", "value": 1}
{"key": "all", "value": 1}
{"key": "streams", "value": 2}
{"key": "lead", "value": 1}
{"key": "to", "value": 1}
{"key": "join", "value": 1}
{"key": "kafka", "value": 3}
{"key": "summit", "value": 1}
{"key": "и", "value": 1}
{"key": "теперь", "value": 1}
{"key": "пошли", "value": 1}
{"key": "русские", "value": 1}
{"key": "слова", "value": 1}
""",
}
LAST_OF = "key"


def words(line: str) -> list[str]:
    return re.findall(r"\w+", line.lower())


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("lines")
        .flat_map_values(words, value=str)
        .group_by(lambda _, word: word, key=str)
        .count(store="words")
        .to_stream()
        .to("counts")
    )
    return builder.build()
