"""Smallest, largest and mean price of each item, with its name."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import Max, Mean, Min, StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/dynamic-pricing"
INPUT = {
    "items": """
{"item_id": 1, "item_name": "Pikachu card"}
{"item_id": 2, "item_name": "Charizard card"}
{"item_id": 3, "item_name": "Mew card"}
""",
    "sales": """
{"item_id": 1, "price": 10.0}
{"item_id": 2, "price": 20.0}
{"item_id": 3, "price": 30.0}
{"item_id": 1, "price": 12.0}
{"item_id": 1, "price": 17.0}
{"item_id": 3, "price": 26.0}
""",
}
LOGS = {
    "items": {"key": "item_id", "timestamp": "tests.public_cases.times:first"},
    "sales": {"key": "item_id", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "SALES_STATS": """
{"S_ITEM_ID": 1, "ITEM_NAME": "Pikachu card", "PRICE_MIN": 10.0, "PRICE_MAX": 17.0, "PRICE_AVG": 13.0}
{"S_ITEM_ID": 3, "ITEM_NAME": "Mew card", "PRICE_MIN": 26.0, "PRICE_MAX": 30.0, "PRICE_AVG": 28.0}
{"S_ITEM_ID": 2, "ITEM_NAME": "Charizard card", "PRICE_MIN": 20.0, "PRICE_MAX": 20.0, "PRICE_AVG": 20.0}
""",
}
LAST_OF = "S_ITEM_ID"


class Item(NamedTuple):
    S_ITEM_ID: int
    ITEM_NAME: str


class Sale(NamedTuple):
    item_name: str
    price: float


def sold(sale: Any, item: Any) -> Sale:
    return Sale(item.item_name, sale.price)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    items = builder.table("items", store="item-rows")
    sales = builder.stream("sales").join(items, sold)
    by_item = sales.select_key(lambda item_id, sale: Item(item_id, sale.item_name), key=Item).group_by_key()
    prices = by_item.aggregate(
        {"PRICE_MIN": Min("price"), "PRICE_MAX": Max("price"), "PRICE_AVG": Mean("price")}, store="prices"
    )
    prices.to_stream().to("SALES_STATS")
    return builder.build()
