"""The price of each quote, weighted by volumes, as a function of our own. The price is a whole number."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/udf/ksql/code"
INPUT = {
    "stockquotes": """
{"ticker": "ZTEST", "bid": 15, "ask": 25, "bidqty": 100, "askqty": 100}
{"ticker": "ZVV", "bid": 25, "ask": 35, "bidqty": 100, "askqty": 100}
{"ticker": "ZVZZT", "bid": 35, "ask": 45, "bidqty": 100, "askqty": 100}
{"ticker": "ZXZZT", "bid": 45, "ask": 55, "bidqty": 100, "askqty": 100}
{"ticker": "ZTEST", "bid": 10, "ask": 20, "bidqty": 50, "askqty": 100}
{"ticker": "ZVV", "bid": 30, "ask": 40, "bidqty": 100, "askqty": 50}
{"ticker": "ZVZZT", "bid": 30, "ask": 40, "bidqty": 50, "askqty": 100}
{"ticker": "ZXZZT", "bid": 50, "ask": 60, "bidqty": 100, "askqty": 50}
{"ticker": "ZTEST", "bid": 15, "ask": 20, "bidqty": 100, "askqty": 100}
{"ticker": "ZVV", "bid": 25, "ask": 35, "bidqty": 100, "askqty": 100}
{"ticker": "ZVZZT", "bid": 35, "ask": 45, "bidqty": 100, "askqty": 100}
{"ticker": "ZXZZT", "bid": 45, "ask": 55, "bidqty": 100, "askqty": 100}
""",
}
LOGS = {
    "stockquotes": {"key": "ticker", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "vwap": """
{"ticker": "ZTEST", "VWAP": 20.0}
{"ticker": "ZVV", "VWAP": 30.0}
{"ticker": "ZVZZT", "VWAP": 40.0}
{"ticker": "ZXZZT", "VWAP": 50.0}
{"ticker": "ZTEST", "VWAP": 16.0}
{"ticker": "ZVV", "VWAP": 33.0}
{"ticker": "ZVZZT", "VWAP": 36.0}
{"ticker": "ZXZZT", "VWAP": 53.0}
{"ticker": "ZTEST", "VWAP": 17.0}
{"ticker": "ZVV", "VWAP": 30.0}
{"ticker": "ZVZZT", "VWAP": 40.0}
{"ticker": "ZXZZT", "VWAP": 50.0}
""",
}


class Price(NamedTuple):
    VWAP: float


def price(quote: Any) -> Price:
    total = quote.ask * quote.askqty + quote.bid * quote.bidqty
    return Price(float(total // (quote.bidqty + quote.askqty)))


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("stockquotes").map_values(price).to("vwap")
    return builder.build()
