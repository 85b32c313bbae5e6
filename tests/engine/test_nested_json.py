"""Spark's JSON of nested values becomes canonical JSON, which gives the job the values of the source."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from rewindow.contracts.ingest import LogColumns, LogSpec, SourceSpec
from rewindow.engine.worker.spark_json import canonical_json, json_readers
from rewindow.streams.serde.canonical_json import load_value
from rewindow.streams.serde.schema import Column

PRICE = {
    "type": "struct",
    "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("amount", "decimal(20,2)"), ("whole", "decimal(38,0)"), ("rate", "double"), ("big", "long"))
    ],
}


def values(kind: Any, *texts: str | None) -> list[Any]:
    fields = [{"name": "price", "type": kind, "nullable": True, "metadata": {}}]
    schema = json.dumps({"type": "struct", "fields": fields})
    spec = LogSpec("events", SourceSpec("parquet", "raw", "raw", {}), ("id",), True, None, False, "at")
    sent = cloudpickle.dumps(
        json_readers(spec, LogColumns((), (Column("price", "json"),), True, True, schema))["price"]
    )
    read = cloudpickle.loads(sent)  # as a worker of Spark gets it
    found = canonical_json(pa.array(texts, pa.string()), read).to_pylist()
    return [None if text is None else load_value(text) for text in found]


def test_a_decimal_keeps_its_digits_and_its_scale_and_a_double_stays_one() -> None:
    (read, small, none, null) = values(
        PRICE,
        '{"amount":123456789012345678.91,"whole":12345678901234567890123456789012345678,"rate":0.1,"big":9007199254740993}',
        '{"amount":1E-2,"whole":0,"rate":1e300}',
        "{}",
        None,
    )
    assert read == (Decimal("123456789012345678.91"), Decimal(12345678901234567890123456789012345678), 0.1, 2**53 + 1)
    assert [str(small.amount), type(small.whole), type(small.rate)] == ["0.01", Decimal, float]
    assert (none, null) == ((None, None, None, None), None)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (
            {"type": "array", "elementType": "decimal(10,2)", "containsNull": True},
            "[1,0.50,null]",
            ["1.00", "0.50", None],
        ),
        (
            {"type": "map", "keyType": "string", "valueType": "decimal(10,3)", "valueContainsNull": True},
            '{"a":7.5}',
            {"a": "7.500"},
        ),
    ],
)
def test_decimals_of_lists_and_maps_do_too(kind: Any, text: str, value: Any) -> None:
    (found,) = values(kind, text)
    if isinstance(found, dict):
        assert {key: str(one) for key, one in found.items()} == value
    else:
        assert [None if one is None else str(one) for one in found] == value


@given(st.decimals(min_value=-(10**18), max_value=10**18 - 1, places=2))
def test_any_decimal_comes_back_as_it_was(amount: Decimal) -> None:
    (found,) = values(PRICE, f'{{"amount":{amount}}}')
    assert str(found.amount) == str(amount)


def test_infinity_and_nan_are_numbers() -> None:
    found = values(PRICE, '{"rate":"Infinity"}', '{"rate":"-Infinity"}', '{"rate":"NaN"}')
    assert [repr(one.rate) for one in found] == ["inf", "-inf", "nan"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_double_comes_back_as_it_was(rate: float) -> None:
    (found,) = values(PRICE, f'{{"rate":{rate!r}}}')
    assert found.rate == rate
