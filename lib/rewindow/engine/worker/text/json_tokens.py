"""The exact grammar of JSON: which texts are accepted, and where their raw tokens are.

The grammar is that of RFC 8259 with three further rules: a field occurs only once in an object, a string has no half
surrogate pairs, and values are nested at most `MAX_DEPTH` levels deep. This module checks the three rules. Python's scanner
checks the grammar itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

MAX_DEPTH = 200
"""Objects and lists are nested at most this deep. Python's scanner, and later readers of the values, recurse once per level."""

_blanks = re.compile(r"[ \t\r\n]*").match
_colon = re.compile(r"[ \t\r\n]*:[ \t\r\n]*").match
_comma = re.compile(r"[ \t\r\n]*,[ \t\r\n]*").match
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
# An escaped surrogate. Only texts with an escaped surrogate are searched for half pairs.
_may_have_half = re.compile(r"\\u[dD][89a-fA-F]").search
_half = re.compile("[\ud800-\udfff]").search


class Member(NamedTuple):
    """A field of an object: its name (escapes decoded), and where the raw token of its value starts and ends in the text."""

    name: str
    start: int
    end: int


class TokenError(ValueError):
    """What is wrong with a text that should be JSON."""


def members(text: str, *, constants: bool = False) -> list[Member]:
    """Return the fields of a text that is exactly one object. Raises `TokenError` for any other text.

    ``constants`` accepts ``NaN``, ``Infinity`` and ``-Infinity`` as values.
    """
    position = _after_blanks(text, 0)
    if not text.startswith("{", position):
        is_list = text.startswith("[", position)
        raise TokenError("a list, which needs `lines: multiple`" if is_list else _located("no object", position))
    if text.strip() == "{":
        raise TokenError("the beginning of an object over several lines, which needs `lines: multiple`")
    fields = list(_parts(text, position, "}", constants=constants))
    if len({field.name for field in fields}) < len(fields):
        _unique([(field.name, None) for field in fields])
    return fields


def items(text: str, *, constants: bool = False) -> list[Member]:
    """Return the elements of a text that is exactly one list, as members with empty names.

    Raises `TokenError` for any other text.
    """
    position = _after_blanks(text, 0)
    if not text.startswith("[", position):
        raise TokenError(_located("no list", position))
    return list(_parts(text, position, "]", constants=constants))


def _parts(text: str, position: int, closing: str, *, constants: bool) -> Iterator[Member]:
    """Yield the members of the object or list that begins at a position. Check that nothing follows the object or list."""
    _check_depth(text)
    decode = _DECODERS[constants].raw_decode
    is_object = closing == "}"
    position = _after_blanks(text, position + 1)
    is_over = text.startswith(closing, position)
    name = ""
    try:
        while not is_over:
            if is_object:
                if not text.startswith('"', position):
                    raise TokenError(_located("no field name in quotes", position))
                name, end = decode(text, position)
                _check_halves(name, text, position, end)
                colon = _colon(text, end)
                if colon is None:
                    raise TokenError(_located("no colon after a field name", end))
                position = colon.end()
            value, end = decode(text, position)
            _check_halves(value, text, position, end)
            yield Member(name, position, end)
            comma = _comma(text, end)
            if comma is None:
                position = _after_blanks(text, end)
                is_over = text.startswith(closing, position)
                if not is_over:
                    raise TokenError(_located(f"no comma or {closing} after a value", position))
            else:
                position = comma.end()
    except json.JSONDecodeError as error:
        raise TokenError(_located(_reason(error.msg), error.pos)) from None
    except RecursionError:
        raise TokenError(f"nested more than {MAX_DEPTH} levels deep") from None
    end = _after_blanks(text, position + 1)
    if end < len(text):
        raise TokenError(_located("text after its end", end))


def _after_blanks(text: str, position: int) -> int:
    blanks = _blanks(text, position)
    return blanks.end() if blanks else position


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        name = next(name for name in names if names.count(name) > 1)
        raise TokenError(f"the field {json.dumps(name)} occurs twice")
    return fields


def _refuse_constant(name: str) -> Any:
    raise TokenError(f"{name} is not a JSON number")


def _check_halves(value: Any, text: str, start: int, end: int) -> None:
    if _may_have_half(text, start, end) and _half(json.dumps(value, ensure_ascii=False)):
        raise TokenError(_located("half a character (a surrogate without its pair)", start))


def _check_depth(text: str) -> None:
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    depth = 0
    for sign in re.findall(r"[\[{}\]]", _STRING.sub('""', text)):
        depth += 1 if sign in "{[" else -1
        if depth > MAX_DEPTH:
            raise TokenError(f"nested more than {MAX_DEPTH} levels deep")


def _reason(message: str) -> str:
    """Translate an error message of Python's scanner into words that do not depend on the version of Python."""
    for part, reason in _REASONS.items():
        if part in message.lower():
            return reason
    return "no JSON"


_REASONS = {
    "control character": "a control character in a string",
    "unterminated": "a string without an end",
    "escape": "an invalid escape in a string",
    "trailing comma": "a comma too many",
    "property name": "no field name in quotes",
    "delimiter": "a value goes on after its end",
    "expecting value": "no value",
}


def _located(reason: str, position: int) -> str:
    return f"{reason} (character {position + 1})"


# The decoders are made once, because making one takes longer than decoding a short text. Numbers stay texts, because Python's
# `int` refuses more than 4300 digits.
_DECODERS = {
    constants: json.JSONDecoder(
        object_pairs_hook=_unique,
        parse_float=str,
        parse_int=str,
        parse_constant=str if constants else _refuse_constant,
    )
    for constants in (False, True)
}
