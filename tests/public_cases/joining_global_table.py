"""Orders with the names of their products, from a global table."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/tutorials/tree/0cadb2292636b7e71323b9b39b49f86509196f77/joining-stream-global-ktable/kstreams"
INPUT = {
    "products": """
{"productId": "1", "productName": "sneakers"}
{"productId": "2", "productName": "basketball"}
{"productId": "3", "productName": "baseball"}
{"productId": "4", "productName": "sweatshirt"}
{"productId": "5", "productName": "tv"}
""",
    "orders": """
{"orderId": "1", "productId": "1"}
{"orderId": "2", "productId": "3"}
{"orderId": "3", "productId": "2"}
{"orderId": "4", "productId": "5"}
{"orderId": "5", "productId": "2"}
{"orderId": "6", "productId": "1"}
{"orderId": "7", "productId": "5"}
{"orderId": "8", "productId": "4"}
{"orderId": "9", "productId": "3"}
""",
}
LOGS = {
    "products": {"key": "productId", "timestamp": "tests.public_cases.times:first"},
    "orders": {"key": "orderId", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "enriched-orders": """
{"orderId": "1", "productId": "1", "productName": "sneakers"}
{"orderId": "2", "productId": "3", "productName": "baseball"}
{"orderId": "3", "productId": "2", "productName": "basketball"}
{"orderId": "4", "productId": "5", "productName": "tv"}
{"orderId": "5", "productId": "2", "productName": "basketball"}
{"orderId": "6", "productId": "1", "productName": "sneakers"}
{"orderId": "7", "productId": "5", "productName": "tv"}
{"orderId": "8", "productId": "4", "productName": "sweatshirt"}
{"orderId": "9", "productId": "3", "productName": "baseball"}
""",
}


class EnrichedOrder(NamedTuple):
    productId: str
    productName: str


def enriched(order: Any, product: Any) -> EnrichedOrder:
    return EnrichedOrder(order.productId, product.productName)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    products, orders = builder.global_table("products", store="products"), builder.stream("orders")
    orders.join(products, lambda _, order: order.productId, enriched).to("enriched-orders")
    return builder.build()
