"""Conditions: their meaning for each record, parsing and syntax errors."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import pytest

from rewindow import StreamsBuilder
from rewindow.dsl.operators.conditions import parse
from rewindow.testing import TopologyTestDriver
from tests.refusals import containing, refused


class Sale(NamedTuple):
    amount: int | None
    country: str | None
    paid: bool | None


SALE = {"amount": 10, "country": "de", "paid": None, "key": "k", "timestamp": 5}


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("amount = 10", True),
        ("amount <> 10", False),
        ("amount != 9.5", True),
        ("amount between 10 and 10", True),
        ("amount not between 1 and 9", True),
        ("country in ('fr', 'de')", True),
        ("country not in ('fr', 'de')", False),
        ("country = 'd''e'", False),
        ("paid", None),
        ("not paid", None),
        ("paid is null", True),
        ("paid is not null", False),
        ("paid or amount > 9", True),
        ("paid and amount > 10", False),
        ("paid and amount > 9", None),
        ("amount > -1 and not country = 'fr' or false = paid", True),
        ("NOT (amount < 1 OR key >= 'l') AND timestamp <= 5", True),
    ],
)
def test_a_condition_is_true_false_or_null_as_in_sql(text, truth):
    condition = parse(text)
    assert condition.truth(SALE.__getitem__) is truth
    assert parse(str(condition)) == condition, "the shown text can be parsed"


def _wrong(problem, token):
    return refused("expression-syntax-wrong", verb="where", problem=f"{problem} before", token=token, fix="")


END = "the end"


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", _wrong("a name or a literal is missing", END)),
        ("amount >", _wrong("a name or a literal is missing", END)),
        ("amount > 1 2", _wrong("the condition ends", "2")),
        ("amount > 1 and", _wrong("a name or a literal is missing", END)),
        ("(amount > 1", _wrong("`)` is missing", END)),
        ("1", _wrong("a comparison, `between` or `in` is missing", END)),
        ("amount is 1", _wrong("`null` is missing", "1")),
        ("amount = -'x'", _wrong("`-` is for numbers,", END)),
        ("amount ; 1", refused("expression-sign-unknown", rest="; 1")),
    ],
)
def test_a_syntax_error_names_its_position(text, refusal):
    with refusal:
        parse(text)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("amount == 1", refused("expression-syntax-wrong", fix=": write `=` for equality")),
        ("amount + 1 > 2", refused("expression-syntax-wrong", fix=containing("compute it"))),
        ("amount > 1 && amount < 3", refused("expression-sign-unknown")),
    ],
)
def test_what_another_language_writes_is_told_in_sql(text, refusal):
    with refusal:
        parse(text)


def _sent(condition, *values):
    builder = StreamsBuilder()
    builder.stream("sales").where(condition).to("kept")
    driver = TopologyTestDriver(builder.build())
    for timestamp, value in enumerate(values):
        driver.pipe("sales", "k", value, timestamp)
    return [record.value for record in driver.read("kept")]


def test_only_true_conditions_keep_a_record():
    sales = [Sale(1, "de", True), Sale(2, None, None), Sale(None, "fr", False)]
    assert _sent("amount > 0 and (country is null or country = 'de')", *sales) == sales[:2]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("value = 40.85", ["40.85"]),
        ("40.850 = value", ["40.85"]),
        ("value <> 40.85", ["0.10", "0.30"]),
        ("value >= 0.10", ["0.10", "40.85", "0.30"]),
        ("value < 0.10", []),
        ("value between 0.10 and 0.30", ["0.10", "0.30"]),
        ("value in (0.10, 0.3)", ["0.10", "0.30"]),
        ("value > -0.1", ["0.10", "40.85", "0.30"]),
        ("value > 40", ["40.85"]),
    ],
)
def test_a_literal_that_is_compared_with_a_decimal_is_exact(condition, kept):
    truth = parse(condition).truth
    amounts = [Decimal(text) for text in ("0.10", "40.85", "0.30")]
    assert [one for one in amounts if truth(lambda _name, one=one: one)] == [Decimal(text) for text in kept]


def test_a_decimal_and_a_float_of_two_fields_are_compared_as_floats():
    fields = {"exact": Decimal("40.85"), "binary": 40.85}
    assert parse("exact = binary").truth(fields.__getitem__)
    assert not parse("binary > exact").truth(fields.__getitem__)


def test_a_scalar_value_is_named_value():
    assert _sent("value >= 2", 1, 2, None, 3) == [2, 3]


def test_the_fields_of_a_null_row_are_null():
    assert _sent("amount > 0", None, Sale(1, None, None)) == [Sale(1, None, None)]
    assert _sent("country is null and timestamp = 0", None) == [None]


def test_an_unknown_field_is_rejected_with_the_known_names():
    with refused("field-not-in-record", field="price", fields="amount, country, paid, key, value, timestamp"):
        _sent("price > 1", Sale(1, None, None))
