"""The DDL text of ``schema:``, which declares a source's fields (``id BIGINT, at TIMESTAMP``), parsed into Spark's JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

from rewindow.contracts.ingest import LogSpec
from rewindow.contracts.text_options import CSV, JSON
from rewindow.errors import ConfigError

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
    """Return the columns of a DDL text with their types. Raises the errors of `declared_schema`."""
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
