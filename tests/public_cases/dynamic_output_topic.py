"""Orders with their amounts, those of a special kind in an output of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/dynamic-output-topic/kstreams/code/tutorial-steps/dev"
INPUT = {
    "orders": """
{"id": 5, "name": "tp", "quantity": 10000, "sku": "QUA00000123"}
{"id": 6, "name": "coffee", "quantity": 1000, "sku": "COF0003456"}
{"id": 7, "name": "hand-sanitizer", "quantity": 6000, "sku": "QUA000022334"}
{"id": 8, "name": "beer", "quantity": 4000, "sku": "BER88899222"}
""",
}
LOGS = {"orders": {"key": "order", "columns": {"order": "id"}, "timestamp": "tests.public_cases.times:first"}}
EXPECTED = {
    "completed": """
{"id": "6-COF0003456", "name": "coffee", "amount": 467.423}
{"id": "8-BER88899222", "name": "beer", "amount": 1869.692}
""",
    "special": """
{"id": "5-QUA00000123", "name": "tp", "amount": 4674.23}
{"id": "7-QUA000022334", "name": "hand-sanitizer", "amount": 2804.538}
""",
}
PRICE = 0.467423


class Completed(NamedTuple):
    id: str
    name: str
    amount: float


def completed(order_id: int, order: Any) -> Completed:
    return Completed(f"{order_id}-{order.sku}", order.name, order.quantity * PRICE)


def topic_of(_key: int, order: Completed) -> str:
    return "special" if order.id.partition("-")[2].startswith("QUA") else "completed"


def build_topology() -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream("orders").map_values(completed, with_key=True)
    orders.to(topic_of, outputs=["completed", "special"])
    return builder.build()
