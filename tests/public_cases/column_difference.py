"""What a customer spent more than before."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/column-difference/ksql/code"
INPUT = {
    "customer_purchases": """
{"id": "1", "previous_purchase": 8000.54, "current_purchase": 5004.89, "txn_ts": "2020-12-04 02:35:43", "first_name": "Art", "last_name": "Vandeley"}
{"id": "2", "previous_purchase": 500.33, "current_purchase": 1000.89, "txn_ts": "2020-12-04 02:35:44", "first_name": "Nick", "last_name": "Fury"}
{"id": "3", "previous_purchase": 333.18, "current_purchase": 804.89, "txn_ts": "2020-12-04 02:35:45", "first_name": "Natasha", "last_name": "Romanov"}
{"id": "4", "previous_purchase": 72848.11, "current_purchase": 60040.89, "txn_ts": "2020-12-04 02:35:46", "first_name": "Wanda", "last_name": "Maximoff"}
""",
}
LOGS = {
    "customer_purchases": {"key": "id", "timestamp": "txn_ts"},
}
EXPECTED = {
    "PURCHASE_HISTORY_STREAM": """
{"FIRST_NAME": "Art", "LAST_NAME": "Vandeley", "PURCHASE_DIFF": -2995.6499999999996}
{"FIRST_NAME": "Nick", "LAST_NAME": "Fury", "PURCHASE_DIFF": 500.56}
{"FIRST_NAME": "Natasha", "LAST_NAME": "Romanov", "PURCHASE_DIFF": 471.71}
{"FIRST_NAME": "Wanda", "LAST_NAME": "Maximoff", "PURCHASE_DIFF": -12807.220000000001}
""",
}


class Difference(NamedTuple):
    FIRST_NAME: str
    LAST_NAME: str
    PURCHASE_DIFF: float


def difference(purchase: Any) -> Difference:
    return Difference(purchase.first_name, purchase.last_name, purchase.current_purchase - purchase.previous_purchase)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("customer_purchases").map_values(difference).to("PURCHASE_HISTORY_STREAM")
    return builder.build()
