"""The sum of the odd numbers from 1 to 10, which have no keys."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-streams-examples/blob/7b8c252054ce5de7d2d545cc2b2c944e0e0789f6/src/test/java/io/confluent/examples/streams/SumLambdaIntegrationTest.java"
INPUT = {
    "numbers": """
{"key": null, "number": 1}
{"key": null, "number": 2}
{"key": null, "number": 3}
{"key": null, "number": 4}
{"key": null, "number": 5}
{"key": null, "number": 6}
{"key": null, "number": 7}
{"key": null, "number": 8}
{"key": null, "number": 9}
{"key": null, "number": 10}
""",
}
LOGS = {"numbers": {"key": "key", "value": "number", "timestamp": "tests.public_cases.times:first"}}
EXPECTED = {
    "sums": """
{"key": 1, "value": 1}
{"key": 1, "value": 4}
{"key": 1, "value": 9}
{"key": 1, "value": 16}
{"key": 1, "value": 25}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    odd = builder.stream("numbers").filter(lambda _, number: number % 2 != 0)
    sums = odd.select_key(lambda _key, _number: 1, key=int).group_by_key().reduce(int.__add__, store="sum", value=int)
    sums.to_stream().to("sums")
    return builder.build()
