"""The events of Nexmark as they are landed: persons, auctions and bids. Times are milliseconds.

`SOURCES` has the addresses of the published events and rows.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

SOURCES = {
    "risingwave": (
        "https://github.com/risingwavelabs/risingwave/tree/448c6570b1b9d636736708340f61a85900c2b7d7/e2e_test/nexmark",
        "https://github.com/risingwavelabs/risingwave/tree/448c6570b1b9d636736708340f61a85900c2b7d7/e2e_test/streaming/nexmark",
    ),
    "feldera": (
        "https://github.com/feldera/feldera/blob/5c7931d09fc37e0976143e50a81169dbd98ec0cc/sql-to-dbsp-compiler/SQL-compiler/src/test/java/org/dbsp/sqlCompiler/compiler/sql/suites/nexmark/NexmarkTest.java",
        "https://github.com/feldera/feldera/blob/5c7931d09fc37e0976143e50a81169dbd98ec0cc/crates/nexmark/src/queries/q21.rs",
    ),
}
FOLDER = Path(__file__).parent


class Person(NamedTuple):
    id: int
    name: str
    email_address: str
    credit_card: str
    city: str
    state: str
    date_time: int
    extra: str


class Auction(NamedTuple):
    id: int
    item_name: str
    description: str
    initial_bid: int
    reserve: int
    date_time: int
    expires: int
    seller: int
    category: int
    extra: str


class Bid(NamedTuple):
    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    date_time: int
    extra: str


EVENTS: dict[str, Any] = {"person": Person, "auction": Auction, "bid": Bid}
"""The topics, in the order in which their events were inserted. The first column of each event is its key, too."""
TIMES = ("date_time", "expires")


def _column(name: str, kind: type) -> str:
    return f"{name} {'TIMESTAMP' if name in TIMES else 'BIGINT' if kind is int else 'STRING'}"


LOGS: dict[str, dict[str, Any]] = {
    topic: {
        "source": {"schema": ", ".join(_column(*column) for column in get_type_hints(event).items())},
        "columns": {"of": event._fields[0]},
        "key": "of",
        "value": list(event._fields),
        "timestamp": "date_time",
    }
    for topic, event in EVENTS.items()
}


def published(project: str, name: str) -> str:
    """Return the lines of a published file."""
    return (FOLDER / project / f"{name}.jsonl").read_text(encoding="utf-8")


def at(text: str) -> int:
    """Return a published time in milliseconds."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def clock(ms: int, form: str) -> str:
    """Return a time as text, in a form of `strftime`."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(form)
