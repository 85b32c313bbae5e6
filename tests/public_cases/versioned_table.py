"""Old records, joined with the versions that a table had at their times."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology, versioned_store

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/versioned-ktables/kstreams/code"
INPUT = {
    "table-input-topic": """
{"key": "one", "value": "jelly", "at": 1691166221891}
{"key": "two", "value": "eggs", "at": 1691166231891}
{"key": "three", "value": "crackers", "at": 1691166241891}
{"key": "four", "value": "crumpets", "at": 1691166251891}
{"key": "five", "value": "cream", "at": 1691166261891}
{"key": "one", "value": "sardines", "at": 1691166321891}
{"key": "two", "value": "an old tire", "at": 1691166311891}
{"key": "three", "value": "fish eyes", "at": 1691166301891}
{"key": "four", "value": "moldy bread", "at": 1691166301891}
{"key": "five", "value": "lots of salt", "at": 1691166301891}
""",
    "stream-input-topic": """
{"key": "one", "value": "peanut butter and", "at": 1691166221891}
{"key": "two", "value": "ham and", "at": 1691166231891}
{"key": "three", "value": "cheese and", "at": 1691166241891}
{"key": "four", "value": "tea and", "at": 1691166251891}
{"key": "five", "value": "coffee with", "at": 1691166261891}
""",
}
LOGS = {
    "table-input-topic": {"key": "key", "value": "value", "timestamp": "at"},
    "stream-input-topic": {"key": "key", "value": "value", "timestamp": "at"},
}
EXPECTED = {
    "output-topic": """
{"key": "one", "value": "peanut butter and jelly", "_timestamp": 1691166221891}
{"key": "two", "value": "ham and eggs", "_timestamp": 1691166231891}
{"key": "three", "value": "cheese and crackers", "_timestamp": 1691166241891}
{"key": "four", "value": "tea and crumpets", "_timestamp": 1691166251891}
{"key": "five", "value": "coffee with cream", "_timestamp": 1691166261891}
""",
}


def both(left: str, right: str) -> str:
    return f"{left} {right}"


def build_topology() -> Topology:
    builder = StreamsBuilder()
    table = builder.table("table-input-topic", store=versioned_store("versions", history="10m"))
    builder.stream("stream-input-topic").join(table, both).to("output-topic")
    return builder.build()
