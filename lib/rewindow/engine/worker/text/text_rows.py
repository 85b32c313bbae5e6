"""The rows of a page as values.

A column is converted when it is first read. Texts that are not values of the column's type are noted.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.ingest import FAIL, LogSpec, Piece
from rewindow.contracts.row_faults import UNREADABLE
from rewindow.contracts.source_fields import positions
from rewindow.contracts.text_options import CSV, TextOptions, text_options
from rewindow.engine.worker.file_fields import shown
from rewindow.engine.worker.landing.source_types import shown_type
from rewindow.engine.worker.text.accepted_values import Flags, Typed, form_of, instants, pattern_of, typed
from rewindow.engine.worker.text.json_records import json_records
from rewindow.engine.worker.text.json_values import JSON, Misfit, nested, texts_of
from rewindow.engine.worker.text.reading import LINE, WRONG

_OF_TEXTS = frozenset({"date", "timestamp", "timestamp_ntz", "binary"})


@dataclass(frozen=True, slots=True)
class _TypedTokens(Typed):
    """The values of JSON tokens.

    For nested values, ``misfits`` maps a bad row to the part of its value that has no accepted form.
    """

    misfits: Mapping[int, Misfit] | None = None


def _typed_tokens(tokens: pa.Array, kind: Any, column: str, options: TextOptions, zone: str) -> Typed:
    """Return the JSON tokens of a field as values of a type. For the type `JSON`, the tokens are the values.

    ``kind`` is Spark's name of the type or, for a nested type, an object of Spark's schema JSON.
    """
    if kind == JSON:
        return Typed(tokens)
    if isinstance(kind, str):
        return _scalars(tokens, kind, column, options, zone)

    def leaves(texts: pa.Array, leaf: str) -> tuple[pa.Array, Flags]:
        leaf_values = _binary(texts) if leaf == "binary" else typed(texts, leaf, column, options, zone)
        values = leaf_values.values
        # Times are rounded down to milliseconds, like all landed times.
        if pa.types.is_timestamp(values.type):
            values = pc.floor_temporal(values, unit="millisecond")
        return values, np.zeros(len(texts), np.bool_) if leaf_values.bad is None else leaf_values.bad

    converted = nested(tokens, kind, column, leaves)
    if not converted.misfits:
        return Typed(converted.texts)
    bad = np.zeros(len(tokens), np.bool_)
    bad[list(converted.misfits)] = True
    return _TypedTokens(converted.texts, bad, converted.misfits)


def _unquoted(tokens: pa.Array) -> Typed:
    """Return the texts of tokens that are strings; other tokens are bad."""
    texts, bad = texts_of(tokens)
    return Typed(texts, bad if bad.any() else None)


def _field_tokens(tokens: pa.Array, path: list[str]) -> pa.Array:
    """Return the tokens of the field at ``path`` in objects, given as tokens; null where an object lacks the field."""
    for name in path:
        objects = pc.if_else(pc.starts_with(tokens, "{"), tokens, pa.scalar(None, pa.string()))
        lines = pc.binary_join(pa.array([objects.fill_null("{}").to_pylist()], pa.list_(pa.string())), "\n")
        records = json_records(lines[0].as_py().encode(), wanted={name}, constants=True)
        tokens = records.columns.get(name, pa.nulls(len(tokens), pa.string()))
    return tokens


def _scalars(tokens: pa.Array, kind: str, column: str, options: TextOptions, zone: str) -> Typed:
    if kind == "string":
        return _unquoted(tokens)
    if kind == "boolean":
        bad = np.asarray(pc.invert(pc.is_in(tokens, pa.array(["true", "false"]))).fill_null(False)) & np.asarray(
            tokens.is_valid()
        )
        fit = pc.if_else(pa.array(bad), pa.scalar(None, pa.string()), tokens) if bad.any() else tokens
        return Typed(fit.cast(pa.bool_()), bad if bad.any() else None)
    if kind not in _OF_TEXTS:
        return typed(tokens, kind, column, options, zone)
    texts = _unquoted(tokens)
    converted = _binary(texts.values) if kind == "binary" else typed(texts.values, kind, column, options, zone)
    if texts.bad is None or converted.bad is None:
        return Typed(converted.values, converted.bad if texts.bad is None else texts.bad)
    return Typed(converted.values, texts.bad | converted.bad)


def _binary(texts: pa.Array) -> Typed:
    """Decode texts in base64 to bytes."""
    bad, values = np.zeros(len(texts), np.bool_), list[bytes | None]()
    for row, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            values.append(None)
            bad[row] = True
    return Typed(pa.array(values, pa.binary()), bad if bad.any() else None)


_DAY_US = 86_400_000_000
_MOST_SHOWN = 80


class BadValueError(Exception):
    """A text is not a value of its type. The message names place and value. It is a sentence without its full stop."""


class TextRows:
    """Some rows of a text file. Not thread-safe."""

    def __init__(
        self,
        spec: LogSpec,
        kinds: Mapping[str, Any],
        times: frozenset[str],
        batch: pa.RecordBatch,
        piece: Piece,
        first_line: int,
    ) -> None:
        """Bind to a page of the file ``piece``. ``first_line`` lines come before the part of the file that contains the page.

        ``kinds`` maps the source's columns, and paths of fields in them, to their types (Spark's names, or objects for nested
        types). ``times`` has the columns of the log's timestamp and arrival. A bad value in such a column is an invalid time,
        so the timestamp policy decides what happens to the row.
        """
        self.spec, self.kinds, self.piece = spec, kinds, piece
        self._times, self._batch, self._first_line = times, batch, first_line
        self._options = text_options(spec.source.format, spec.source.options)
        self._values = dict(piece.values)
        self._at = positions(batch.schema.names, kinds) if spec.source.format == CSV else {}
        self._found: dict[str, pa.Array] = {}
        # The tokens of fields within objects are cached, because finding them takes long.
        self._within: dict[str, pa.Array] = {}
        self._bad: dict[str, Flags] = {}
        self._misfits: dict[str, Mapping[int, Misfit]] = {}

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._batch.num_rows)

    def filter(self, mask: pa.Array) -> TextRows:
        """Return the rows where the mask is true."""
        batch = self._batch.filter(mask)
        return TextRows(self.spec, self.kinds, self._times, batch, self.piece, self._first_line)

    def coded(self, name: str) -> None:  # noqa: ARG002 - as stored rows have it
        """Return None: a text file does not store the distinct values of a column."""
        return

    def column(self, name: str) -> pa.Array:
        """Return a column with its type; null where a value is bad.

        Raises `BadValueError` for a bad value, unless rows with bad values are quarantined.
        """
        if name not in self._found:
            converted = self._typed(name, self.kinds[name])
            self._found[name] = converted.values
            if isinstance(converted, _TypedTokens) and converted.misfits:
                self._misfits[name] = converted.misfits
            if converted.bad is not None and name not in self._times:
                if self.spec.unreadable == FAIL:
                    raise BadValueError(self.described(name, int(np.argmax(converted.bad))))
                self._bad[name] = converted.bad
        return self._found[name]

    def instants(self, name: str) -> pa.Array:
        """Return a column of texts of times or dates as instants in microseconds; null where a text is null or bad."""
        kind = self.kinds[name]
        pattern = pattern_of("date", name, self._options)
        if kind == "date" and pattern is not None and not pattern.has_time:
            days = self._typed(name, "date").values.cast(pa.int32()).cast(pa.int64())
            mask = np.asarray(days.is_null())
            local = np.asarray(days.fill_null(0)) * _DAY_US
            micros = instants(local, self._options.zone or self.spec.zone)
            return pa.array(micros, pa.int64(), mask=mask).cast(pa.timestamp("us", "UTC"))
        return self._typed(name, "timestamp").values

    def faults(self) -> pa.Array:
        """Return, for each row, why it cannot be landed; null for rows in which no fault has been found so far."""
        faults = pa.nulls(self.rows, pa.string())
        if WRONG in self._batch.schema.names:
            wrong = self._batch.column(WRONG)
            reasons = [
                None if reason is None else f"{UNREADABLE}: {self.location(row)}: {reason}"
                for row, reason in enumerate(wrong.to_pylist())
            ]
            faults = pa.array(reasons, pa.string())
        for name, bad in self._bad.items():
            more: list[str | None] = [None] * self.rows
            for row in np.flatnonzero(bad).tolist():
                more[row] = f"{UNREADABLE}: {self.described(name, row)}"
            faults = pc.coalesce(faults, pa.array(more, pa.string()))
        return faults

    def texts(self, name: str) -> pa.Array:
        """Return the texts of a column as they are in the file, except that JSON strings are decoded."""
        texts = self._texts(name)
        if self.spec.source.format == CSV:
            return texts
        return pc.coalesce(_unquoted(texts).values, texts)

    def described(self, name: str, row: int) -> str:
        """Return a text with the place of a bad value, the value, and the accepted forms."""
        kind, value = self.kinds[name], self._texts(name)[row].as_py()
        part, path = ("column", name) if self.spec.source.format == CSV else ("field", name)
        if misfit := self._misfits.get(name, {}).get(row):
            kind, value, path = misfit.kind, misfit.value, misfit.path
        shown_value = repr(value) if self.spec.source.format == CSV else value
        if len(shown_value) > _MOST_SHOWN:
            shown_value = f"{shown_value[:_MOST_SHOWN]}..."
        return f"{self.location(row)}, {part} {path}: {shown_value} is not a valid {_sql(kind)} ({self._forms(path, kind)})"

    def _forms(self, name: str, kind: Any) -> str:
        if kind == "string":
            return "accepted: JSON strings. Declare the field as JSON to land any value as its text"
        return (
            f"accepted: {form_of(kind, name, self._options)}"
            if isinstance(kind, str)
            else "accepted: the declared fields"
        )

    def location(self, row: int) -> str:
        """Return the file and the line of a row."""
        line = self._first_line + self._batch.column(LINE)[row].as_py() + 1
        return f"{shown(self.spec.source, self.piece.path)}, line {line}"

    def _texts(self, name: str) -> pa.Array:
        """Return the texts or JSON tokens of a column; nulls if the file does not have the column."""
        if name in self._values:
            return pa.repeat(pa.scalar(self._values[name], pa.string()), self.rows)
        names = self._batch.schema.names
        if self.spec.source.format == CSV:
            position = self._at.get(name)
            return pa.nulls(self.rows, pa.string()) if position is None else self._batch.column(position)
        if name in names:
            return self._batch.column(name)
        outer, dot, inner = name.partition(".")
        if dot and outer in names:
            if name not in self._within:
                self._within[name] = _field_tokens(self._batch.column(outer), inner.split("."))
            return self._within[name]
        return pa.nulls(self.rows, pa.string())

    def _typed(self, name: str, kind: Any) -> Typed:
        texts, zone = self._texts(name), self.spec.zone
        if self.spec.source.format == CSV or name in self._values:
            return typed(texts, kind, name, self._options, zone)
        return _typed_tokens(texts, kind, name, self._options, zone)


def _sql(kind: Any) -> str:
    return shown_type(kind) if isinstance(kind, str) else str(kind["type"]).upper()


def text_kinds(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types with which text columns are read. A time without a zone becomes a TIMESTAMP, in the feed's zone."""
    kinds: dict[str, Any] = json.loads(json.dumps(fields).replace('"timestamp_ntz"', '"timestamp"'))
    return kinds
