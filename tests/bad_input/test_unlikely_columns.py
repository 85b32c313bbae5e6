"""Columns that are hardly what was meant are named once, after the first landing of a generation."""

from __future__ import annotations

import json

import pytest

from rewindow.errors import WarningMessage
from tests.bad_input.own_csv import FEED, ORDERS, own, row, rows
from tests.bad_input.scene import Bench
from tests.refusals import containing, told

FRACTIONS, GROUPS = '`options: {decimal: ",", thousands: "."}`', '`options: {thousands: ","}`'
COMMAS = {
    "decimal commas": ("12,50", "7,20", FRACTIONS),
    "dots for thousands": ("1.234,50", "7,20", FRACTIONS),
    "commas for thousands": ("1,234.50", "12,000.00", GROUPS),
    "commas for millions": ("1,234,500", "12,000", GROUPS),
    "commas for either": (
        "1,500",
        "12,000",
        f"{GROUPS} if commas group digits, or {FRACTIONS} if they begin fractions",
    ),
    "texts": ("12,50", "none", None),
    "lists": ("1, 2", "3, 4", None),
}


def warned(bench: Bench, *lines: str) -> tuple[WarningMessage, ...]:
    """Return the warnings of the first landing of these rows. They are named once: not by the next landing."""
    rows(bench, *lines)
    warnings = bench.land("orders").warnings
    own(bench, 4, at="2026-01-07T08:15:00Z", got="2026-01-07T08:16:00Z")
    assert bench.land("orders").warnings == ()
    return warnings


@pytest.mark.parametrize("case", COMMAS)
def test_numbers_with_commas_that_were_landed_as_text_are_named_once(case: str, new_shop: Bench) -> None:
    first, second, options = COMMAS[case]
    lines = [row(1).replace("12.5", f'"{first}"'), row(2).replace("12.5", f'"{second}"'), row(3).replace("12.5", "")]
    warnings = warned(new_shop, *lines)
    if options is not None:
        told(warnings, "numbers-with-commas", column="amount", topic="orders", value=first, options=options)
    else:
        assert "numbers-with-commas" not in [warning.code for warning in warnings]


@pytest.mark.parametrize(
    ("customers", "code", "facts"),
    [
        ((" Ann", " Bob"), "blanks-around-values", {"value": " Bob"}),
        (("Bob", "Bob "), "blanks-around-values", {"value": "Bob "}),
        (("007", "07", "12"), "numbers-as-text", {"reason": containing("'007'")}),
        (("1E5", "100000", "12"), "numbers-as-text", {"reason": containing("'1E5'")}),
        (("31900441201190696999", "7"), "numbers-as-text", {"type": "DECIMAL(38,0)"}),
        (("9007199254740993", "1.25"), "numbers-as-text", {"reason": containing("993'"), "type": "DECIMAL(38,2)"}),
    ],
)
def test_keys_that_are_hardly_meant_are_named_once(
    new_shop: Bench, customers: tuple[str, ...], code: str, facts: dict[str, str]
) -> None:
    warnings = warned(new_shop, *(row(number, customer) for number, customer in enumerate(customers)))
    told(warnings, code, column="customer", topic="orders", **facts)


def test_a_column_of_numbers_that_one_value_makes_a_text_is_named_once(new_shop: Bench) -> None:
    rows(new_shop, *(row(number) for number in range(1, 10)), row(10).replace("12.5", "n/a"))
    told(
        new_shop.land("orders").warnings,
        "numbers-as-text",
        column="amount",
        reason=containing("'n/a'"),
        option='`options: {null: "n/a"}`',
    )


@pytest.mark.parametrize(("rows_before", "option"), [(1_000, "unreadable: skip"), (999, "n/a")])
def test_a_text_after_the_inspected_rows_is_told_too(new_shop: Bench, rows_before: int, option: str) -> None:
    rows(new_shop, *map(row, range(rows_before)), row(rows_before).replace("12.5", "n/a"))
    new_shop.edit(FEED, "partitions: 4", "partitions: 1")
    told(new_shop.land("orders").warnings, "numbers-as-text", column="amount", option=containing(option))


def test_several_texts_among_numbers_are_not_taken_for_null(new_shop: Bench) -> None:
    texts = {4: "n/a", 8: "none"}
    rows(new_shop, *(row(number).replace("12.5", texts.get(number, "12.5")) for number in range(1, 21)))
    told(new_shop.land("orders").warnings, "numbers-as-text", column="amount", option=containing("unreadable: skip"))


def test_numbers_among_texts_in_json_are_refused_with_their_places(new_shop: Bench) -> None:
    new_shop.edit(FEED, "format: csv", "format: json")
    times = {"ordered_at": "2026-01-05T08:15:00Z", "received_at": "2026-01-05T08:16:00Z"}
    orders = [{"order_id": 1, "customer": "ann", "amount": amount, **times} for amount in (12.5, "n/a")]
    (new_shop.root / ORDERS).unlink()
    new_shop.write("data/orders/first.json", "".join(json.dumps(order) + "\n" for order in orders))
    new_shop.refuses("land orders", "json-types-mixed", topic="orders")


def test_a_column_of_numbers_that_are_no_times_is_named(new_shop: Bench) -> None:
    new_shop.edit(FEED, "timestamp: ordered_at", "timestamp: order_id")
    told(new_shop.land("orders").warnings, "times-before-1980", column="order_id", topic="orders")
