"""Users of each region; a user moves when a later record has another region."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-streams-examples/blob/7b8c252054ce5de7d2d545cc2b2c944e0e0789f6/src/test/java/io/confluent/examples/streams/UserCountsPerRegionLambdaIntegrationTest.java"
INPUT = {
    "user-regions": """
{"user": "alice", "region": "asia"}
{"user": "bob", "region": "europe"}
{"user": "alice", "region": "europe"}
{"user": "bob", "region": "asia"}
""",
}
LOGS = {"user-regions": {"key": "user", "value": "region", "timestamp": "tests.public_cases.times:first"}}
EXPECTED = {
    "users-per-region": """
{"key": "europe", "value": 1}
{"key": "asia", "value": 1}
""",
}
LAST_OF = "key"


def build_topology() -> Topology:
    builder = StreamsBuilder()
    users = builder.table("user-regions", store="regions")
    counts = users.group_by(lambda _, region: (region, region), key=str, value=str).count(store="users")
    counts.to_stream().to("users-per-region")
    return builder.build()
