"""The fields of a source's files: columns of Parquet files, headers of CSV files, and fields that ``schema:`` declares.

Only footers and first lines are read. If a file cannot be read, it has no fields here. The landing reports what is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.ingest import LogColumns, LogSpec, Piece, SourceLook, SourceSpec
from rewindow.contracts.source_fields import (
    FileFields,
    SourceFields,
    fields_of_schema,
    positions,
    repeated_names,
    role_of,
    written,
)
from rewindow.contracts.text_options import CSV, JSON, text_options
from rewindow.engine.worker.text.csv_records import csv_header
from rewindow.engine.worker.text.file_text import BadTextError, Part, read_blocks
from rewindow.engine.worker.text.reading import header_of
from rewindow.errors import ConfigError, RewindowError, SourceError, StorageError
from rewindow.storage.locations import is_uri


def stored_fields(spec: LogSpec, columns: LogColumns, look: SourceLook) -> SourceFields:
    """Return the fields of a log's schema, and the fields of the files to land, from their headers and footers.

    For a table, the fields of the table's schema are returned instead of the files' fields.
    """
    of_schema, structs, _ = fields_of_schema(json.loads(columns.source_schema or "{}"))
    pieces = look.fresh or look.rest
    if look.schema is not None:
        present, _, _ = fields_of_schema(json.loads(look.schema))
        files = [FileFields(spec.source.name, present)]
    elif spec.source.format == "csv":
        files = csv_fields(spec.source, pieces, look.base)
    else:
        files = parquet_fields(spec.source, pieces, look.base)
    return SourceFields(of_schema, structs, tuple(files), ignores_case=True)


def check_not_empty(pieces: Sequence[Piece]) -> None:
    """Raise `StorageError` (74) for a file without bytes, which Spark would skip. Only text formats allow empty files."""
    for path in local_files(pieces):
        if not path.stat().st_size:
            raise StorageError(
                "file-empty",
                "{file} is empty: it is corrupt or not written yet. Restore it or wait for it, then land again",
                file=path,
            )


def parquet_fields(spec: SourceSpec, pieces: Sequence[Piece], base: str | None = None) -> list[FileFields]:
    """Return the fields of Parquet files, including columns in the names of directories below ``base`` (``year=2013``)."""
    files = []
    for path in local_files(pieces):
        try:
            schema = pq.read_schema(path)
        except (OSError, pa.ArrowException):
            continue
        fields = {name for field in schema for name in _below(field.name, field.type)}
        files.append(FileFields(shown(spec, str(path)), frozenset(fields | directory_columns(str(path), base))))
    return files


def csv_fields(spec: SourceSpec, pieces: Sequence[Piece], base: str | None = None) -> list[FileFields]:
    """Return the columns in the headers of CSV files and in the names of their directories. Skips files without a header."""
    files = []
    for path in local_files(pieces):
        columns = csv_columns(spec, str(path))
        if columns is not None:
            fields = frozenset({*columns, *directory_columns(str(path), base)})
            name, header = shown(spec, str(path)), tuple(columns)
            files.append(FileFields(name, fields, header=header, repeated=repeated_names(columns)))
    return files


def csv_columns(spec: SourceSpec, path: str) -> tuple[str, ...] | None:
    """Return the columns in a CSV file's header; None if the file has no header, or cannot be read."""
    options = text_options(spec.format, spec.options)
    if spec.format != CSV or not options.header:
        return None
    try:
        return header_of(path, options) or None
    except (BadTextError, RewindowError, OSError):
        # The landing reports what is wrong with this file.
        return None


def check_has(spec: LogSpec, path: str, header: Sequence[str], needed: Collection[str]) -> None:
    """Raise `SourceError` (66) for a file that lacks a needed column. A column in ``optional:`` may be missing.

    Without the error, the missing column would be landed as null.
    """
    present = {*positions(header, needed), *positions(spec.optional, needed)}
    missing = [name for name in sorted(needed) if name not in present]
    if missing:
        names = ", ".join(missing)
        role = role_of(spec, missing)
        ways = f"or set `optional: [{names}]` to land null where it is missing"
        raise SourceError(
            "file-column-missing",
            "log {topic}: {file} has no column {columns}. It has {found}. {fix}",
            topic=spec.topic,
            file=Path(path).name,
            columns=names,
            found=", ".join(map(written, header)),
            fix=f"{role}. Fix the file, or remove it" if role else f"Fix the file, {ways}",
        )


