"""A stored fold as bytes: a line with digest and size of the rest, which is a head and the lines, compressed (ADR-127)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple

import pyarrow as pa

from rewindow.control.plan.stored_rows import FORMAT, StoredFold
from rewindow.control.plan.stored_state import LAYOUT

_CODEC = "zstd"
_VERSION = [FORMAT, LAYOUT]
_DIGEST_BYTES = 16


class Unpacked(NamedTuple):
    """A stored fold, and what else its head says."""

    fold: StoredFold
    head: Mapping[str, Any]


def packed(name: str, fold: StoredFold, more: Mapping[str, Any]) -> bytes:
    """Return a stored fold of a ledger as bytes. ``more``: what its head is to say besides, as JSON."""
    head = {"version": _VERSION, "name": name, "rows": fold.rows, "token": fold.token, **more}
    data = "\n".join((json.dumps(head), *fold.lines)).encode()
    body: bytes = pa.compress(data, codec=_CODEC, asbytes=True)
    return f"{_digest_of(body)} {len(data)}\n".encode() + body


def unpacked(name: str, data: bytes, removal: str) -> Unpacked | None:
    """Return the stored fold of a ledger; None if the bytes are torn, of another ledger or of another version.

    ``removal``: see `StoredFold`.
    """
    with suppress(ValueError, LookupError, pa.ArrowException):
        stated, _, body = data.partition(b"\n")
        digest, size = stated.decode().split()
        if digest != _digest_of(body):
            return None
        text = pa.decompress(body, int(size), codec=_CODEC, asbytes=True).decode()
        first, *lines = text.split("\n")
        head = json.loads(first)
        if head["version"] == _VERSION and head["name"] == name:
            covers = frozenset(head.get("files", ()))
            return Unpacked(StoredFold(head["rows"], head["token"], covers, lines, digest, removal), head)
    return None


def _digest_of(data: bytes) -> str:
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
