"""Odd text files as plain data: their bytes, and the rows or the rejection that docs/guides/text-files.md promises for them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Refused:
    """Where the message must point. `None`: the page does not promise a line or a column.

    A `column` means that the row could be divided into values and that one of them is at fault. It is the column of the
    schema; a message about a nested value may name the path within it. `line` counts from 1, lines left out included.
    """

    file: str
    line: int | None
    column: str | None
    code: int = 65


@dataclass(frozen=True, slots=True)
class Case:
    """Files of one landing with exactly one of `rows` and `refused`.

    `rows`: in the order of files and lines. TIMESTAMP: milliseconds since 1970 in UTC. DATE: its text. DECIMAL: Decimal.
    JSON: its exact text. STRUCT and MAP: dict. ARRAY: list. BINARY: bytes. `types`: those inferred without `schema`.
    `differs`: why Python's csv (strict) or json reads another structure from the same files; empty if it does not.
    """

    name: str
    format: str
    files: Mapping[str, bytes]
    schema: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    zone: str = "UTC"
    rows: tuple[Mapping[str, Any], ...] | None = None
    types: Mapping[str, str] | None = None
    refused: Refused | None = None
    differs: str = ""


def utc(text):
    """Milliseconds since 1970 of an ISO time in UTC."""
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


def csv_rows(name, content, schema, *rows, file="x.csv", **more):
    """A CSV file that lands as `rows`, each a tuple in the order of `schema`."""
    return Case(name, "csv", {file: encoded(content)}, schema, rows=as_rows(schema, rows), **more)


def csv_refused(name, content, schema, line, column=None, file="x.csv", **more):
    return Case(name, "csv", {file: encoded(content)}, schema, refused=Refused(file, line, column), **more)


def csv_value(name, kind, text, value, **more):
    """A CSV file with `text` in the second column, of the type `kind`."""
    return csv_rows(name, f"n,x\n1,{text}\n", f"n BIGINT, x {kind}", (1, value), **more)


def csv_no_value(name, kind, text, **more):
    return csv_refused(name, f"n,x\n0,\n1,{text}\n", f"n BIGINT, x {kind}", 3, "x", **more)


def json_rows(name, content, schema, *rows, file="x.json", **more):
    """A JSON file that lands as `rows`, each a tuple in the order of `schema`."""
    return Case(name, "json", {file: encoded(content)}, schema, rows=as_rows(schema, rows), **more)


def json_refused(name, content, schema, line, column=None, file="x.json", **more):
    return Case(name, "json", {file: encoded(content)}, schema, refused=Refused(file, line, column), **more)


def json_value(name, kind, text, value, **more):
    """A JSON file with `text` as the field x, of the type `kind`."""
    return json_rows(name, f'{{"n": 1, "x": {text}}}\n', f"n BIGINT, x {kind}", (1, value), **more)


def json_no_value(name, kind, text, **more):
    return json_refused(name, f'{{"n": 0}}\n{{"n": 1, "x": {text}}}\n', f"n BIGINT, x {kind}", 2, "x", **more)


def json_no_syntax(name, kind, text, **more):
    """A JSON file whose second line is no object by the page: the message needs no column."""
    return json_refused(name, f'{{"n": 0}}\n{{"n": 1, "x": {text}}}\n', f"n BIGINT, x {kind}", 2, **more)


def inferred(name, content, types, *rows, form="csv", **more):
    """A file without a schema, the types of its columns and its rows, each a tuple in the order of `types`."""
    named = tuple(dict(zip(types, row, strict=True)) for row in rows)
    return Case(name, form, {f"x.{form}": encoded(content)}, types=types, rows=named, **more)


def not_configured(name, form="csv", schema="n BIGINT, x STRING", **options):
    """Options that are refused before any file is read."""
    content = {"csv": b"n,x\n1,a\n", "json": b'{"n": 1, "x": "a"}\n'}[form]
    return Case(name, form, {f"x.{form}": content}, schema, options, refused=Refused("", None, None, code=78))


def encoded(content):
    return content.encode() if isinstance(content, str) else content


def as_rows(schema, rows):
    names = column_names(schema)
    return tuple(dict(zip(names, row, strict=True)) for row in rows)


def column_names(schema):
    """The names of the columns in a schema, without backticks."""
    flat = schema
    while (inner := re.sub(r"<[^<>]*>|\([\d,]*\)", "", flat)) != flat:  # types within types hide their names
        flat = inner
    return [in_backticks or bare for in_backticks, bare in re.findall(r"(?:`([^`]+)`|(\w+)) \w+", flat)]
