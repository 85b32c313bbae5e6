"""Format the difference between the records that a transcript expects and those that were sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import zip_longest
from typing import Any

from rewindow.streams.metrics import KINDS

PARTS = ("topic", "key", "value", "timestamp")


def compared(wanted: Sequence[list[Any]], sent: Sequence[list[Any]]) -> str:
    """Return a line for each record ``[topic, key, value, timestamp]``, with corresponding records next to each other.

    A record that was sent instead of another is marked with the parts that differ.
    """
    return "\n".join(f"{label:>12} {text}" for label, text in _lines(wanted, sent))


def _lines(wanted: Sequence[list[Any]], sent: Sequence[list[Any]]) -> Iterator[tuple[str, str]]:
    texts = [[repr(record) for record in records] for records in (wanted, sent)]
    for tag, a, b, c, d in SequenceMatcher(None, texts[0], texts[1], autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (("as expected", text) for text in texts[0][a:b])
            continue
        for one, other in zip_longest(wanted[a:b], sent[c:d]):
            if one is not None:
                yield "expected", repr(one)
            if other is not None:
                differs = [part for part, x, y in zip(PARTS, one, other, strict=True) if x != y] if one else []
                yield "sent", f"{other!r}" + (f"   <- different {' and '.join(differs)}" if differs else "")
            if one is None:
                yield "", "^ not expected"
            elif other is None:
                yield "", "^ not sent"


def counted(wanted: dict[str, int], rows: Sequence[dict[str, Any]]) -> str:
    """Return the metrics, ``name`` or ``name/reason``, that do not exist or whose totals differ; empty if there are none.

    If both tasks and nodes have a metric (``record-lateness``), the tasks' totals count.
    """
    wrong, known = [], {*KINDS, *(row["name"] for row in rows)}
    for metric, total in wanted.items():
        name, _, reason = metric.partition("/")
        if name not in known:
            close = get_close_matches(name, known, n=1)
            wrong.append(f"there is no metric {name}" + (f": did you mean {close[0]}?" if close else ""))
            continue
        named = [row for row in rows if row["name"] == name and reason in ("", row["reason"])]
        found = sum(row["total"] for row in [row for row in named if row["level"] == "task"] or named)
        if found != total:
            wrong.append(f"{metric} is {found}, not {total}")
    return "; ".join(wrong)