def has_rows(spec: SourceSpec, path: str) -> bool:
    """Return whether a file has rows. Files without rows may have equal bytes without being copies of each other."""
    try:
        if spec.format == "parquet":
            return bool(pq.read_metadata(path).num_rows)
        options = text_options(spec.format, spec.options)
        is_header = spec.format == CSV and options.header
        for block in read_blocks(Part(path), options, size=1):
            data = block.data
            if is_header:
                header = csv_header(data, options)
                if header is None:
                    continue
                data, is_header = data[header[1] :], False
            if data.strip():
                return True
    except (OSError, pa.ArrowException, BadTextError, RewindowError):
        # The landing reports what is wrong with the file.
        return True
    return False


def directory_columns(path: str, base: str | None) -> set[str]:
    """Return the columns in the names of a path's directories below ``base``; an empty set without ``base``."""
    if base is None or not path.startswith(f"{base}/"):
        return set()
    return {part.partition("=")[0] for part in Path(path).relative_to(base).parts[:-1] if "=" in part}


def shown(spec: SourceSpec, path: str) -> str:
    """Return a file's name for messages: the configured name, or the path below the configured folder."""
    location = spec.location.rstrip("/")
    if path == location:
        return spec.name
    return path.removeprefix(f"{location}/") if path.startswith(f"{location}/") else path


def _below(name: str, kind: pa.DataType) -> Iterator[str]:
    yield name
    # The keys of a map are data, not fields.
    if pa.types.is_map(kind):
        return
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _below(f"{name}.{field.name}", field.type)


def local_files(pieces: Sequence[Piece]) -> list[Path]:
    """Return the files of a source that are on a local disk."""
    return [Path(piece.path) for piece in pieces if not is_uri(piece.path) and Path(piece.path).is_file()]


_SIMPLE: Mapping[str, str] = {
    **dict.fromkeys(("tinyint", "byte"), "byte"),
    **dict.fromkeys(("smallint", "short"), "short"),
    **dict.fromkeys(("int", "integer"), "integer"),
    **dict.fromkeys(("bigint", "long"), "long"),
    **dict.fromkeys(("float", "real"), "float"),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), "timestamp"),
    **{name: name for name in ("double", "string", "boolean", "binary", "date", "timestamp_ntz")},
}
_DECIMALS, _TEXTS, _NESTED = ("decimal", "dec", "numeric"), ("char", "varchar"), ("struct", "array", "map")
_EVERY = (*_SIMPLE, "decimal", *_TEXTS, *_NESTED, "json")
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|(\w+)|([<>(),:])|(\S))")
_MOST_DIGITS = 38
_MOST_NESTED = 50
_NUMBER = re.compile(r"[0-9]{1,9}")


def declared_schema(spec: LogSpec, ddl: str) -> str:
    """Return the schema (Spark's JSON) of a DDL text. Raises `ConfigError` (78) if the text is not accepted."""
    return json.dumps({"type": "struct", "fields": _Parser(spec, ddl).columns()})


def declared_columns(spec: LogSpec, ddl: str) -> dict[str, Any]:
    """Return the columns of a DDL text with their types. Raises as `declared_schema`."""
    return {field["name"]: field["type"] for field in json.loads(declared_schema(spec, ddl))["fields"]}


class _Token(NamedTuple):
    text: str
    is_name: bool = False
    is_quoted: bool = False


