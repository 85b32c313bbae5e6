"""Conditions as text, in a small subset of SQL. Unlike functions, they can be evaluated on whole columns.

    amount >= 10 and (country in ('de', 'fr') or country is null) and not is_test

Names are fields of the value. If no field has this name, ``value``, ``key`` and ``timestamp`` (epoch ms) are those of the
record. Literals are integers, floats with a decimal point, 'texts' (with '' for a quote), true and false. A literal that is
compared with a decimal is read as a decimal, so ``amount = 40.85`` is exact. A comparison (= <> != < <= > >=, between, in)
with a null is null. ``and``, ``or`` and ``not`` treat null as SQL does. Only records for which the condition is true are
kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rewindow.dsl.operators.expressions import Literal, Look, Name, Reader, Term

Truth = bool | None

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison. If an operand is null, the result is null."""

    operator: str
    left: Term
    right: Term

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"

    def truth(self, look: Look) -> Truth:
        """Return the truth value; None means null."""
        left, right = self.left.value(look), self.right.value(look)
        if left is None or right is None:
            return None
        if left.__class__ is Decimal or right.__class__ is Decimal:
            left, right = self._as_in_sql(left, right)
        return bool(OPERATORS[self.operator](left, right))

    def _as_in_sql(self, left: Any, right: Any) -> tuple[Any, Any]:
        """Convert operands as in SQL. At least one of them is a decimal.

        A float literal becomes the decimal with the same digits, because no float is exactly 40.85 (ADR-143). If another
        operand is a float, both become floats.
        """
        if left.__class__ is float:
            return (Decimal(repr(left)), right) if isinstance(self.left, Literal) else (left, float(right))
        if right.__class__ is float:
            return (left, Decimal(repr(right))) if isinstance(self.right, Literal) else (float(left), right)
        return left, right


@dataclass(frozen=True, slots=True)
class IsNull:
    """A test for null. The result is never null."""

    term: Term

    def __str__(self) -> str:
        return f"{self.term} is null"

    def truth(self, look: Look) -> Truth:
        """Return the truth value."""
        return self.term.value(look) is None


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a condition. If the condition is null, so is the result."""

    negated: Condition

    def __str__(self) -> str:
        return f"not ({self.negated})"

    def truth(self, look: Look) -> Truth:
        """Return the truth value; None means null."""
        truth = self.negated.truth(look)
        return None if truth is None else not truth


@dataclass(frozen=True, slots=True)
class Both:
    """A conjunction (``decides`` is False) or disjunction (``decides`` is True).

    If a side equals ``decides``, the result is ``decides``. Otherwise, if a side is null, the result is null.
    """

    decides: bool
    left: Condition
    right: Condition

    def __str__(self) -> str:
        return f"({self.left} {'or' if self.decides else 'and'} {self.right})"

    def truth(self, look: Look) -> Truth:
        """Return the truth value; None means null."""
        left, right = self.left.truth(look), self.right.truth(look)
        if left is self.decides or right is self.decides:
            return self.decides
        return None if left is None or right is None else not self.decides


Condition = Compare | IsNull | Not | Both


def parse(text: str) -> Condition:
    """Parse a condition. Raises `ConfigError`, which names the wrong token."""
    return _Reader(text, "where").whole()


def names_in(condition: Condition) -> Iterator[str]:
    """Yield the names of fields, key, value and timestamp that a condition uses."""
    if isinstance(condition, Both):
        yield from names_in(condition.left)
        yield from names_in(condition.right)
    elif isinstance(condition, Not):
        yield from names_in(condition.negated)
    else:
        terms = (condition.left, condition.right) if isinstance(condition, Compare) else (condition.term,)
        yield from (term.name for term in terms if isinstance(term, Name))


def compares_in(condition: Condition) -> Iterator[Compare]:
    """Yield the comparisons in a condition."""
    if isinstance(condition, Both):
        yield from compares_in(condition.left)
        yield from compares_in(condition.right)
    elif isinstance(condition, Not):
        yield from compares_in(condition.negated)
    elif isinstance(condition, Compare):
        yield condition


class _Reader(Reader):
    """A recursive descent parser: ``or`` binds loosest, then ``and``, then ``not``."""

    def whole(self) -> Condition:
        condition = self._either()
        if self._next():
            raise self._wrong("the condition ends before")
        return condition

    def _either(self) -> Condition:
        left = self._all()
        while self._takes("or"):
            left = Both(True, left, self._all())
        return left

    def _all(self) -> Condition:
        left = self._operand()
        while self._takes("and"):
            left = Both(False, left, self._operand())
        return left

    def _operand(self) -> Condition:
        if self._takes("not"):
            return Not(self._nested(self._operand))
        if self._takes("("):
            condition = self._nested(self._either)
            self._needs(")")
            return condition
        left = self._term()
        if self._takes("is"):
            is_negated = self._takes("not")
            self._needs("null")
            return Not(IsNull(left)) if is_negated else IsNull(left)
        is_negated = self._takes("not")
        condition = self._compared(left, is_negated=is_negated)
        return Not(condition) if is_negated else condition

    def _compared(self, left: Term, *, is_negated: bool) -> Condition:
        if self._takes("between"):
            least = self._term()
            self._needs("and")
            return Both(False, Compare(">=", left, least), Compare("<=", left, self._term()))
        if self._takes("in"):
            self._needs("(")
            condition: Condition = Compare("=", left, self._term())
            while self._takes(","):
                condition = Both(True, condition, Compare("=", left, self._term()))
            self._needs(")")
            return condition
        sign = "<>" if self._next() == "!=" else self._next()
        if sign in OPERATORS and not is_negated:
            self._at += 1
            return Compare(sign, left, self._term())
        if isinstance(left, Name) and not is_negated:
            return Compare("=", left, Literal(True))
        raise self._wrong("a comparison, `between` or `in` is missing before")
