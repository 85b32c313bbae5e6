"""New posts of each user."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-streams-examples/blob/7b8c252054ce5de7d2d545cc2b2c944e0e0789f6/src/test/java/io/confluent/examples/streams/WikipediaFeedAvroLambdaExampleTest.java"
INPUT = {
    "WikipediaFeed": """
{"user": "donna", "is_new": true, "content": "first post"}
{"user": "donna", "is_new": true, "content": "second post"}
{"user": "donna", "is_new": true, "content": "third post"}
{"user": "becca", "is_new": true, "content": "first post"}
{"user": "becca", "is_new": true, "content": "second post"}
{"user": "john", "is_new": true, "content": "first post"}
""",
}
LOGS = {"WikipediaFeed": {"key": "user", "timestamp": "tests.public_cases.times:first"}}
EXPECTED = {
    "WikipediaStats": """
{"user": "donna", "value": 3}
{"user": "becca", "value": 2}
{"user": "john", "value": 1}
""",
}
LAST_OF = "user"


def build_topology() -> Topology:
    builder = StreamsBuilder()
    posts = builder.stream("WikipediaFeed").where("is_new").group_by_key().count(store="posts")
    posts.to_stream().to("WikipediaStats")
    return builder.build()