class _Parser:
    """A parser of columns: ``name TYPE, name TYPE``."""

    def __init__(self, spec: LogSpec, ddl: str) -> None:
        self._spec, self._tokens = spec, [*_tokens(ddl), _Token("")]
        self._position = self._depth = 0

    def columns(self) -> list[dict[str, Any]]:
        fields = list(self._fields(""))
        names = [field["name"].lower() for field in fields]
        if repeated := next((name for name in names if names.count(name) > 1), None):
            self._refuse(f"declares {repeated} twice, in capitals or not")
        return fields

    def _fields(self, end: str) -> Iterator[dict[str, Any]]:
        while True:
            yield self._field()
            sign = self._next().text
            if sign == end:
                return
            if sign != ",":
                self._refuse(f"has {sign!r} where a comma is expected")

    def _field(self) -> dict[str, Any]:
        name = self._next()
        if not (name.is_name or name.is_quoted):
            self._refuse(f"has {name.text!r} where the name of a column is expected" if name.text else "ends too early")
        if self._peek().text == ":":
            self._next()
        kind = self._next()
        if kind.text in {"", ",", ">"}:
            self._refuse(f"has no type for {name.text}: write {name.text} STRING, or another type")
        if not kind.is_name:
            self._refuse(
                f"needs backticks around a name with signs other than letters, digits and _, like `` `{name.text}{kind.text}` ``"
            )
        return {"name": name.text, "nullable": True, "metadata": {}, "type": self._type(name.text, kind)}

    def _type(self, name: str, kind: _Token) -> Any:
        word = kind.text.lower()
        if self._spec.source.format == CSV and word in (*_NESTED, JSON):
            self._refuse(f"declares {name} as {word.upper()}, which csv files do not have: declare STRING")
        if word in _SIMPLE:
            return _SIMPLE[word]
        if word == JSON:
            return JSON
        if word in _DECIMALS:
            return self._decimal()
        if word in _TEXTS:
            self._numbers()
            return "string"
        if word not in _NESTED:
            near = get_close_matches(word, _EVERY, 1)
            hint = f"did you mean {near[0].upper()}?" if near else "write a type such as STRING, BIGINT or TIMESTAMP"
            self._refuse(f"gives {name} the unknown type {kind.text}: {hint}")
        self._depth += 1
        if self._depth > _MOST_NESTED:
            self._refuse(f"nests types more than {_MOST_NESTED} levels deep")
        made = self._nested(name, word)
        self._depth -= 1
        return made

    def _nested(self, name: str, word: str) -> dict[str, Any]:
        self._expect("<")
        if word == "struct":
            return {"type": "struct", "fields": list(self._fields(">"))}
        if word == "array":
            item = self._type(name, self._next())
            self._expect(">")
            return {"type": "array", "elementType": item, "containsNull": True}
        if self._next().text.lower() != "string":
            self._refuse(f"gives the map {name} keys of another type than STRING")
        self._expect(",")
        value = self._type(name, self._next())
        self._expect(">")
        return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}

    def _decimal(self) -> str:
        digits, scale = (*self._numbers(), 0, 0)[:2] if self._peek().text == "(" else (10, 0)
        if not (0 < digits <= _MOST_DIGITS and 0 <= scale <= digits):
            self._refuse(
                f"has DECIMAL({digits},{scale}): a decimal has 1 to {_MOST_DIGITS} digits, and its scale is at most this number"
            )
        return f"decimal({digits},{scale})"

    def _numbers(self) -> list[int]:
        """Return the numbers in parentheses."""
        self._expect("(")
        numbers: list[int] = []
        while True:
            number = self._next().text
            if not _NUMBER.fullmatch(number):
                self._refuse(f"has {number!r} where a number is expected")
            numbers.append(int(number))
            sign = self._next().text
            if sign == ")":
                return numbers
            if sign != ",":
                self._refuse(f"has {sign!r} where ) is expected")

    def _expect(self, text: str) -> None:
        if (token := self._next().text) != text:
            self._refuse(f"has {token!r} where {text} is expected")

    def _peek(self) -> _Token:
        return self._tokens[self._position]

    def _next(self) -> _Token:
        token = self._tokens[self._position]
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token

    def _refuse(self, reason: str) -> NoReturn:
        raise ConfigError("schema-not-usable", "log {topic}: `schema` {reason}", topic=self._spec.topic, reason=reason)


def _tokens(ddl: str) -> Iterator[_Token]:
    for quoted, word, sign, other in _TOKEN.findall(ddl):
        if quoted:
            yield _Token(quoted[1:-1].replace("``", "`"), is_quoted=True)
        elif word:
            yield _Token(word, is_name=True)
        else:
            yield _Token(sign or other)
