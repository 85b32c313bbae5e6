"""The accepted forms of JSON values: raw tokens as values of a type, by the same table as the texts of CSV."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.text_options import TextOptions
from rewindow.engine.worker.text.accepted_values import Flags, Typed, typed
from rewindow.engine.worker.text.json_records import json_records
from rewindow.engine.worker.text.json_values import JSON, Misfit, nested, texts_of

_OF_TEXTS = frozenset({"date", "timestamp", "timestamp_ntz", "binary"})


@dataclass(frozen=True, slots=True)
class TypedTokens(Typed):
    """Values of tokens. ``misfits``: of nested values, the part of each bad row that does not fit."""

    misfits: Mapping[int, Misfit] | None = None


def typed_tokens(tokens: pa.Array, kind: Any, column: str, options: TextOptions, zone: str) -> Typed:
    """Return the tokens of a field as values of a type of Spark's (an object for a nested one); if it is `JSON`, as they are."""
    if kind == JSON:
        return Typed(tokens)
    if isinstance(kind, str):
        return _scalars(tokens, kind, column, options, zone)

    def leaves(texts: pa.Array, leaf: str) -> tuple[pa.Array, Flags]:
        leaf_values = _binary(texts) if leaf == "binary" else typed(texts, leaf, column, options, zone)
        values = leaf_values.values
        # Times are rounded down to milliseconds, as everywhere.
        if pa.types.is_timestamp(values.type):
            values = pc.floor_temporal(values, unit="millisecond")
        return values, np.zeros(len(texts), np.bool_) if leaf_values.bad is None else leaf_values.bad

    converted = nested(tokens, kind, column, leaves)
    if not converted.misfits:
        return Typed(converted.texts)
    bad = np.zeros(len(tokens), np.bool_)
    bad[list(converted.misfits)] = True
    return TypedTokens(converted.texts, bad, converted.misfits)


def unquoted(tokens: pa.Array) -> Typed:
    """Return the texts of strings; other tokens are bad."""
    texts, bad = texts_of(tokens)
    return Typed(texts, bad if bad.any() else None)


def field_tokens(tokens: pa.Array, path: list[str]) -> pa.Array:
    """Return the tokens of a field within the objects that tokens are; null where there is none."""
    for name in path:
        objects = pc.if_else(pc.starts_with(tokens, "{"), tokens, pa.scalar(None, pa.string()))
        lines = pc.binary_join(pa.array([objects.fill_null("{}").to_pylist()], pa.list_(pa.string())), "\n")
        records = json_records(lines[0].as_py().encode(), wanted={name}, constants=True)
        tokens = records.columns.get(name, pa.nulls(len(tokens), pa.string()))
    return tokens


def _scalars(tokens: pa.Array, kind: str, column: str, options: TextOptions, zone: str) -> Typed:
    if kind == "string":
        return unquoted(tokens)
    if kind == "boolean":
        bad = np.asarray(pc.invert(pc.is_in(tokens, pa.array(["true", "false"]))).fill_null(False)) & np.asarray(
            tokens.is_valid()
        )
        fit = pc.if_else(pa.array(bad), pa.scalar(None, pa.string()), tokens) if bad.any() else tokens
        return Typed(fit.cast(pa.bool_()), bad if bad.any() else None)
    if kind not in _OF_TEXTS:
        return typed(tokens, kind, column, options, zone)
    texts = unquoted(tokens)
    converted = _binary(texts.values) if kind == "binary" else typed(texts.values, kind, column, options, zone)
    if texts.bad is None or converted.bad is None:
        return Typed(converted.values, converted.bad if texts.bad is None else texts.bad)
    return Typed(converted.values, texts.bad | converted.bad)


def _binary(texts: pa.Array) -> Typed:
    """Return the bytes of texts in base64."""
    bad, values = np.zeros(len(texts), np.bool_), list[bytes | None]()
    for row, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            values.append(None)
            bad[row] = True
    return Typed(pa.array(values, pa.binary()), bad if bad.any() else None)
