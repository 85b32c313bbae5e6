"""Three fields from two levels of nested objects."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/ksql-nested-json/ksql/code"
INPUT = {
    "financial_txns": """
{"id": "1", "transaction": {"num_shares": 50000, "amount": 50044568.89, "txn_ts": "2020-11-18 02:31:43", "customer": {"first_name": "Jill", "last_name": "Smith", "id": 1234567, "email": "jsmith@gmail.com"}, "company": {"name": "ACME Corp", "ticker": "ACMC", "id": "ACME837275222752952", "address": "Anytown USA, 333333"}}}
{"id": "2", "transaction": {"num_shares": 30000, "amount": 5004.89, "txn_ts": "2020-11-18 02:35:43", "customer": {"first_name": "Art", "last_name": "Vandeley", "id": 8976612, "email": "avendleay@gmail.com"}, "company": {"name": "Imports Corp", "ticker": "IMPC", "id": "IMPC88875222752952", "address": "Anytown USA, 333333"}}}
{"id": "3", "transaction": {"num_shares": 3000000, "amount": 600044568.89, "txn_ts": "2020-11-18 02:36:43", "customer": {"first_name": "John", "last_name": "England", "id": 456321, "email": "je@gmail.com"}, "company": {"name": "Hechinger", "ticker": "HECH", "id": "HECH8333785222752952", "address": "Anytown USA, 333333"}}}
{"id": "4", "transaction": {"num_shares": 10000, "amount": 80044.89, "txn_ts": "2020-11-18 02:37:43", "customer": {"first_name": "Fred", "last_name": "Pym", "id": 333567, "email": "fjone@gmail.com"}, "company": {"name": "PymTech", "ticker": "PYMT", "id": "PYME837275222714197419202020", "address": "Anytown USA, 333333"}}}
""",
}
LOGS = {
    "financial_txns": {"key": "id", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "FINANCIAL_REPORTS": """
{"SHARES": 50000, "CUST_ID": 1234567, "SYMBOL": "ACMC"}
{"SHARES": 30000, "CUST_ID": 8976612, "SYMBOL": "IMPC"}
{"SHARES": 3000000, "CUST_ID": 456321, "SYMBOL": "HECH"}
{"SHARES": 10000, "CUST_ID": 333567, "SYMBOL": "PYMT"}
""",
}


class Report(NamedTuple):
    SHARES: int
    CUST_ID: int
    SYMBOL: str


def report(row: Any) -> Report:
    transaction = row.transaction
    return Report(transaction.num_shares, transaction.customer.id, transaction.company.ticker)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("financial_txns").map_values(report).to("FINANCIAL_REPORTS")
    return builder.build()
