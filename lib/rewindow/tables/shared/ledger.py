"""Ledger rows as both adapters store them, and the states of jobs that are folded from ledger rows.

A stored fold is the state after a ledger's first rows. It is stored as a line of text and compressed bytes (ADR-127). The
line contains the digest of the compressed bytes and their size before compression. The decompressed bytes are a line of JSON
(the head) and the lines of the fold.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import pyarrow as pa

from rewindow.control.plan.job_fold import fold, fold_row
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.spec import canonical_json
from rewindow.control.plan.stored_rows import FORMAT, StoredFold, StoredRows, known_part, load_stored, stored_json
from rewindow.control.plan.stored_state import LAYOUT, state_lines, state_of
from rewindow.errors import CheckpointError, InvariantError

_WRITER = "_writer"
"""In a stored body, the key of the token of the row's append.

Two writers may append equal rows with equal numbers. The token shows which of them succeeded.
"""
_BINDING = '"binding":'
_CODEC = "zstd"
_VERSION = [FORMAT, LAYOUT]
_DIGEST_BYTES = 16


def dated(rows: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Return the rows with a time: a row without a time gets the current time (`LedgerRow.recorded_at`)."""
    now = now_ms()
    return [replace(row, recorded_at=row.recorded_at or now) for row in rows]


def now_ms() -> int:
    """Return the current time in epoch milliseconds, for `recorded_at`."""
    return time.time_ns() // 1_000_000


def check_numbered(name: str, rows: Sequence[LedgerRow]) -> None:
    """Raise `InvariantError` (70) if the rows to append do not have consecutive numbers."""
    numbers = [row.seq for row in rows]
    if not rows or numbers[0] < 1 or numbers != list(range(numbers[0], numbers[0] + len(rows))):
        raise InvariantError(
            "ledger-rows-not-numbered",
            "ledger {name}: rows must be numbered without gaps, got {numbers}",
            name=name,
            numbers=numbers,
        )


def not_next(name: str, rows: int, row: int) -> InvariantError:
    """Return the error of an append whose first row has the number ``row``, although the ledger has ``rows`` rows."""
    return InvariantError(
        "ledger-row-not-next",
        "ledger {name} has {rows} rows: {row} is not the next number",
        name=name,
        rows=rows,
        row=row,
    )


def new_token() -> str:
    """Return a token for one append."""
    return uuid4().hex


def stored_body(body: Mapping[str, Any], token: str) -> str:
    """Return the text to store for a row's body, with the token of the row's append."""
    return stored_json({**body, _WRITER: token})


def load_body(text: str, table: str) -> tuple[dict[str, Any], str]:
    """Return the body of a stored ledger row and the token of its append.

    Raises `CheckpointError` (76) if the row has another format or no token.
    """
    body = load_stored(text, table)
    token = body.pop(_WRITER, None)
    if token is None:
        raise CheckpointError(
            "ledger-row-without-token",
            "{table} has a row without the token of its append: choose another warehouse and land again",
            table=table,
        )
    return body, token


class Bodies:
    """A parser of the bodies of a ledger's rows. If a plan has the same binding as the previous plan, both share one object."""

    def __init__(self, table: str) -> None:
        """``table``: the name of the ledger in error messages."""
        self._table = table
        self._binding: Any = None
        self._text = ""

    def load(self, text: str) -> tuple[dict[str, Any], str]:
        """Return what `load_body` returns."""
        position = text.find(self._text) if self._text else -1
        # The match cannot be inside a JSON string, because the quotation marks of the key would be escaped there.
        if position >= 0:
            body, token = load_body(f"{text[:position]}{_BINDING}0{text[position + len(self._text) :]}", self._table)
            if body.get("binding") == 0:
                return {**body, "binding": self._binding}, token
        body, token = load_body(text, self._table)
        if "binding" in body:
            self._binding, self._text = body["binding"], _BINDING + canonical_json(body["binding"])
        return body, token


