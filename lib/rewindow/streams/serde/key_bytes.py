"""The encoding of a key as bytes. The bytes decide the key's partition, and the order of keys that no other rule orders.

=================  ==================================================================================== type
bytes =================  ==================================================================================== ``str``
UTF-8 ``bytes``          unchanged ``bool``           one byte, 0 or 1 ``int``            8 bytes, big-endian, two's
complement (Kafka's LongSerializer) ``float``          8 bytes, IEEE 754, big-endian (Kafka's DoubleSerializer); -0.0 as 0.0
``Decimal``        its decimal text in UTF-8, without an exponent or trailing zeros: ``12.5``, ``1000``, ``0`` tuple, row
each item's length (4 bytes, -1 for null) and bytes ``Windowed``       the key's bytes, then the start (8 bytes); a session:
the end, then the start =================
====================================================================================

A key's partition is ``crc32(bytes) mod partitions``, which any language can compute in one line, as can Spark SQL.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, TypeVar
from zlib import crc32

from rewindow.errors import DataError
from rewindow.streams.record import Windowed
from rewindow.streams.serde.canonical_json import dump_value
from rewindow.streams.serde.normalizers import are_all

Key = TypeVar("Key")

_LONG = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")
_LENGTH = struct.Struct(">i")
_LEAST, _MOST = -(2**63), 2**63 - 1


def encode_key(key: Any) -> bytes:
    """Return the canonical bytes of a key.

    Equal keys of the same type have equal bytes. Raises `DataError` for a key that cannot be encoded: a dict, a list or another
    object, an integer beyond 64 bits, a str that UTF-8 cannot encode, or a Decimal that is not finite.
    """
    if isinstance(key, str):
        return key.encode() if key.isascii() else _encode_text(key)
    if isinstance(key, Windowed):
        return _encode_windowed(key)
    if isinstance(key, bool):
        return b"\x01" if key else b"\x00"
    if isinstance(key, int):
        return _encode_long(key)
    if isinstance(key, tuple):
        return b"".join(_encode_item(item) for item in key)
    if isinstance(key, bytes):
        return key
    if isinstance(key, float):
        return _DOUBLE.pack(key or 0.0)
    if isinstance(key, Decimal):
        return _encode_decimal(key)
    raise DataError(
        "key-type-without-bytes",
        "a key of type {type} has no bytes: use str, int, float, bool, bytes, Decimal or a tuple",
        type=type(key).__name__,
    )


def encode_pair(pair: tuple[Any, Any]) -> bytes:
    """Return the bytes of a pair. Sorted by these bytes, pairs with the same first part are adjacent, ordered by the second.

    Raises `DataError` as `encode_key` does.
    """
    first, second = pair
    return _encode_item(first) + b"\x00" + encode_key(second)


def span_of_first(first: Any) -> tuple[bytes, bytes]:
    """Return a lower and an upper bound of the `encode_pair` bytes of all pairs with this first part."""
    encoded = _encode_item(first)
    return encoded, encoded + b"\x01"


def encoded_size(value: Any) -> int:
    """Return the size in bytes of a key or value as encoded by `encode_key` or, if that fails, as canonical JSON; 0 for null."""
    if value is None:
        return 0
    if value.__class__ is str and value.isascii():
        return len(value)
    if value.__class__ is int or value.__class__ is float:
        return 8
    if value.__class__ is Windowed:
        key, window = value
        bounds = 16 if window.is_session else 8
        return bounds + (len(key) if key.__class__ is str and key.isascii() else encoded_size(key))
    try:
        return _tuple_size(value) if isinstance(value, tuple) else len(encode_key(value))
    except DataError:
        return len(dump_value(value).encode())


def by_bytes(keys: Iterable[Key], encode: Callable[[Any], bytes] = encode_key) -> list[Key]:
    """Return keys ordered by their bytes."""
    listed = list(keys)
    # Strings sort in the same order as their UTF-8 bytes.
    if encode is encode_key and are_all(listed, str):
        return sorted(listed)  # type: ignore[type-var]  # all are str
    return sorted(listed, key=encode)


def canonical(key: Any) -> Any:
    """Return the canonical form of an undeclared key. For example, the Decimals 1.5 and 1.50 are equal, so they get one form.

    Raises `DataError` for a Decimal that is not finite.
    """
    if key.__class__ is Decimal:
        return Decimal(_encode_decimal(key).decode())
    if isinstance(key, tuple) and any(isinstance(item, Decimal | tuple) for item in key):
        return tuple.__new__(key.__class__, [canonical(item) for item in key])
    return key


def partition_of(key: Any, partitions: int) -> int:
    """Return the partition of a key, 0 <= p < partitions. A null key belongs to partition 0."""
    return 0 if key is None else crc32(encode_key(key)) % partitions


def _encode_text(key: str) -> bytes:
    try:
        return key.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            "key-with-surrogate",
            "the key {key} has half of a surrogate pair, which UTF-8 cannot write: remove it",
            key=repr(key),
        ) from error


def _encode_decimal(key: Decimal) -> bytes:
    if not key.is_finite():
        raise DataError("key-not-finite", "a key that is {key} has no bytes: use a number", key=str(key))
    text = format(key, "f") if key else "0"
    return (text.rstrip("0").rstrip(".") if "." in text else text).encode()


def _encode_long(key: int) -> bytes:
    try:
        return _LONG.pack(key)
    except struct.error as error:
        raise DataError(
            "key-number-too-large", "the key {key} does not fit in 64 bits: use str for longer numbers", key=key
        ) from error


def _encode_windowed(key: Windowed) -> bytes:
    start_ms, end_ms, is_session = key.window
    bounds = _LONG.pack(end_ms) + _LONG.pack(start_ms) if is_session else _LONG.pack(start_ms)
    return encode_key(key.key) + bounds


def _tuple_size(items: tuple[Any, ...]) -> int:
    """Return the size in bytes of an encoded tuple, without encoding its numbers and ASCII strings."""
    size = 4 * len(items)
    for item in items:
        if item.__class__ is float or (item.__class__ is int and _LEAST <= item <= _MOST):
            size += 8
        elif item.__class__ is str and item.isascii():
            size += len(item)
        elif item is not None:
            size += len(encode_key(item))
    return size


def _encode_item(item: Any) -> bytes:
    if item is None:
        return _LENGTH.pack(-1)
    encoded = encode_key(item)
    return _LENGTH.pack(len(encoded)) + encoded
