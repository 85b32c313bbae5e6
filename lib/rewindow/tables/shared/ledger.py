"""Ledger rows as both adapters store them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.spec import canonical_json
from rewindow.control.plan.stored_rows import load_stored, stored_json
from rewindow.errors import CheckpointError, InvariantError

_WRITER = "_writer"
"""A token of each append: two writers may append equal rows at one number, and only one of them has won."""


def dated(rows: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Return the rows; those without a time get the current one (`LedgerRow.recorded_at`)."""
    now = now_ms()
    return [replace(row, recorded_at=row.recorded_at or now) for row in rows]


def now_ms() -> int:
    """Return the current time, for `recorded_at`."""
    return time.time_ns() // 1_000_000


def check_numbered(name: str, rows: Sequence[LedgerRow]) -> None:
    """Raise `InvariantError` (70) unless rows to append are numbered one after the other."""
    numbers = [row.seq for row in rows]
    if not rows or numbers[0] < 1 or numbers != list(range(numbers[0], numbers[0] + len(rows))):
        message = f"ledger {name}: rows must be numbered without gaps, got {numbers}"
        raise InvariantError(message)


def new_token() -> str:
    """Return a token for one append."""
    return uuid4().hex


def stored_body(body: Mapping[str, Any], token: str) -> str:
    """Return the text under which a row's body is stored by the append that has this token."""
    return stored_json({**body, _WRITER: token})


def load_body(text: str, table: str) -> tuple[dict[str, Any], str]:
    """Return the body of a stored row and the token of its append.

    Raises `CheckpointError` (76) if it has another format or no token.
    """
    body = load_stored(text, table)
    token = body.pop(_WRITER, None)
    if token is None:
        message = f"{table} has a row without the token of its append: choose another warehouse and land again"
        raise CheckpointError(message)
    return body, token


class Bodies:
    """Reads the bodies of a ledger's rows. Nearly all plans have the same binding, so it is read once, and shared."""

    def __init__(self, table: str) -> None:
        """Bind to a ledger, for error messages."""
        self._table = table
        self._binding: Any = None
        self._text = ""

    def load(self, text: str) -> tuple[dict[str, Any], str]:
        """Return what `load_body` returns."""
        at = text.find(self._text) if self._text else -1
        if at >= 0:  # in a string, the quotation marks of its key would be escaped
            body, token = load_body(f"{text[:at]}{_BINDING}0{text[at + len(self._text) :]}", self._table)
            if body.get("binding") == 0:
                return {**body, "binding": self._binding}, token
        body, token = load_body(text, self._table)
        if "binding" in body:
            self._binding, self._text = body["binding"], _BINDING + canonical_json(body["binding"])
        return body, token


_BINDING = '"binding":'
