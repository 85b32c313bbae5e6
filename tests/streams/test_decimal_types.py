"""Decimals whose type is annotated: the digits that their columns have, and what does not fit."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import pytest

from rewindow import StreamsBuilder, Sum
from rewindow.streams.serde.schema import shape_of
from rewindow.streams.serde.types_to_columns import bind
from tests.refusals import refused

Money = Annotated[Decimal, "DECIMAL(12,2)"]


class Sale(NamedTuple):
    """A sale with money, a rate of any precision and the tags of both."""

    amount: Money
    tip: Annotated[Decimal | None, "a note"] | None
    tags: Annotated[dict[str, Money], "another note"]


def test_an_annotated_decimal_has_the_digits_of_its_type() -> None:
    assert [column.type for column in shape_of(Sale, "value").columns] == ["decimal(12,2)", "decimal(38,18)", "json"]
    assert shape_of(Annotated[Decimal, " decimal( 38 , 0 ) "] | None, "value").columns[0].type == "decimal(38,0)"
    assert shape_of(Annotated[int, "pieces"], "value").columns[0].type == "long"


def test_a_value_with_more_digits_is_refused_and_one_with_fewer_gets_them() -> None:
    shape = shape_of(Sale, "value")
    assert shape.encode_checked(Sale(Decimal("1.5"), None, {}))[0].as_tuple() == Decimal("1.50").as_tuple()
    for amount in ("1.005", "12345678901.00"):
        with refused("value-type-wrong", declared="decimal(12,2)"):
            shape.encode_checked(Sale(Decimal(amount), None, {}))


def test_the_annotation_of_a_function_counts_and_its_sum_keeps_the_digits() -> None:
    def amount_of(_row: Any) -> Money:
        return Decimal("1.50")

    def pair_of(key: Any, _row: Any) -> tuple[str, Money]:
        return key, Decimal("1.50")

    stream = StreamsBuilder().stream("in")
    for values in (stream.map_values(amount_of), stream.map(pair_of)):
        table = values.group_by_key().aggregate(Sum(), store=f"sums-{values.node}")
        assert [column.type for column in bind(table.value, "value", {}).columns] == ["decimal(38,2)"]


@pytest.mark.parametrize("text", ["DECIMAL(2,12)", "DECIMAL(39,2)", "DECIMAL(0,0)", "money"])
def test_a_text_that_is_no_type_of_a_decimal_is_refused_wherever_it_is_found(text: str) -> None:
    wrong = Annotated[Decimal, text]

    class Row(NamedTuple):
        amount: wrong  # type: ignore[valid-type]  # another one in each case

    def made(_row: Any) -> Any: ...

    Row.__annotations__["amount"] = wrong
    with refused("decimal-type-invalid", limit=38):
        shape_of(Row, "value")
    for declared in (wrong, Row):
        made.__annotations__["return"] = declared
        with refused("decimal-type-invalid"):
            StreamsBuilder().stream("in").map_values(made)
