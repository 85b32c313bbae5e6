"""What two checks said of each payment within an hour."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, NamedTuple

from rewindow import JoinWindows, StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/payment-status-check"
INPUT = {
    "payments": """
{"PAYMENT_ID": 1, "CUSTID": 1, "ACCOUNTID": 1234000, "AMOUNT": 100, "BANK": "DBS"}
{"PAYMENT_ID": 3, "CUSTID": 2, "ACCOUNTID": 1234100, "AMOUNT": 200, "BANK": "Barclays Bank"}
{"PAYMENT_ID": 5, "CUSTID": 3, "ACCOUNTID": 1234200, "AMOUNT": 300, "BANK": "BNP Paribas"}
{"PAYMENT_ID": 7, "CUSTID": 4, "ACCOUNTID": 1234300, "AMOUNT": 400, "BANK": "Wells Fargo"}
{"PAYMENT_ID": 9, "CUSTID": 5, "ACCOUNTID": 1234400, "AMOUNT": 500, "BANK": "DBS"}
{"PAYMENT_ID": 11, "CUSTID": 6, "ACCOUNTID": 1234500, "AMOUNT": 600, "BANK": "Royal Bank of Canada"}
{"PAYMENT_ID": 13, "CUSTID": 7, "ACCOUNTID": 1234600, "AMOUNT": 700, "BANK": "DBS"}
{"PAYMENT_ID": 15, "CUSTID": 8, "ACCOUNTID": 1234700, "AMOUNT": 800, "BANK": "DBS"}
{"PAYMENT_ID": 17, "CUSTID": 9, "ACCOUNTID": 1234800, "AMOUNT": 900, "BANK": "DBS"}
{"PAYMENT_ID": 19, "CUSTID": 10, "ACCOUNTID": 1234900, "AMOUNT": 1000, "BANK": "United Overseas Bank"}
""",
    "aml_status": """
{"PAYMENT_ID": 1, "BANK": "Wells Fargo", "STATUS": "OK"}
{"PAYMENT_ID": 3, "BANK": "Commonwealth Bank of Australia", "STATUS": "OK"}
{"PAYMENT_ID": 5, "BANK": "Deutsche Bank", "STATUS": "OK"}
{"PAYMENT_ID": 7, "BANK": "DBS", "STATUS": "OK"}
{"PAYMENT_ID": 9, "BANK": "United Overseas Bank", "STATUS": "OK"}
{"PAYMENT_ID": 11, "BANK": "Citi", "STATUS": "OK"}
{"PAYMENT_ID": 13, "BANK": "Commonwealth Bank of Australia", "STATUS": "OK"}
{"PAYMENT_ID": 15, "BANK": "Barclays Bank", "STATUS": "OK"}
{"PAYMENT_ID": 17, "BANK": "United Overseas Bank", "STATUS": "OK"}
{"PAYMENT_ID": 19, "BANK": "Royal Bank of Canada", "STATUS": "OK"}
""",
    "funds_status": """
{"PAYMENT_ID": 1, "REASON_CODE": "00", "STATUS": "OK"}
{"PAYMENT_ID": 3, "REASON_CODE": "99", "STATUS": "OK"}
{"PAYMENT_ID": 5, "REASON_CODE": "30", "STATUS": "OK"}
{"PAYMENT_ID": 7, "REASON_CODE": "00", "STATUS": "OK"}
{"PAYMENT_ID": 9, "REASON_CODE": "00", "STATUS": "OK"}
{"PAYMENT_ID": 11, "REASON_CODE": "00", "STATUS": "NOT OK"}
{"PAYMENT_ID": 13, "REASON_CODE": "30", "STATUS": "OK"}
{"PAYMENT_ID": 15, "REASON_CODE": "00", "STATUS": "OK"}
{"PAYMENT_ID": 17, "REASON_CODE": "10", "STATUS": "OK"}
{"PAYMENT_ID": 19, "REASON_CODE": "10", "STATUS": "OK"}
""",
}
LOGS = {
    "payments": {"key": "PAYMENT_ID", "timestamp": "tests.public_cases.times:first"},
    "aml_status": {"key": "PAYMENT_ID", "timestamp": "tests.public_cases.times:second"},
    "funds_status": {"key": "PAYMENT_ID", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "payments_final": """
{"PAYMENT_ID": 1, "STATUS_COUNTS": "{OK=2}", "SERVICE_STATUS_LIST": "[{ \\"system\\" : \\"AML\\", \\"status\\" : \\"OK\\"}, { \\"system\\" : \\"FUNDS\\", \\"status\\" : \\"OK\\"}]"}
{"PAYMENT_ID": 15, "STATUS_COUNTS": "{OK=2}", "SERVICE_STATUS_LIST": "[{ \\"system\\" : \\"AML\\", \\"status\\" : \\"OK\\"}, { \\"system\\" : \\"FUNDS\\", \\"status\\" : \\"OK\\"}]"}
{"PAYMENT_ID": 7, "STATUS_COUNTS": "{OK=2}", "SERVICE_STATUS_LIST": "[{ \\"system\\" : \\"AML\\", \\"status\\" : \\"OK\\"}, { \\"system\\" : \\"FUNDS\\", \\"status\\" : \\"OK\\"}]"}
{"PAYMENT_ID": 17, "STATUS_COUNTS": "{OK=2}", "SERVICE_STATUS_LIST": "[{ \\"system\\" : \\"AML\\", \\"status\\" : \\"OK\\"}, { \\"system\\" : \\"FUNDS\\", \\"status\\" : \\"OK\\"}]"}
{"PAYMENT_ID": 5, "STATUS_COUNTS": "{OK=2}", "SERVICE_STATUS_LIST": "[{ \\"system\\" : \\"AML\\", \\"status\\" : \\"OK\\"}, { \\"system\\" : \\"FUNDS\\", \\"status\\" : \\"OK\\"}]"}
{"PAYMENT_ID": 19, "STATUS_COUNTS": "{OK=2}", "SERVICE_STATUS_LIST": "[{ \\"system\\" : \\"AML\\", \\"status\\" : \\"OK\\"}, { \\"system\\" : \\"FUNDS\\", \\"status\\" : \\"OK\\"}]"}
{"PAYMENT_ID": 9, "STATUS_COUNTS": "{OK=2}", "SERVICE_STATUS_LIST": "[{ \\"system\\" : \\"AML\\", \\"status\\" : \\"OK\\"}, { \\"system\\" : \\"FUNDS\\", \\"status\\" : \\"OK\\"}]"}
{"PAYMENT_ID": 3, "STATUS_COUNTS": "{OK=2}", "SERVICE_STATUS_LIST": "[{ \\"system\\" : \\"AML\\", \\"status\\" : \\"OK\\"}, { \\"system\\" : \\"FUNDS\\", \\"status\\" : \\"OK\\"}]"}
{"PAYMENT_ID": 11, "STATUS_COUNTS": "{NOT OK=1, OK=1}", "SERVICE_STATUS_LIST": "[{ \\"system\\" : \\"AML\\", \\"status\\" : \\"OK\\"}, { \\"system\\" : \\"FUNDS\\", \\"status\\" : \\"NOT OK\\"}]"}
{"PAYMENT_ID": 13, "STATUS_COUNTS": "{OK=2}", "SERVICE_STATUS_LIST": "[{ \\"system\\" : \\"AML\\", \\"status\\" : \\"OK\\"}, { \\"system\\" : \\"FUNDS\\", \\"status\\" : \\"OK\\"}]"}
""",
}
LAST_OF = "PAYMENT_ID"


class Payment(NamedTuple):
    PAYMENT_ID: int


class Status(NamedTuple):
    system: str
    status: str


class Statuses(NamedTuple):
    STATUS_COUNTS: str
    SERVICE_STATUS_LIST: str


def status_of(row: Any, *, system: str) -> Status:
    return Status(system, row.STATUS)


def of_payment(_payment: Any, status: Status) -> Status:
    return status


def added(_key: Payment, status: Status, statuses: list[Status]) -> list[Status]:
    return [*statuses, status]


def listed(statuses: list[Status]) -> Statuses:
    counts = Counter(status.status for status in statuses)
    texts = [f'{{ "system" : "{status.system}", "status" : "{status.status}"}}' for status in statuses]
    histogram = ", ".join(f"{status}={count}" for status, count in sorted(counts.items()))
    return Statuses(f"{{{histogram}}}", f"[{', '.join(texts)}]")


def build_topology() -> Topology:
    builder = StreamsBuilder()
    laundering = builder.stream("aml_status").map_values(partial(status_of, system="AML"), value=Status)
    funds = builder.stream("funds_status").map_values(partial(status_of, system="FUNDS"), value=Status)
    windows = JoinWindows.of("1h", grace="24h")
    joined = builder.stream("payments").join(laundering.merge(funds), of_payment, windows, name="statuses")
    payments = joined.select_key(lambda payment_id, _: Payment(payment_id), key=Payment).group_by_key()
    table = payments.aggregate(list, added, store="status-lists", value=list[Status])
    table.map_values(listed).to_stream().to("payments_final")
    return builder.build()
