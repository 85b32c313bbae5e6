"""How many tickets of each film have been sold so far."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology
from tests.public_cases import aggregating_sum

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/aggregating-count/kstreams/code/tutorial-steps/dev"
INPUT, LOGS = aggregating_sum.INPUT, aggregating_sum.LOGS
EXPECTED = {
    "sold": """
{"title": "Die Hard", "value": "1 tickets sold"}
{"title": "Die Hard", "value": "2 tickets sold"}
{"title": "The Godfather", "value": "1 tickets sold"}
{"title": "Die Hard", "value": "3 tickets sold"}
{"title": "The Godfather", "value": "2 tickets sold"}
{"title": "The Big Lebowski", "value": "1 tickets sold"}
{"title": "The Big Lebowski", "value": "2 tickets sold"}
{"title": "The Godfather", "value": "3 tickets sold"}
{"title": "The Godfather", "value": "4 tickets sold"}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("ticket-sales")
        .group_by_key()
        .count(store="counts")
        .to_stream()
        .map_values(lambda sold: f"{sold} tickets sold", value=str)
        .to("sold")
    )
    return builder.build()
