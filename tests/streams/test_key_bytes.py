"""The documented bytes of keys. They decide partitions and ties, so they may never change."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import Window, Windowed
from rewindow.errors import DataError
from rewindow.streams.record import row_class
from rewindow.streams.serde.canonical_json import dump_value
from rewindow.streams.serde.key_bytes import encode_key, encoded_size, partition_of

DOCUMENTED = [
    ("é", "c3a9"),
    ("", ""),
    (b"\x00\xff", "00ff"),
    (True, "01"),
    (False, "00"),
    (1, "0000000000000001"),
    (-2, "fffffffffffffffe"),
    (1.5, "3ff8000000000000"),
    (-0.0, "0000000000000000"),
    (Decimal("12.50"), "31322e35"),
    (Decimal("-0.00"), "30"),
    (Decimal("1E+3"), "31303030"),
    (("a", None, 1), "0000000161ffffffff000000080000000000000001"),
    (row_class(("user", "city"))("ann", "X"), "00000003616e6e0000000158"),
    (Windowed("a", Window(5, 15)), "610000000000000005"),
    (Windowed("a", Window(5, 15, is_session=True)), "61000000000000000f0000000000000005"),
]


@pytest.mark.parametrize(("key", "hexadecimal"), DOCUMENTED, ids=repr)
def test_the_bytes_of_a_key(key: Any, hexadecimal: str) -> None:
    assert encode_key(key).hex() == hexadecimal


@pytest.mark.parametrize(("key", "of_four"), [("a", 3), ("b", 1), ("JFK", 3), (1, 3), (("a", 1), 2)])
def test_the_partition_of_a_key(key: Any, of_four: int) -> None:
    assert partition_of(key, 4) == of_four == crc32(encode_key(key)) % 4


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 64))
def test_every_key_has_a_partition(key: int, partitions: int) -> None:
    assert 0 <= partition_of(key, partitions) < partitions
    assert partition_of(key, 1) == 0


@given(st.lists(st.text(max_size=4)))
def test_ties_of_text_are_in_the_order_of_utf8(keys: list[str]) -> None:
    assert sorted(keys, key=encode_key) == sorted(keys, key=lambda key: key.encode())


TUPLES = st.tuples(st.none() | st.text(max_size=3), st.none() | st.integers(-3, 3))


@given(TUPLES, TUPLES)
def test_different_tuples_have_different_bytes(one: Any, other: Any) -> None:
    assert (encode_key(one) == encode_key(other)) is (one == other)


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(0, 5))
def test_equal_decimals_have_equal_bytes(key: Decimal, zeros: int) -> None:
    sign, digits, exponent = key.as_tuple()
    assert isinstance(exponent, int)
    longer = Decimal((sign, (*digits, *([0] * zeros)), exponent - zeros))
    assert longer == key
    assert encode_key(longer) == encode_key(key)


@pytest.mark.parametrize("key", ["\ud800", Decimal("NaN"), None, [1], {"a": 1}, object(), 2**63, ("a", [1])])
def test_a_key_without_bytes_is_refused(key: Any) -> None:
    with pytest.raises(DataError):
        encode_key(key)


KEY_VALUES = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text() | st.binary()
)


@given(st.recursive(KEY_VALUES, lambda parts: st.lists(parts, max_size=4).map(tuple), max_leaves=12))
def test_the_size_of_a_row_is_that_of_its_bytes(value: Any) -> None:
    try:
        expected = 0 if value is None else len(encode_key(value))
    except DataError:
        return
    assert encoded_size(value) == expected


def test_the_size_of_a_value_without_bytes_is_that_of_its_json() -> None:
    row = (1, 2**70, {"a": [1, 2]})
    assert encoded_size(row) == len(dump_value(row).encode())
