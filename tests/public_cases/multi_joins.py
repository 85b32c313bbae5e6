"""Orders with the names of customer and item, from two tables."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/multi-joins/ksql/code"
INPUT = {
    "customers": """
{"customerid": "1", "customername": "Adrian Garcia"}
{"customerid": "2", "customername": "Robert Miller"}
{"customerid": "3", "customername": "Brian Smith"}
""",
    "items": """
{"itemid": "1", "itemname": "Television 60-in"}
{"itemid": "2", "itemname": "Laptop 15-in"}
{"itemid": "3", "itemname": "Speakers"}
""",
    "orders": """
{"orderid": "abc123", "customerid": "1", "itemid": "1", "purchasedate": "2020-05-01"}
{"orderid": "abc345", "customerid": "1", "itemid": "2", "purchasedate": "2020-05-01"}
{"orderid": "abc678", "customerid": "2", "itemid": "1", "purchasedate": "2020-05-01"}
{"orderid": "abc987", "customerid": "3", "itemid": "1", "purchasedate": "2020-05-03"}
{"orderid": "xyz123", "customerid": "2", "itemid": "3", "purchasedate": "2020-05-03"}
{"orderid": "xyz987", "customerid": "2", "itemid": "2", "purchasedate": "2020-05-05"}
""",
}
LOGS = {
    "customers": {"key": "customerid", "timestamp": "tests.public_cases.times:first"},
    "items": {"key": "itemid", "timestamp": "tests.public_cases.times:first"},
    "orders": {"key": "orderid", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "ORDERS_ENRICHED": """
{"ITEMID": "1", "CUSTOMERID": "1", "CUSTOMERNAME": "Adrian Garcia", "ORDERID": "abc123", "PURCHASEDATE": "2020-05-01", "ITEMNAME": "Television 60-in"}
{"ITEMID": "2", "CUSTOMERID": "1", "CUSTOMERNAME": "Adrian Garcia", "ORDERID": "abc345", "PURCHASEDATE": "2020-05-01", "ITEMNAME": "Laptop 15-in"}
{"ITEMID": "1", "CUSTOMERID": "2", "CUSTOMERNAME": "Robert Miller", "ORDERID": "abc678", "PURCHASEDATE": "2020-05-01", "ITEMNAME": "Television 60-in"}
{"ITEMID": "1", "CUSTOMERID": "3", "CUSTOMERNAME": "Brian Smith", "ORDERID": "abc987", "PURCHASEDATE": "2020-05-03", "ITEMNAME": "Television 60-in"}
{"ITEMID": "3", "CUSTOMERID": "2", "CUSTOMERNAME": "Robert Miller", "ORDERID": "xyz123", "PURCHASEDATE": "2020-05-03", "ITEMNAME": "Speakers"}
{"ITEMID": "2", "CUSTOMERID": "2", "CUSTOMERNAME": "Robert Miller", "ORDERID": "xyz987", "PURCHASEDATE": "2020-05-05", "ITEMNAME": "Laptop 15-in"}
""",
}


class Ordered(NamedTuple):
    ORDERID: str
    PURCHASEDATE: str
    CUSTOMERID: str
    itemid: str


class OfCustomer(NamedTuple):
    ORDERID: str
    PURCHASEDATE: str
    CUSTOMERID: str
    itemid: str
    CUSTOMERNAME: str | None


class Enriched(NamedTuple):
    CUSTOMERID: str
    CUSTOMERNAME: str | None
    ORDERID: str
    PURCHASEDATE: str
    ITEMNAME: str | None


class ItemKey(NamedTuple):
    ITEMID: str


def ordered(order_id: str, order: Any) -> Ordered:
    return Ordered(order_id, order.purchasedate, order.customerid, order.itemid)


def of_customer(order: Ordered, customer: Any) -> OfCustomer:
    return OfCustomer(*order, customer and customer.customername)


def enriched(order: OfCustomer, item: Any) -> Enriched:
    name = item and item.itemname
    return Enriched(order.CUSTOMERID, order.CUSTOMERNAME, order.ORDERID, order.PURCHASEDATE, name)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    customers, items = builder.table("customers", store="customer-rows"), builder.table("items", store="item-rows")
    orders = builder.stream("orders").map_values(ordered, with_key=True)
    by_customer = orders.select_key(lambda _, order: order.CUSTOMERID, key=str)
    with_customer = by_customer.left_join(customers, of_customer, name="with-customer")
    by_item = with_customer.select_key(lambda _, order: order.itemid, key=str)
    joined = by_item.left_join(items, enriched, name="with-item")
    joined.select_key(lambda item_id, _: ItemKey(item_id), key=ItemKey).to("ORDERS_ENRICHED")
    return builder.build()
