"""Purchases without personal data, and with masked personal data."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/masking-data/ksql/code"
INPUT = {
    "purchases": """
{"order_id": 1, "customer_name": "Britney", "date_of_birth": "02/29/2000", "product": "Heart Rate Monitor", "order_total_usd": 119.93, "town": "Denver", "country": "USA"}
{"order_id": 2, "customer_name": "Michael", "date_of_birth": "06/08/1981", "product": "Foam Roller", "order_total_usd": 34.95, "town": "Los Angeles", "country": "USA"}
{"order_id": 3, "customer_name": "Kimmy", "date_of_birth": "05/19/1978", "product": "Hydration Belt", "order_total_usd": 50.0, "town": "Tuscan", "country": "USA"}
{"order_id": 4, "customer_name": "Samantha", "date_of_birth": "08/05/1983", "product": "Wireless Headphones", "order_total_usd": 175.93, "town": "Tulsa", "country": "USA"}
{"order_id": 5, "customer_name": "Jonathon", "date_of_birth": "01/31/1981", "product": "Comfort Insoles", "order_total_usd": 49.95, "town": "Portland", "country": "USA"}
{"order_id": 6, "customer_name": "Raymond", "date_of_birth": "07/29/2001", "product": "Running Beanie", "order_total_usd": 13.73, "town": "Omaha", "country": "USA"}
""",
}
LOGS = {
    "purchases": {"key": "order_id", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "purchases_pii_removed": """
{"ORDER_ID": 1, "PRODUCT": "Heart Rate Monitor", "ORDER_TOTAL_USD": 119.93, "TOWN": "Denver", "COUNTRY": "USA"}
{"ORDER_ID": 2, "PRODUCT": "Foam Roller", "ORDER_TOTAL_USD": 34.95, "TOWN": "Los Angeles", "COUNTRY": "USA"}
{"ORDER_ID": 3, "PRODUCT": "Hydration Belt", "ORDER_TOTAL_USD": 50.0, "TOWN": "Tuscan", "COUNTRY": "USA"}
{"ORDER_ID": 4, "PRODUCT": "Wireless Headphones", "ORDER_TOTAL_USD": 175.93, "TOWN": "Tulsa", "COUNTRY": "USA"}
{"ORDER_ID": 5, "PRODUCT": "Comfort Insoles", "ORDER_TOTAL_USD": 49.95, "TOWN": "Portland", "COUNTRY": "USA"}
{"ORDER_ID": 6, "PRODUCT": "Running Beanie", "ORDER_TOTAL_USD": 13.73, "TOWN": "Omaha", "COUNTRY": "USA"}
""",
    "purchases_pii_obfuscated": """
{"ORDER_ID": 1, "CUSTOMER_NAME": "Xxxxxxx", "DATE_OF_BIRTH": "nn-nn-nnnn", "PRODUCT": "Heart Rate Monitor", "ORDER_TOTAL_USD": 119.93, "TOWN": "Denver", "COUNTRY": "USA"}
{"ORDER_ID": 2, "CUSTOMER_NAME": "Xxxxxxx", "DATE_OF_BIRTH": "nn-nn-nnnn", "PRODUCT": "Foam Roller", "ORDER_TOTAL_USD": 34.95, "TOWN": "Los Angeles", "COUNTRY": "USA"}
{"ORDER_ID": 3, "CUSTOMER_NAME": "Xxxxx", "DATE_OF_BIRTH": "nn-nn-nnnn", "PRODUCT": "Hydration Belt", "ORDER_TOTAL_USD": 50.0, "TOWN": "Tuscan", "COUNTRY": "USA"}
{"ORDER_ID": 4, "CUSTOMER_NAME": "Xxxxxxxx", "DATE_OF_BIRTH": "nn-nn-nnnn", "PRODUCT": "Wireless Headphones", "ORDER_TOTAL_USD": 175.93, "TOWN": "Tulsa", "COUNTRY": "USA"}
{"ORDER_ID": 5, "CUSTOMER_NAME": "Xxxxxxxx", "DATE_OF_BIRTH": "nn-nn-nnnn", "PRODUCT": "Comfort Insoles", "ORDER_TOTAL_USD": 49.95, "TOWN": "Portland", "COUNTRY": "USA"}
{"ORDER_ID": 6, "CUSTOMER_NAME": "Xxxxxxx", "DATE_OF_BIRTH": "nn-nn-nnnn", "PRODUCT": "Running Beanie", "ORDER_TOTAL_USD": 13.73, "TOWN": "Omaha", "COUNTRY": "USA"}
""",
}


class Purchase(NamedTuple):
    ORDER_ID: int
    PRODUCT: str
    ORDER_TOTAL_USD: float
    TOWN: str
    COUNTRY: str


class MaskedPurchase(NamedTuple):
    ORDER_ID: int
    CUSTOMER_NAME: str
    DATE_OF_BIRTH: str
    PRODUCT: str
    ORDER_TOTAL_USD: float
    TOWN: str
    COUNTRY: str


def removed(order_id: int, row: Any) -> Purchase:
    return Purchase(order_id, row.product, row.order_total_usd, row.town, row.country)


def mask(text: str) -> str:
    for pattern, letter in (("[^A-Za-z0-9]", "-"), ("[A-Z]", "X"), ("[a-z]", "x"), ("[0-9]", "n")):
        text = re.sub(pattern, letter, text)
    return text


def obfuscated(order_id: int, row: Any) -> MaskedPurchase:
    name, birth = mask(row.customer_name), mask(row.date_of_birth)
    return MaskedPurchase(order_id, name, birth, row.product, row.order_total_usd, row.town, row.country)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    purchases = builder.stream("purchases")
    purchases.map_values(removed, with_key=True).to("purchases_pii_removed")
    purchases.map_values(obfuscated, with_key=True).to("purchases_pii_obfuscated")
    return builder.build()
