"""Columns that are hardly what was meant are named once, after the first landing of a generation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bad_input.own_csv import HEAD, landed, row, settings
from tests.bad_input.scene import Say

COMMAS = {
    "decimal commas": ("12,50", "7,20", True),
    "dots for thousands": ("1.234,50", "7,20", True),
    "commas for thousands": ("1,234.50", "12,000.00", True),
    "texts": ("12,50", "none", False),
    "lists": ("1, 2", "3, 4", False),
}


@pytest.mark.parametrize("case", COMMAS)
def test_numbers_with_commas_that_were_landed_as_text_are_named_once(case: str, say: Say, orders: Path) -> None:
    first, second, is_named = COMMAS[case]
    lines = [row(1).replace("12.5", f'"{first}"'), row(2).replace("12.5", f'"{second}"'), row(3).replace("12.5", "")]
    orders.write_text(HEAD + "".join(lines))
    text = landed(say)
    warned = f"amount of orders was landed as text, but its values are numbers with commas, like '{first}'. "
    assert (f"warning: feed orders: {warned}" in text) is is_named
    assert ("Declare amount DECIMAL(12,2) in a `schema:` of the source, with `options: {decimal: " in text) is is_named
    (orders.parent / "more.csv").write_text(HEAD + row(4, at="2026-01-07T08:15:00Z", got="2026-01-07T08:16:00Z"))
    text = landed(say)
    assert "commas" not in text


def test_blanks_after_separators_are_named_once(say: Say, shop: Path, orders: Path) -> None:
    orders.write_text(HEAD + row(1, " Ann") + row(2, " Bob"))
    text = landed(say)
    assert (
        "warning: feed orders: the values of customer of orders begin with a blank, like ' Bob', which is another text than "
        "'Bob'. If the blanks follow the separators of a file, remove them, and `rewindow land orders --new-generation`\n"
    ) in text
    (orders.parent / "more.csv").write_text(HEAD + row(4, " Cid", "2026-01-07T08:15:00Z", "2026-01-07T08:16:00Z"))
    text = landed(say)
    assert "blank" not in text
    (orders.parent / "third.csv").write_text(HEAD.replace("customer", " customer") + row(5, " Dan"))
    code, text = say("land", "orders")
    assert code == 66, text
    assert "third.csv has no customer, which is landed. It has ' customer', which no landed file has" in text


def test_keys_with_blanks_around_them_are_named_once(say: Say, orders: Path) -> None:
    orders.write_text(HEAD + row(1, "Bob") + row(2, "Bob "))
    text = landed(say)
    assert (
        "warning: feed orders: keys in customer of orders have blanks around them, like 'Bob ', which is another key than 'Bob'. "
        "If they are the same, remove the blanks, and `rewindow land orders --new-generation`\n"
    ) in text


def test_numbers_among_texts_in_json_are_refused_with_their_places(say: Say, shop: Path, orders: Path) -> None:
    settings(shop, "format: csv", "format: json")
    times = {"ordered_at": "2026-01-05T08:15:00Z", "received_at": "2026-01-05T08:16:00Z"}
    rows = [{"order_id": 1, "customer": "ann", "amount": amount, **times} for amount in (12.5, "n/a")]
    orders.unlink()
    (orders.parent / "first.json").write_text("".join(json.dumps(one) + "\n" for one in rows))
    code, text = say("land", "orders")
    assert code == 65
    assert "field amount: it is DOUBLE in first.json, line 1, and STRING in first.json, line 2." in text


def test_a_column_of_numbers_that_one_value_makes_a_text_is_named_once(say: Say, shop: Path, orders: Path) -> None:
    rows = [row(number) for number in range(1, 10)]
    orders.write_text(HEAD + "".join(rows) + row(10).replace("12.5", "n/a"))
    text = landed(say)
    assert (
        "warning: feed orders: amount of orders was landed as text, because not all of its values are numbers, like 'n/a'. If it "
        "is a number, declare amount DOUBLE in a `schema:` of the source, with `unreadable: skip` for such lines, give the "
        "column another name (`columns: {amount_2: amount}`), because a log keeps the type of each name, and `rewindow land "
        "orders --new-generation`\n"
    ) in text
    (orders.parent / "more.csv").write_text(HEAD + row(11, at="2026-01-07T08:15:00Z", got="2026-01-07T08:16:00Z"))
    assert "not all of its values" not in say("land", "orders")[1]


@pytest.mark.parametrize("codes", [("007", "07", "12"), ("1E5", "100000", "12")])
def test_codes_that_stay_texts_are_named_once(say: Say, shop: Path, orders: Path, codes: tuple[str, ...]) -> None:
    orders.write_text(HEAD + "".join(row(number, code) for number, code in enumerate(codes)))
    text = landed(say)
    assert f"warning: feed orders: customer of orders was landed as text, because values like '{codes[0]}'" in text
    assert "declare customer DOUBLE in a `schema:`" in text
    (orders.parent / "more.csv").write_text(HEAD + row(4, "008", "2026-01-07T08:15:00Z", "2026-01-07T08:16:00Z"))
    assert "customer" not in landed(say)


def test_a_column_of_numbers_that_are_no_times_is_named(say: Say, shop: Path, orders: Path) -> None:
    settings(shop, "timestamp: ordered_at", "timestamp: order_id")
    text = landed(say)
    assert "warning: feed orders: no time of orders is after 1970-01-01 00:00:00" in text
    assert "Is order_id the column with the times, in milliseconds?" in text
