"""Transactions with suspicious names, and the users with more than three of them in a day."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from rewindow import StreamsBuilder, TimeWindows, Topology, Windowed

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/anomaly-detection/ksql/code"
INPUT = {
    "suspicious_names": """
{"CREATED_TS": "2019-03-08 00:00:00", "COMPANY_NAME": "Verizon", "COMPANY_ID": 1}
{"CREATED_TS": "2019-10-31 00:00:00", "COMPANY_NAME": "Spirit Halloween", "COMPANY_ID": 2}
{"CREATED_TS": "2019-12-15 00:00:00", "COMPANY_NAME": "Best Buy", "COMPANY_ID": 3}
""",
    "transactions": """
{"TXN_ID": 9900, "USERNAME": "Abby Normal", "RECIPIENT": "Verizon", "AMOUNT": 22.0, "TS": "2020-10-20 13:05:36"}
{"TXN_ID": 12, "USERNAME": "Victor von Frankenstein", "RECIPIENT": "Tattered Cover", "AMOUNT": 7.0, "TS": "2020-10-20 13:07:59"}
{"TXN_ID": 13, "USERNAME": "Frau Blücher", "RECIPIENT": "Peebles", "AMOUNT": 70.0, "TS": "2020-10-20 13:15:00"}
{"TXN_ID": 9903, "USERNAME": "Abby Normal", "RECIPIENT": "Verizon", "AMOUNT": 61.0, "TS": "2020-10-20 13:31:02"}
{"TXN_ID": 9901, "USERNAME": "Abby Normal", "RECIPIENT": "Spirit Halloween", "AMOUNT": 83.0, "TS": "2020-10-20 13:44:41"}
{"TXN_ID": 9902, "USERNAME": "Abby Normal", "RECIPIENT": "Spirit Halloween", "AMOUNT": 46.0, "TS": "2020-10-20 13:44:43"}
{"TXN_ID": 9904, "USERNAME": "Abby Normal", "RECIPIENT": "Spirit Halloween", "AMOUNT": 59.0, "TS": "2020-10-20 13:44:44"}
{"TXN_ID": 6, "USERNAME": "Victor von Frankenstein", "RECIPIENT": "Confluent Cloud", "AMOUNT": 21.0, "TS": "2020-10-20 13:47:51"}
{"TXN_ID": 18, "USERNAME": "Frau Blücher", "RECIPIENT": "Target", "AMOUNT": 70.0, "TS": "2020-10-20 13:52:01"}
{"TXN_ID": 7, "USERNAME": "Victor von Frankenstein", "RECIPIENT": "Verizon", "AMOUNT": 100.0, "TS": "2020-10-20 13:55:06"}
{"TXN_ID": 19, "USERNAME": "Frau Blücher", "RECIPIENT": "Goodwill", "AMOUNT": 7.0, "TS": "2020-10-20 14:12:32"}
""",
}
LOGS = {
    "suspicious_names": {"key": "COMPANY_NAME", "timestamp": "CREATED_TS"},
    "transactions": {"key": "RECIPIENT", "columns": {"sent": "TS"}, "timestamp": "TS"},
}
EXPECTED = {
    "suspicious_transactions": """
{"RECIPIENT": "Verizon", "TXN_ID": 9900, "USERNAME": "Abby Normal", "AMOUNT": 22.0, "TS": "2020-10-20 13:05:36"}
{"RECIPIENT": "Verizon", "TXN_ID": 9903, "USERNAME": "Abby Normal", "AMOUNT": 61.0, "TS": "2020-10-20 13:31:02"}
{"RECIPIENT": "Spirit Halloween", "TXN_ID": 9901, "USERNAME": "Abby Normal", "AMOUNT": 83.0, "TS": "2020-10-20 13:44:41"}
{"RECIPIENT": "Spirit Halloween", "TXN_ID": 9902, "USERNAME": "Abby Normal", "AMOUNT": 46.0, "TS": "2020-10-20 13:44:43"}
{"RECIPIENT": "Spirit Halloween", "TXN_ID": 9904, "USERNAME": "Abby Normal", "AMOUNT": 59.0, "TS": "2020-10-20 13:44:44"}
{"RECIPIENT": "Verizon", "TXN_ID": 7, "USERNAME": "Victor von Frankenstein", "AMOUNT": 100.0, "TS": "2020-10-20 13:55:06"}
""",
    "accounts_to_monitor": """
{"USERNAME": "Abby Normal", "WINDOW_START": "2020-10-20 00:00:00 +0000", "WINDOW_END": "2020-10-21 00:00:00 +0000", "_timestamp": 1603201483000}
{"USERNAME": "Abby Normal", "WINDOW_START": "2020-10-20 00:00:00 +0000", "WINDOW_END": "2020-10-21 00:00:00 +0000", "_timestamp": 1603201484000}
""",
}


class Transaction(NamedTuple):
    TXN_ID: int
    USERNAME: str
    AMOUNT: float
    TS: str


class Day(NamedTuple):
    WINDOW_START: str
    WINDOW_END: str


class User(NamedTuple):
    USERNAME: str


def text(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S +0000")


def suspicious_of(transaction: Any, _name: Any) -> Transaction:
    return Transaction(transaction.TXN_ID, transaction.USERNAME, transaction.AMOUNT, transaction.sent)


def day(windowed: Windowed, _count: int) -> tuple[User, Day]:
    return windowed.key, Day(text(windowed.window.start_ms), text(windowed.window.end_ms))


def build_topology() -> Topology:
    builder = StreamsBuilder()
    names = builder.table("suspicious_names", store="names")
    suspicious = builder.stream("transactions").join(names, suspicious_of)
    suspicious.to("suspicious_transactions")
    users = suspicious.select_key(lambda _, transaction: User(transaction.USERNAME), key=User).group_by_key()
    counts = users.windowed_by(TimeWindows.of("24h", grace="24h")).count(store="transactions-per-day")
    frequent = counts.to_stream().filter(lambda _, count: count > 3)
    frequent.map(day, key=User, value=Day).to("accounts_to_monitor")
    return builder.build()
