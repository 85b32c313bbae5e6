"""Counts by first digit, in a named store that stays the same when a filter is added before it."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/naming-changelog-repartition-topics/kstreams/code/tutorial-steps/dev"
INPUT = {
    "input-topic": """
{"key": null, "value": "2foo"}
{"key": null, "value": "2bar"}
{"key": null, "value": "2baz"}
{"key": null, "value": "2foo"}
{"key": null, "value": "2bar"}
{"key": null, "value": "2baz"}
""",
}
LOGS = {
    "input-topic": {"key": "key", "value": "value", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "output-topic": """
{"key": "2", "value": "1"}
{"key": "2", "value": "2"}
{"key": "2", "value": "3"}
{"key": "2", "value": "4"}
{"key": "2", "value": "5"}
{"key": "2", "value": "6"}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    digits = builder.stream("input-topic").select_key(lambda _, text: int(text[0]), key=int)
    filtered = digits.filter(lambda digit, _: digit != 100)
    counts = filtered.group_by_key().count(store="the-counting-store").to_stream()
    counts.map(lambda digit, count: (str(digit), str(count)), key=str, value=str).to("output-topic")
    return builder.build()
