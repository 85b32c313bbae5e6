"""Digests of source files, and of the texts in compressed ones, by which copies are recognized."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from hashlib import blake2b
from pathlib import Path

from rewindow.engine.worker.text.blocks import decompressed

COMPRESSED = (".gz", ".bz2", ".zst")
"""The suffixes of compressed text files that are read."""

_WHOLE_BYTES = 64 << 20
_END_BYTES = 1 << 20


def digest(path: str) -> str:
    """Return the digest of a file's bytes; of those of a large file, of both ends."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= _WHOLE_BYTES:
            return _of_blocks(iter(partial(file.read, _END_BYTES), b""))[1]
        first = file.read(_END_BYTES)
        file.seek(-_END_BYTES, os.SEEK_END)
        return _of_ends(first, file.read(_END_BYTES))


def text_digest(path: str) -> tuple[int, str]:
    """Return the size of the text in a compressed file, and the digest of a file with this text.

    Reads all of it. Raises `StorageError` (74) if the file is truncated or not compressed.
    """
    return _of_blocks(decompressed(path))


def _of_blocks(blocks: Iterable[bytes]) -> tuple[int, str]:
    whole, size, first, last = blake2b(digest_size=16), 0, b"", b""
    for block in blocks:
        size += len(block)
        if size <= _WHOLE_BYTES:
            whole.update(block)
        first = (first + block)[:_END_BYTES] if len(first) < _END_BYTES else first
        last = block if len(block) == _END_BYTES else (last + block)[-_END_BYTES:]
    return size, whole.hexdigest() if size <= _WHOLE_BYTES else _of_ends(first, last)


def _of_ends(first: bytes, last: bytes) -> str:
    return blake2b(first + last, digest_size=16).hexdigest()
