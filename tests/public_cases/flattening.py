"""Orders with nested fields as flat rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/flatten-nested-data/ksql/code"
INPUT = {
    "ORDERS": """
{"id": "1", "timestamp": "2020-01-18 01:12:05", "amount": 84.02, "customer": {"firstName": "Ricardo", "lastName": "Ferreira", "phoneNumber": "1234567899", "address": {"street": "Street SDF", "number": "8602", "zipcode": "27640", "city": "Raleigh", "state": "NC"}}, "product": {"sku": "P12345", "name": "Highly Durable Glue", "vendor": {"vendorName": "Acme Corp", "country": "US"}}}
{"id": "2", "timestamp": "2020-01-18 01:35:12", "amount": 84.02, "customer": {"firstName": "Tim", "lastName": "Berglund", "phoneNumber": "9987654321", "address": {"street": "Street UOI", "number": "1124", "zipcode": "85756", "city": "Littletown", "state": "CO"}}, "product": {"sku": "P12345", "name": "Highly Durable Glue", "vendor": {"vendorName": "Acme Corp", "country": "US"}}}
{"id": "3", "timestamp": "2020-01-18 01:58:55", "amount": 84.02, "customer": {"firstName": "Robin", "lastName": "Moffatt", "phoneNumber": "4412356789", "address": {"street": "Street YUP", "number": "9066", "zipcode": "BD111NE", "city": "Leeds", "state": "YS"}}, "product": {"sku": "P12345", "name": "Highly Durable Glue", "vendor": {"vendorName": "Acme Corp", "country": "US"}}}
{"id": "4", "timestamp": "2020-01-18 02:31:43", "amount": 84.02, "customer": {"firstName": "Viktor", "lastName": "Gamov", "phoneNumber": "9874563210", "address": {"street": "Street SHT", "number": "12450", "zipcode": "07003", "city": "New Jersey", "state": "NJ"}}, "product": {"sku": "P12345", "name": "Highly Durable Glue", "vendor": {"vendorName": "Acme Corp", "country": "US"}}}
""",
}
LOGS = {
    "ORDERS": {"key": "id", "columns": {"ordered": "timestamp"}, "timestamp": "timestamp"},
}
EXPECTED = {
    "FLATTENED_ORDERS": """
{"ORDER_ID": "1", "ORDER_TS": "2020-01-18 01:12:05", "ORDER_AMOUNT": 84.02, "CUST_FIRST_NAME": "Ricardo", "CUST_LAST_NAME": "Ferreira", "CUST_PHONE_NUMBER": "1234567899", "CUST_ADDR_STREET": "Street SDF", "CUST_ADDR_NUMBER": "8602", "CUST_ADDR_ZIPCODE": "27640", "CUST_ADDR_CITY": "Raleigh", "CUST_ADDR_STATE": "NC", "PROD_SKU": "P12345", "PROD_NAME": "Highly Durable Glue", "PROD_VENDOR_NAME": "Acme Corp", "PROD_VENDOR_COUNTRY": "US", "_timestamp": 1579309925000}
{"ORDER_ID": "2", "ORDER_TS": "2020-01-18 01:35:12", "ORDER_AMOUNT": 84.02, "CUST_FIRST_NAME": "Tim", "CUST_LAST_NAME": "Berglund", "CUST_PHONE_NUMBER": "9987654321", "CUST_ADDR_STREET": "Street UOI", "CUST_ADDR_NUMBER": "1124", "CUST_ADDR_ZIPCODE": "85756", "CUST_ADDR_CITY": "Littletown", "CUST_ADDR_STATE": "CO", "PROD_SKU": "P12345", "PROD_NAME": "Highly Durable Glue", "PROD_VENDOR_NAME": "Acme Corp", "PROD_VENDOR_COUNTRY": "US", "_timestamp": 1579311312000}
{"ORDER_ID": "3", "ORDER_TS": "2020-01-18 01:58:55", "ORDER_AMOUNT": 84.02, "CUST_FIRST_NAME": "Robin", "CUST_LAST_NAME": "Moffatt", "CUST_PHONE_NUMBER": "4412356789", "CUST_ADDR_STREET": "Street YUP", "CUST_ADDR_NUMBER": "9066", "CUST_ADDR_ZIPCODE": "BD111NE", "CUST_ADDR_CITY": "Leeds", "CUST_ADDR_STATE": "YS", "PROD_SKU": "P12345", "PROD_NAME": "Highly Durable Glue", "PROD_VENDOR_NAME": "Acme Corp", "PROD_VENDOR_COUNTRY": "US", "_timestamp": 1579312735000}
{"ORDER_ID": "4", "ORDER_TS": "2020-01-18 02:31:43", "ORDER_AMOUNT": 84.02, "CUST_FIRST_NAME": "Viktor", "CUST_LAST_NAME": "Gamov", "CUST_PHONE_NUMBER": "9874563210", "CUST_ADDR_STREET": "Street SHT", "CUST_ADDR_NUMBER": "12450", "CUST_ADDR_ZIPCODE": "07003", "CUST_ADDR_CITY": "New Jersey", "CUST_ADDR_STATE": "NJ", "PROD_SKU": "P12345", "PROD_NAME": "Highly Durable Glue", "PROD_VENDOR_NAME": "Acme Corp", "PROD_VENDOR_COUNTRY": "US", "_timestamp": 1579314703000}
""",
}


class FlatOrder(NamedTuple):
    ORDER_ID: str
    ORDER_TS: str
    ORDER_AMOUNT: float
    CUST_FIRST_NAME: str
    CUST_LAST_NAME: str
    CUST_PHONE_NUMBER: str
    CUST_ADDR_STREET: str
    CUST_ADDR_NUMBER: str
    CUST_ADDR_ZIPCODE: str
    CUST_ADDR_CITY: str
    CUST_ADDR_STATE: str
    PROD_SKU: str
    PROD_NAME: str
    PROD_VENDOR_NAME: str
    PROD_VENDOR_COUNTRY: str


def flat(order_id: str, order: Any) -> FlatOrder:
    customer, product = order.customer, order.product
    address, vendor = customer.address, product.vendor
    return FlatOrder(
        order_id,
        order.ordered,
        order.amount,
        customer.firstName,
        customer.lastName,
        customer.phoneNumber,
        address.street,
        address.number,
        address.zipcode,
        address.city,
        address.state,
        product.sku,
        product.name,
        vendor.vendorName,
        vendor.country,
    )


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("ORDERS").map_values(flat, with_key=True).to("FLATTENED_ORDERS")
    return builder.build()
