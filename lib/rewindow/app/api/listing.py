"""The feeds or jobs of a project with their status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rewindow.app.api.show import joined, table
from rewindow.app.listing import Entry


class Listing(tuple[Entry, ...]):
    """Entries, each with ``name``, ``status`` and what else `rewindow ls` shows, in the order of their names."""

    __slots__ = ()

    @property
    def names(self) -> list[str]:
        """The names of the entries."""
        return [entry.name for entry in self]

    def __repr__(self) -> str:
        return ", ".join(f"{entry.name} ({_words(entry)})" for entry in self) or "none"

    def _repr_html_(self) -> str:
        return joined(table("", list(_rows(self))))


def _rows(entries: Listing) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield _row(entry.name, entry)
        yield from (_row(f"{entry.name} {branch.name}", branch) for branch in entry.branches)


def _row(name: str, entry: Entry) -> dict[str, Any]:
    detail = (entry.detail or "").split("\n", maxsplit=1)[0]
    return {
        "name": name,
        "status": _words(entry),
        "landing": entry.epoch,
        "watermark_ms": entry.watermark_ms,
        "detail": detail,
    }


def _words(entry: Entry) -> str:
    return entry.status.value.replace("_", " ")
