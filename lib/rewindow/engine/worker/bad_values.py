"""Find the first value in CSV or JSON files that the parser could not read, so that a message can name line and column.

Reads the files once more, after the landing has failed. Spark itself only says that a record is malformed.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from rewindow.contracts.decimal_texts import (
    beyond_decimal,
)
from rewindow.contracts.ingest import Piece, SourceSpec
from rewindow.contracts.source_fields import is_read
from rewindow.engine.worker.csv_files import (
    csv_lines,
    csv_names,
    encoding_of,
    has_header,
    is_multi_line,
    lower_options,
    positions,
)
from rewindow.engine.worker.double_texts import CONSTANTS_OPTION, is_beyond, takes_infinity
from rewindow.engine.worker.escaped_quotes import escaped_quote
from rewindow.engine.worker.file_fields import directory_columns, local_files, shown
from rewindow.engine.worker.wrong_values import WHOLE, as_number, not_whole, too_large, wrong_time, wrong_value

_MOST_SECONDS = 10**10
"""More is no number of seconds since 1970, as which json may have a time."""
_NO_CONSTANT = f"write null, or add `options: {{{CONSTANTS_OPTION}: true}}` to the source, which lands it as a DOUBLE"


class _ConstantError(Exception):
    """NaN or Infinity outside of a text."""


def first_bad_value(
    spec: SourceSpec,
    schema: str,
    pieces: Sequence[Piece],
    base: str | None = None,
    needed: Collection[str] | None = None,
    open_ended: Collection[str] = (),
) -> str | None:
    """Return where the first unreadable value is and what is wrong with it; None if this module finds none.

    ``schema`` is the source's, in Spark's JSON. Directories below ``base`` name columns, which are not in the files. Of columns
    that are not ``needed``, values do not matter. ``open_ended`` are the names of CSV files that may be half written.
    """
    every = json.loads(schema or "{}").get("fields", ())
    if needed is not None and (spec.format == "json" or has_header(spec)):
        every = [field for field in every if is_read(field["name"], needed)]
    cut = {Path(piece.path) for piece in pieces if piece.name in open_ended}
    for path in local_files(pieces):
        in_csv = partial(_bad_in_csv, is_named=has_header(spec), is_open=path in cut)
        find = in_csv if spec.format == "csv" else _bad_in_json
        fields = [field for field in every if field["name"] not in directory_columns(str(path), base)]
        try:
            with pa.input_stream(str(path)) as raw, io.TextIOWrapper(raw, encoding_of(spec), newline="") as text:
                found = escaped_quote(path, spec) or next(find(text, fields, lower_options(spec)), None)
        except UnicodeDecodeError:
            return f"{shown(spec, str(path))}, {_not_decoded(str(path), encoding_of(spec))}"
        except (OSError, ValueError, LookupError, csv.Error, pa.ArrowException):
            continue  # nothing to say about this file
        if found is not None:
            return f"{shown(spec, str(path))}, {found}"
    return None


def _not_decoded(path: str, encoding: str) -> str:
    """Return the first line whose bytes are no characters in an encoding."""
    with pa.input_stream(path) as raw:
        data: bytes = raw.read()
    try:
        data.decode(encoding)
        line = 1
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
    name = encoding.upper().removesuffix("-SIG")
    fix = "Convert the file, or, if all files have another encoding, name it, like `options: {encoding: ISO-8859-1}`"
    return f"line {line}: it is not {name}. {fix}"


def _bad_in_csv(
    text: io.TextIOWrapper, fields: Sequence[Any], options: Mapping[str, str], *, is_named: bool, is_open: bool
) -> Iterator[str]:
    lines, null = csv_lines(text, options), options.get("nullvalue", "")
    header = csv_names(next(lines, (0, []))[1], options) if is_named else [field["name"] for field in fields]
    at = positions(header, [field["name"] for field in fields])
    kinds = {at[field["name"]]: field["type"] for field in fields if field["name"] in at}
    is_split = not is_multi_line(options)
    for line, row in lines:
        if is_split and (name := next((name for name, value in zip(header, row, strict=False) if "\n" in value), None)):
            yield f"line {line}, column {name}: a value goes on in the next line, which needs `options: {{multiLine: true}}`"
            return
        if len(row) != len(header):
            is_last = len(row) < len(header) and next(lines, None) is None
            what = "the file may be incomplete: its last line" if is_last else "it"
            yield f"line {line}: {what} has {len(row)} values, but there are {len(header)} columns"
            return
        for index, (value, name) in enumerate(zip(row, header, strict=False)):
            is_given = index in kinds and value not in {"", null}
            if is_given and (wrong := wrong_value(value, kinds[index], options)):
                is_cut = is_open and index == len(row) - 1 and next(lines, None) is None
                cut = ": the file may be incomplete: its last line has no end. Column"
                yield f"line {line}{cut if is_cut else ', column'} {name}: {value!r} {wrong}"
                return


def _bad_in_json(text: io.TextIOWrapper, fields: Sequence[Any], options: Mapping[str, str]) -> Iterator[str]:
    is_whole = is_multi_line(options)
    is_strict = options.get(CONSTANTS_OPTION.lower(), "false").lower() != "true"
    kind = {"type": "struct", "fields": fields}
    for number, line in enumerate([text.read()] if is_whole else text, start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line.rstrip("\r\n"), parse_constant=_constant if is_strict else None)
        except _ConstantError as error:
            yield f"{'' if is_whole else f'line {number}: '}it has {error}, which is not JSON: {_NO_CONSTANT}"
            return
        except json.JSONDecodeError as error:
            if not is_whole and (line.strip() == "{" or line.lstrip().startswith("[")):
                what = "a row or a list of rows is spread over several lines"
                yield f"line {number}: {what}, which needs `options: {{multiLine: true}}`"
                return
            yield f"line {number + error.lineno - 1}, column {error.colno}: it is not JSON ({error.msg})"
            return
        for value in found if isinstance(found, list) else [found]:
            for path, bad, wrong in _wrong_json(value, kind, "", options):
                where = f"field {path}: " if path else ""
                yield f"{'' if is_whole else f'line {number}, '}{where}{json.dumps(bad, ensure_ascii=False)[:80]} {wrong}"


def _constant(text: str) -> NoReturn:
    raise _ConstantError(text)


def _wrong_json(value: Any, kind: Any, path: str, options: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    """Yield the path and the value of each part that is not of its type, and what is wrong with it."""
    match kind:
        case _ if value is None:
            return
        case {"type": "struct", "fields": fields}:
            if not isinstance(value, dict):
                yield path, value, "is not an object"
                return
            for field in fields:
                below = f"{path}.{field['name']}" if path else field["name"]
                yield from _wrong_json(value.get(field["name"]), field["type"], below, options)
        case {"type": "array", "elementType": inner}:
            if not isinstance(value, list):
                yield path, value, "is not a list"
            for item in value if isinstance(value, list) else ():
                yield from _wrong_json(item, inner, path, options)
        case {"type": "map", "valueType": inner}:
            if not isinstance(value, dict):
                yield path, value, "is not an object"
            for name, item in value.items() if isinstance(value, dict) else ():
                yield from _wrong_json(item, inner, f"{path}.{name}", options)
        case "boolean":
            if not isinstance(value, bool):
                yield path, value, "is not true or false"
        case str():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if kind in WHOLE and not (is_number and isinstance(value, int)):
                yield path, value, not_whole(str(value)) if is_number else "is not a number"
            elif kind in WHOLE and (wrong := too_large(value, kind)):
                yield path, value, wrong
            elif (kind in {"float", "double"} or kind.startswith("decimal")) and not is_number:
                yield path, value, "is not a number"
            elif kind in {"float", "double"}:
                if is_beyond(value, kind) and not takes_infinity("json", options):
                    yield path, value, f"is what the parser makes of a number beyond those of {kind.upper()}"
            elif wrong := _wrong_scalar(value, kind, options, is_nested="." in path):
                yield path, value, wrong


def _wrong_scalar(value: Any, kind: str, options: Mapping[str, str], *, is_nested: bool) -> str | None:
    if kind.startswith("decimal"):
        return None if is_nested else beyond_decimal(repr(value), kind)  # Spark rounds those in objects
    if kind.startswith("timestamp") and isinstance(value, int | float) and abs(value) >= _MOST_SECONDS:
        return f"is not a time{as_number(str(value))}"
    return wrong_time(value, kind, options) if isinstance(value, str) else None
