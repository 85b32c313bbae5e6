"""What a transcript expected beside what was sent, for a person to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

PARTS = ("topic", "key", "value", "timestamp")


def compared(wanted: Sequence[list[Any]], sent: Sequence[list[Any]]) -> str:
    """Return a line for each record ``[topic, key, value, timestamp]``, those that fit beside each other.

    A record that was sent in the place of another is told by the parts in which it differs.
    """
    return "\n".join(f"{what:>12} {one}" for what, one in _lines(wanted, sent))


def _lines(wanted: Sequence[list[Any]], sent: Sequence[list[Any]]) -> Iterator[tuple[str, str]]:
    texts = [[repr(one) for one in side] for side in (wanted, sent)]
    for what, a, b, c, d in SequenceMatcher(None, texts[0], texts[1], autojunk=False).get_opcodes():
        if what == "equal":
            yield from (("as expected", text) for text in texts[0][a:b])
            continue
        for one, other in zip_longest(wanted[a:b], sent[c:d]):
            if one is not None:
                yield "expected", repr(one)
            if other is not None:
                differs = [part for part, x, y in zip(PARTS, one, other, strict=True) if x != y] if one else []
                yield "sent", f"{other!r}" + (f"   <- another {' and '.join(differs)}" if differs else "")
            if one is None:
                yield "", "^ too much"
            elif other is None:
                yield "", "^ was not sent"


def counted(wanted: dict[str, int], rows: Sequence[dict[str, Any]]) -> str:
    """Return the metrics, ``name`` or ``name/reason``, whose totals are others than wanted; nothing if all fit.

    Of a metric that both tasks and nodes have (``record-lateness``) the tasks' counts.
    """
    wrong = []
    for what, total in wanted.items():
        name, _, reason = what.partition("/")
        named = [row for row in rows if row["name"] == name and reason in ("", row["reason"])]
        found = sum(row["total"] for row in [row for row in named if row["level"] == "task"] or named)
        if found != total:
            wrong.append(f"{what} is {found}, not {total}")
    return "; ".join(wrong)
