"""Lines of a user's own CSV for the project that `rewindow init` creates, and its feed's settings."""

from __future__ import annotations

from tests.bad_input.scene import Bench

HEAD = "order_id,customer,amount,ordered_at,received_at\n"
FEED, ORDERS = "conf/feeds/orders.yaml", "data/orders/first_days.csv"


def row(number: int, customer: str = "ann", at: str = "2026-01-05T08:15:00Z", got: str = "2026-01-05T08:16:00Z") -> str:
    return f"{number},{customer},12.5,{at},{got}\n"


def own(bench: Bench, number: int, customer: str = "ann", **times: str) -> None:
    """Add a file with one row."""
    bench.write(f"data/orders/own_{number}.csv", HEAD + row(number, customer, **times))


def rows(bench: Bench, *lines: str) -> None:
    """Replace the rows of the feed's only file."""
    bench.write(ORDERS, HEAD + "".join(lines))
