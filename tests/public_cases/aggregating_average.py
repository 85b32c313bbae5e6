"""The mean rating of each film so far."""

from __future__ import annotations

from rewindow import Mean, StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/aggregating-average/kstreams/code/tutorial-steps/dev"
INPUT = {
    "ratings": """
{"movie_id": 362, "rating": 10}
{"movie_id": 362, "rating": 8}
""",
}
LOGS = {
    "ratings": {"key": "movie_id", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "averages": """
{"movie_id": 362, "value": 10.0}
{"movie_id": 362, "value": 9.0}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    ratings = builder.stream("ratings").group_by_key()
    ratings.aggregate(Mean("rating"), store="average-ratings").to_stream().to("averages")
    return builder.build()