class Unpacked(NamedTuple):
    """A stored fold, and its parsed head."""

    fold: StoredFold
    head: Mapping[str, Any]


def packed(name: str, fold: StoredFold, more: Mapping[str, Any]) -> bytes:
    """Return a ledger's stored state (fold) as bytes. ``more``: further values of its head, as JSON."""
    head = {"version": _VERSION, "name": name, "rows": fold.rows, "token": fold.token, **more}
    data = "\n".join((json.dumps(head), *fold.lines)).encode()
    body: bytes = pa.compress(data, codec=_CODEC, asbytes=True)
    return f"{_digest_of(body)} {len(data)}\n".encode() + body


def unpacked(name: str, data: bytes, removal: str) -> Unpacked | None:
    """Return a ledger's stored state (fold); None if the bytes are damaged, of another ledger or of another version.

    ``removal``: see `StoredFold`.
    """
    with suppress(ValueError, LookupError, pa.ArrowException):
        stated, _, body = data.partition(b"\n")
        digest, size = stated.decode().split()
        if digest != _digest_of(body):
            return None
        text = pa.decompress(body, int(size), codec=_CODEC, asbytes=True).decode()
        head_line, *lines = text.split("\n")
        head = json.loads(head_line)
        if head["version"] == _VERSION and head["name"] == name:
            covers = frozenset(head.get("files", ()))
            return Unpacked(StoredFold(head["rows"], head["token"], covers, lines, digest, removal), head)
    return None


def _digest_of(data: bytes) -> str:
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


class JobStates:
    """The states of jobs, folded from their ledgers. States are cached, so each call folds only the new rows of a ledger."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Sequence[LedgerRow], JobState]] = {}
        self._kept: dict[str, JobState] = {}

    def fold(self, job: str, rows: Sequence[LedgerRow]) -> JobState:
        """Return the state that a job's ledger describes. Raises `InvariantError` (70) if a row does not fit."""
        known_rows, state = self._known.get(job, ((), JobState()))
        if rows is known_rows:
            return state
        (was, folded), (stored, later) = known_part(known_rows), known_part(rows)
        if was is not stored or list(later[: len(folded)]) != list(folded) or not known_rows:
            folded, state = [], state_of(stored.lines) if stored else JobState()
        keeps_until = rows.keeps_until if isinstance(rows, StoredRows) else 0
        for row in later[len(folded) :]:
            state = fold_row(state, row)
            if row.seq == keeps_until:
                self._kept[job] = state
        if keeps_until and state.rows == keeps_until:
            self._kept[job] = state
        self._known[job] = (rows, state)
        return state

    def store(self, job: str, ledger: KeepsFold) -> None:
        """Store the state after row `StoredRows.keeps_until` of a job's ledger, if `fold` has computed it since the last call."""
        if (state := self._kept.pop(job, None)) is not None:
            ledger.keep_fold(state.rows, state_lines(state))


class KeepsFold(Protocol):
    """A ledger that stores the state after its first rows (the fold) for later processes."""

    def keep_fold(self, rows: int, lines: Sequence[str]) -> None:
        """Store the state after the first ``rows`` rows, given as lines."""
        ...


def check_stored(name: str, rows: Sequence[LedgerRow]) -> None:
    """Raise `InvariantError` (70) if a job's stored state differs from that of its ledger's rows. Reads all rows."""
    stored, _ = known_part(rows)
    if stored is not None and state_of(stored.lines) != fold(rows[: stored.rows]):
        raise wrong_fold(name, stored)


def wrong_fold(name: str, stored: StoredFold) -> InvariantError:
    """Return the error of a stored state that differs from the state that results from the ledger's rows."""
    return InvariantError(
        "ledger-fold-wrong",
        "the stored fold of the ledger of {name!r} is not the state that its first {rows} rows give. {removal}: "
        "the next commands read all rows, and write the fold again",
        name=name,
        rows=stored.rows,
        removal=stored.removal,
    )
