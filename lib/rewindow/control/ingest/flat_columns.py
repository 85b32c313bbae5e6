"""Warn about a landed column that has no values, or suddenly only one. Pure.

Each landing records its flat columns, so that the next can tell what is new. Small landings say nothing: in few records a
column may be constant by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewindow.contracts.landing import Block

ENOUGH = 100
"""Records of a landing, from which a flat column says something."""

Flat = Mapping[str, str | None]
"""Column -> its only value as text; None if it has only nulls."""


def flat_columns(blocks: Sequence[Block], before: Flat | None) -> Flat | None:
    """Return the flat columns of one landing of a topic.

    They are those of the landing before if this one is too small to tell, and None if nothing is known.
    """
    found = [block for block in blocks if block.end > block.start]
    rows = sum(block.end - block.start for block in found)
    if not found or any(block.flat is None for block in found) or (before is not None and rows < ENOUGH):
        return before
    first, *others = (block.flat or {} for block in found)
    return {
        name: value for name, value in first.items() if all(name in other and other[name] == value for other in others)
    }


def flat_now(body: Mapping[str, Any] | None) -> dict[str, Flat]:
    """Return the flat columns of each topic that a landing's ledger row records."""
    return dict(body.get("flat", {})) if body else {}


def warnings(feed: str, landing: int, before: Mapping[str, Flat], now: Mapping[str, Flat]) -> Iterator[str]:
    """Yield a sentence for each column that is null in the first landing, or flat in this one and not before."""
    for topic, columns in sorted(now.items()):
        known = before.get(topic)
        for name, value in columns.items():
            if value is None and (known is None or known.get(name, "") is not None):
                yield f"feed {feed}, landing {landing}: the column {name} of {topic} is null in every record"
            elif value is not None and known is not None and name not in known:
                yield f"feed {feed}, landing {landing}: the column {name} of {topic} is suddenly {value!r} in every record"
