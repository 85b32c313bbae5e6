"""Expressions as text, in a small subset of SQL: the terms of conditions, and the fields of `select`.

    price * (pieces - 1) + 0.5

Names and literals are written as in `conditions`. ``+ - *`` work on integers and floats as in Python: the result of two integers
is an integer, any other result is a float. If an operand is null, the result is null.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from rewindow.errors import ConfigError, DataError

Look = Callable[[str], Any]
"""A function that returns the value of a name in the record for which an expression is evaluated."""

Part = TypeVar("Part")
COMPUTED: Mapping[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
MOST_CHARACTERS, MOST_NESTED, MOST_TERMS, MOST_DIGITS = 100_000, 50, 200, 100
"""The largest numbers of characters, nested levels, names and literals, and digits in the text of a `where` or `select`. The
limit of names and literals also holds for each field of `select`."""
_LONGEST_SHOWN = 300
_TOKEN = re.compile(r"\s*(?:(\d+\.\d+|\d+)|('(?:[^']|'')*')|([A-Za-z_]\w*)|(<=|>=|<>|!=|[=<>(),+*-]))")
_INSTEAD = {
    "==": "write `=` for equality",
    "&&": "write `and`",
    "||": "write `or`",
    "!": "write `not`",
    "/": "there is no division, use map_values or filter",
    "%": "there is no remainder, use map_values or filter",
    '"': "write texts in single quotes",
    "null": "write `is null` or `is not null`",
    "like": "there is no like, use filter",
    "(": "there are no functions, use filter or map_values",
    "+": "compute it with select or filter",
    "-": "compute it with select or filter",
    "*": "compute it with select or filter",
}
"""What to write instead of a token of another language."""
_TRUTHS = frozenset(("true", "false"))
_WORDS = frozenset(("and", "or", "not", "in", "is", "null", "true", "false", "between", "as"))


@dataclass(frozen=True, slots=True)
class Name:
    """A field, or ``key``, ``value`` or ``timestamp``."""

    name: str

    def __str__(self) -> str:
        return self.name

    def value(self, look: Look) -> Any:
        """Return the value of the name."""
        return look(self.name)


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, true or false."""

    constant: Any

    def __str__(self) -> str:
        if isinstance(self.constant, str):
            return "'" + self.constant.replace("'", "''") + "'"
        return str(self.constant).lower()

    def value(self, look: Look) -> Any:
        """Return the constant."""
        del look
        return self.constant


Term = Name | Literal


@dataclass(frozen=True, slots=True)
class Computed:
    """A sum, difference or product. If an operand is null, the result is null."""

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"

    def value(self, look: Look) -> Any:
        """Return the result. Raises `DataError` for an operand that is neither an integer nor a float."""
        left, right = self.left.value(look), self.right.value(look)
        for operand in (left, right):
            if operand is not None and operand.__class__ not in (int, float):
                raise DataError(
                    "computed-value-not-number",
                    "{expression} of {given} ({type}): it takes whole numbers and floats; use map_values for other "
                    "types",
                    expression=str(self),
                    given=repr(operand),
                    type=type(operand).__name__,
                )
        return None if left is None or right is None else COMPUTED[self.operator](left, right)


Expression = Name | Literal | Computed


def names_of_expression(expression: Expression) -> Iterator[str]:
    """Yield the names in an expression."""
    if isinstance(expression, Computed):
        yield from names_of_expression(expression.left)
        yield from names_of_expression(expression.right)
    elif isinstance(expression, Name):
        yield expression.name


class Reader:
    """A recursive descent parser. A syntax error raises `ConfigError`, which names the wrong token and the ``verb``.

    Because of the bounds, no recursion over a parsed text comes near Python's limit.
    """

    def __init__(self, text: str, verb: str) -> None:
        self._text, self._verb, self._at, self._terms, self._level = text, verb, 0, 0, 0
        self._check("characters", len(text), MOST_CHARACTERS)
        self._tokens = list(self._split())

    def _check(self, what: str, count: int, most: int) -> None:
        if count > most:
            raise ConfigError(
                "expression-too-large",
                "the text of {verb} has more than {most:,} {what}, the most that are read: use filter or map_values instead",
                verb=self._verb,
                what=what,
                most=most,
            )

    def _expression(self) -> Expression:
        left = self._product()
        while self._next() in ("+", "-"):
            sign = self._take()
            left = Computed(sign, left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._factor()
        while self._takes("*"):
            left = Computed("*", left, self._factor())
        return left

    def _factor(self) -> Expression:
        if not self._takes("("):
            return self._term()
        inner = self._nested(self._expression)
        self._needs(")")
        return inner

    def _nested(self, read: Callable[[], Part]) -> Part:
        """Read a part in parentheses, or a part after `not` or `-`."""
        self._level += 1
        self._check("nested levels", self._level, MOST_NESTED)
        part = read()
        self._level -= 1
        return part

    def _term(self) -> Term:
        if self._takes("-"):
            term = self._nested(self._term)
            if isinstance(term, Literal) and term.constant.__class__ in (int, float):
                return Literal(-term.constant)
            raise self._wrong("`-` is for numbers, before")
        said, word = self._next(), self._next().lower()
        if not (said[:1] == "'" or said[:1].isalnum() or said[:1] == "_") or word in _WORDS - _TRUTHS:
            raise self._wrong("a name or a literal is missing before")
        self._at += 1
        self._terms += 1
        self._check("names and literals", self._terms, MOST_TERMS)
        if word in _TRUTHS:
            return Literal(word == "true")
        if said[0] == "'":
            return Literal(said[1:-1].replace("''", "'"))
        if said[0].isdigit():
            self._check("digits in a number", len(said), MOST_DIGITS)
            return Literal(float(said) if "." in said else int(said))
        return Name(said)

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes(self, word: str) -> bool:
        is_there = self._next().lower() == word
        self._at += is_there
        return is_there

    def _needs(self, word: str) -> None:
        if not self._takes(word):
            raise self._wrong(f"`{word}` is missing before")

    @property
    def _shown(self) -> str:
        return self._text if len(self._text) <= _LONGEST_SHOWN else f"{self._text[:_LONGEST_SHOWN]} ..."

    def _wrong(self, problem: str) -> ConfigError:
        before = self._tokens[self._at - 1] if self._at else ""
        instead = _instead("==" if before == self._next() == "=" else self._next())
        return ConfigError(
            "expression-syntax-wrong",
            "{verb}({text!r}): {problem} {token!r}{fix}",
            verb=self._verb,
            text=self._shown,
            problem=problem,
            token=self._next() or "the end",
            fix=instead,
        )

    def _split(self) -> Iterator[str]:
        position, text = 0, self._text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                rest = text[position:].strip()
                raise ConfigError(
                    "expression-sign-unknown",
                    "{verb}({text!r}): cannot read {rest!r}{fix}",
                    verb=self._verb,
                    text=self._shown,
                    rest=rest[:_LONGEST_SHOWN],
                    fix=_instead(rest),
                )
            yield match[0].strip()
            position = match.end()


def _instead(text: str) -> str:
    """Return the advice for a text that begins with a token of another language; empty for other texts."""
    return next((f": {fix}" for sign, fix in _INSTEAD.items() if text.lower().startswith(sign)), "")
