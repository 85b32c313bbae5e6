"""What the tickets of each film have sold for so far."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/aggregating-sum/kstreams/code/tutorial-steps/dev"
INPUT = {
    "ticket-sales": """
{"title": "Die Hard", "sale_ts": "2019-07-18T10:00:00Z", "ticket_total_value": 12}
{"title": "Die Hard", "sale_ts": "2019-07-18T10:01:00Z", "ticket_total_value": 12}
{"title": "The Godfather", "sale_ts": "2019-07-18T10:01:31Z", "ticket_total_value": 12}
{"title": "Die Hard", "sale_ts": "2019-07-18T10:01:36Z", "ticket_total_value": 24}
{"title": "The Godfather", "sale_ts": "2019-07-18T10:02:00Z", "ticket_total_value": 18}
{"title": "The Big Lebowski", "sale_ts": "2019-07-18T11:03:21Z", "ticket_total_value": 12}
{"title": "The Big Lebowski", "sale_ts": "2019-07-18T11:03:50Z", "ticket_total_value": 12}
{"title": "The Godfather", "sale_ts": "2019-07-18T11:40:00Z", "ticket_total_value": 36}
{"title": "The Godfather", "sale_ts": "2019-07-18T11:40:09Z", "ticket_total_value": 18}
""",
}
LOGS = {
    "ticket-sales": {"key": "title", "timestamp": "sale_ts"},
}
EXPECTED = {
    "sold": """
{"title": "Die Hard", "value": "12 total sales"}
{"title": "Die Hard", "value": "24 total sales"}
{"title": "The Godfather", "value": "12 total sales"}
{"title": "Die Hard", "value": "48 total sales"}
{"title": "The Godfather", "value": "30 total sales"}
{"title": "The Big Lebowski", "value": "12 total sales"}
{"title": "The Big Lebowski", "value": "24 total sales"}
{"title": "The Godfather", "value": "66 total sales"}
{"title": "The Godfather", "value": "84 total sales"}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("ticket-sales")
        .map_values(lambda sale: sale.ticket_total_value, value=int)
        .group_by_key()
        .reduce(lambda one, other: one + other, store="sums")
        .to_stream()
        .map_values(lambda total: f"{total} total sales", value=str)
        .to("sold")
    )
    return builder.build()
