"""A sentence from the columns of each purchase."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/concatenation/ksql/code"
INPUT = {
    "stock_purchases": """
{"id": "1", "num_shares": 30000, "amount": 5004.89, "txn_ts": "2020-12-04 02:35:43", "first_name": "Art", "last_name": "Vandeley", "symbol": "IMEP"}
{"id": "2", "num_shares": 500, "amount": 1000.89, "txn_ts": "2020-12-04 02:35:44", "first_name": "Nick", "last_name": "Fury", "symbol": "IMEP"}
{"id": "3", "num_shares": 45729, "amount": 804.89, "txn_ts": "2020-12-04 02:35:45", "first_name": "Natasha", "last_name": "Romanov", "symbol": "STRK"}
{"id": "4", "num_shares": 72848, "amount": 60040.89, "txn_ts": "2020-12-04 02:35:46", "first_name": "Wanda", "last_name": "Maximoff", "symbol": "STRK"}
""",
}
LOGS = {
    "stock_purchases": {"key": "id", "timestamp": "txn_ts"},
}
EXPECTED = {
    "SUMMARY_RESULTS": """
{"SUMMARY": "Art Vandeley purchased 30000 shares of IMEP"}
{"SUMMARY": "Nick Fury purchased 500 shares of IMEP"}
{"SUMMARY": "Natasha Romanov purchased 45729 shares of STRK"}
{"SUMMARY": "Wanda Maximoff purchased 72848 shares of STRK"}
""",
}


class Summary(NamedTuple):
    SUMMARY: str


def summary(bought: Any) -> Summary:
    return Summary(f"{bought.first_name} {bought.last_name} purchased {bought.num_shares} shares of {bought.symbol}")


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("stock_purchases").map_values(summary).to("SUMMARY_RESULTS")
    return builder.build()
