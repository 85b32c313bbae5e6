"""Lines of a user's own CSV for the project that `rewindow init` creates, and its feed's settings."""

from __future__ import annotations

from pathlib import Path

from tests.bad_input.scene import Say

HEAD = "order_id,customer,amount,ordered_at,received_at\n"


def row(number: int, customer: str = "ann", at: str = "2026-01-05T08:15:00Z", got: str = "2026-01-05T08:16:00Z") -> str:
    return f"{number},{customer},12.5,{at},{got}\n"


def landed(say: Say) -> str:
    """Land the feed, which must succeed, and return what the command said."""
    code, text = say("land", "orders")
    assert code == 0, text
    return text


def settings(shop: Path, old: str, new: str) -> None:
    path = shop / "conf/feeds/orders.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
