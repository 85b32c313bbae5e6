"""`select`: its results, parsing, types and syntax errors."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import pytest

from rewindow import StreamsBuilder
from rewindow.dsl.operators.select import Select, read_fields
from rewindow.streams.serde.schema import Column, row_shape, scalar_shape
from rewindow.streams.serde.types_to_columns import bind_sink
from rewindow.testing import TopologyTestDriver
from tests.refusals import containing, refused


class Sale(NamedTuple):
    pieces: int | None
    price: float | None
    country: str | None


def _topology(fields):
    builder = StreamsBuilder()
    builder.stream("sales").select(fields).to("made")
    return builder.build()


def _made(fields, *values):
    driver = TopologyTestDriver(_topology(fields))
    for timestamp, value in enumerate(values):
        driver.pipe("sales", "k", value, timestamp)
    return [record.value for record in driver.read("made")]


@pytest.mark.parametrize(
    ("fields", "made"),
    [
        ("country", {"country": "de"}),
        ("country as land, pieces", {"land": "de", "pieces": 3}),
        ("price * pieces as total", {"total": 4.5}),
        ("pieces - 1 - 1 as a, pieces - (1 - 1) AS b, 1 + pieces * 2 as c", {"a": 1, "b": 3, "c": 7}),
        ("-1 * pieces as less, 'it''s' as text, true as yes", {"less": -3, "text": "it's", "yes": True}),
        ("key, timestamp as at, timestamp", {"key": "k", "at": 0, "timestamp": 0}),
    ],
)
def test_a_row_has_the_selected_fields(fields, made):
    (row,) = _made(fields, Sale(3, 1.5, "de"))
    assert row._asdict() == made
    shown = Select(read_fields(fields)).describe()
    assert read_fields(shown.removeprefix("select(")[:-1]) == read_fields(fields), "the shown text can be parsed"


def test_a_null_operand_makes_the_result_null():
    rows = _made("pieces * 2 as twice, country, 1 as one", Sale(None, 1.0, None), None)
    assert [tuple(row) for row in rows] == [(None, None, 1), (None, None, 1)]


def test_a_scalar_value_is_named_value():
    assert [row.half for row in _made("value * 0.5 as half", 3, None)] == [1.5, None]


def _wrong(problem, token):
    return refused("expression-syntax-wrong", verb="select", problem=f"{problem} before", token=token, fix="")


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", _wrong("a name or a literal is missing", "the end")),
        ("pieces,", _wrong("a name or a literal is missing", "the end")),
        ("pieces price", _wrong("a `,` is missing", "price")),
        ("pieces * 2", refused("expression-syntax-wrong", problem=containing("`(pieces * 2) as total`"))),
        ("(pieces + 1 as n", _wrong("`)` is missing", "as")),
        ("pieces as 1", refused("selected-name-invalid", name="1")),
        ("pieces as class", refused("selected-name-invalid", name="class")),
        ("pieces as _run", refused("selected-name-invalid", name="_run")),
        ("pieces, price as pieces", refused("selected-field-twice", field="pieces")),
        ("pieces / 2 as half", refused("expression-sign-unknown", verb="select", rest="/ 2 as half")),
    ],
)
def test_a_syntax_error_names_its_position(text, refusal):
    with refusal:
        read_fields(text)


def test_arithmetic_rejects_other_types():
    with refused("computed-value-not-number", given="'de'", type="str", expression="(country + 1)"):
        _made("country + 1 as n", Sale(1, 1.0, "de"))
    with refused("field-not-in-record", verb="select", field="city", fields=containing("pieces, price, country")):
        _made("city", Sale(1, 1.0, "de"))


SALE = row_shape([Column("pieces", "long"), Column("price", "double"), Column("paid", "decimal(10,2)")])


def _types(fields, value=SALE):
    (part,) = _topology(fields).sub_topologies()
    _, made = bind_sink(part.sinks[0], {"sales": (scalar_shape("user", "string"), value)})
    return {column.name: column.type for column in made.columns}


def test_the_types_of_a_log_are_kept():
    assert _types("paid as money, pieces, key as who, timestamp as at") == {
        "money": "decimal(10,2)",
        "pieces": "long",
        "who": "string",
        "at": "long",
    }
    assert _types("pieces + 1 as a, pieces * 2.0 as b, price - pieces as c, 'x' as d, false as e") == {
        "a": "long",
        "b": "double",
        "c": "double",
        "d": "string",
        "e": "boolean",
    }
    assert _types("value as v, value * 2 as w", scalar_shape("value", "long")) == {"v": "long", "w": "long"}


def test_arithmetic_on_a_text_column_is_rejected_when_types_are_bound():
    with refused("computed-type-not-number", types="decimal(10,2)", expression="(paid * 2)"):
        _types("paid * 2 as n")
    with refused("selected-field-unknown", field="city", fields="pieces, price, paid, key, value, timestamp"):
        _types("city")
    with refused("computed-value-not-number", type="Decimal", given=containing("Decimal")):
        _made("value * 2 as n", Decimal(1))


def test_a_field_that_is_too_large_is_refused_and_many_fields_are_not():
    with refused("expression-too-large", verb="select", what="names and literals"):
        read_fields(f"{' + '.join(['a'] * 201)} as total")
    assert len(read_fields(", ".join(f"a{number}" for number in range(5_000)))) == 5_000
