"""Edits of the file of a landed feed: a slip is named, and only ways on that `land` accepts are offered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bad_input.scene import Say

SCHEMA = "order_id BIGINT, customer STRING, amount DOUBLE, ordered_at TIMESTAMP, received_at TIMESTAMP"
AGAIN = "Restore the configuration, or land everything again: `rewindow land orders --new-generation`"
KEEP = ". With `--keep 3`, what is landed stays as it is"


@pytest.fixture
def edited(say: Say, shop: Path) -> Callable[[str, str], None]:
    """Return a function that replaces a text in the file of a feed that was landed."""
    feed = shop / "conf/feeds/orders.yaml"

    def edit(old: str, new: str) -> None:
        text = feed.read_text()
        assert text.count(old) == 1
        feed.write_text(text.replace(old, new))

    edit("path: data/orders}", f'path: data/orders, schema: "{SCHEMA}"}}')
    assert say("land", "orders")[0] == 0
    return edit


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("path: data/orders,", "path: data/order,", "the source data/order has no files at"),
        ("amount DOUBLE", "amount DOUBEL", "amount the unknown type DOUBEL: did you mean DOUBLE?"),
        ("key: customer", "key: custmer", "Did you mean 'customer'?"),
        ("timestamp: ordered_at ", "timestamp: orderd_at ", "Did you mean 'ordered_at'?"),
    ],
)
def test_a_slip_is_named_as_it_is_before_the_first_landing(
    say: Say, edited: Callable[[str, str], None], old: str, new: str, said: str
) -> None:
    edited(old, new)
    for command in (("land", "orders"), ("status",)):
        _, text = say(*command)
        assert "was landed under a different definition (" in text
        assert "), and the present one cannot be landed: " in text
        assert said in text
        assert AGAIN not in text
    assert say("land", "orders")[0] == 66


@pytest.mark.parametrize(
    ("old", "new", "ends"),
    [
        ("partitions: 4", "partitions: 8", ""),
        ("key: customer", "key: [customer, received_at]", ""),
        ("[order_id, amount]", "[amount]", ""),
        ("[order_id, amount]", "[order_id, amount, received_at]", KEEP),
        ("amount DOUBLE", "amount STRING", f"{KEEP}, unless a landed column has another type now"),
    ],
)
def test_keeping_landings_is_offered_only_where_it_is_possible(
    say: Say, edited: Callable[[str, str], None], old: str, new: str, ends: str
) -> None:
    edited(old, new)
    code, text = say("land", "orders")
    assert code == 66
    assert text.endswith(f"{AGAIN}{ends} [feed-definition-changed]\n"), text
    code, text = say("land", "orders", "--new-generation", "--keep", "3")
    assert code == (0 if ends == KEEP else 78), text
