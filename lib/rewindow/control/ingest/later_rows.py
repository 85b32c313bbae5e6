"""Which landed files still hold rows of later intervals, and from when. Pure.

With ``every``, a file may have rows of an interval that is not over. Each landing records the first arrival of such rows, by
file, in the position of the source. So neither the next landing nor `status` reads a landed file to learn that nothing in it
is due (ADR-122).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rewindow.contracts.ingest import LATER, SourceLook

Later = Mapping[str, int]
"""Landed file -> the first arrival (epoch ms) of its rows that are not landed. Files without such rows are not in it."""


def later_rows(position: Mapping[str, Any] | None) -> Later | None:
    """Return what a source's position records; None if it records nothing, and any landed file may hold later rows.

    That of a table lists commits, whose rows `look_at_table` finds again.
    """
    later = None if position is None else position.get(LATER)
    return later if isinstance(later, Mapping) else None


def without_finished(look: SourceLook, position: Mapping[str, Any] | None, until_ms: int) -> SourceLook:
    """Return a look at files without the landed ones of which no row arrived before ``until_ms``, as far as that is recorded."""
    known = later_rows(position)
    if known is None:
        return look
    return replace(look, rest=tuple(piece for piece in look.rest if known.get(piece.name, until_ms) < until_ms))


def with_later(look: SourceLook, position: Mapping[str, Any] | None, found: Later) -> SourceLook:
    """Return a look whose position records the later rows of all landed files.

    ``found`` are those of the files in the look, ``position`` is the one before: it knows the others.
    """
    looked_at = {piece.name for piece in (*look.rest, *look.fresh)}
    kept = {name: first for name, first in (later_rows(position) or {}).items() if name not in looked_at}
    return replace(look, position={**look.position, LATER: dict(sorted({**kept, **found}.items()))})
