"""Text files as bytes: which ones this process reads, and how many rows they can have."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from rewindow.contracts.ingest import Piece
from rewindow.engine.worker.landing.source_types import UnsuitableError
from rewindow.storage.locations import filesystem_of

_UNUSUAL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xef\xbb\xbf|\xef\xbf\xbd|\r(?!\n)|^[ \t]+\r?$", re.MULTILINE)
"""Control characters, a byte order mark, the sign of lost characters, lines of old Macs, and lines of nothing but spaces."""


def check_files(pieces: Sequence[Piece], suffixes: Collection[str], most_bytes: int) -> None:
    """Raise `UnsuitableError` for files that may be compressed, or that are large together: Spark's workers share them."""
    size = 0
    for piece in pieces:
        system, location = filesystem_of(piece.path)
        size += system.get_file_info(location).size or 0
        if PurePosixPath(piece.path).suffix.lower() not in suffixes:
            raise UnsuitableError(f"{piece.path} may be compressed")
    if size > most_bytes:
        raise UnsuitableError("its files are large")


def most_rows(path: str) -> int:
    """Return the most rows that a file with a row per line can have."""
    data = _bytes(path)
    return data.count(b"\n") + (not data.endswith(b"\n"))


def usual_bytes(path: str) -> bytes:
    """Return a file's content. Raises `UnsuitableError` if it has characters or lines that not every reader takes alike."""
    data = _bytes(path)
    if _UNUSUAL.search(data):
        raise UnsuitableError(f"{path} has unusual characters or lines")
    return data


def _bytes(path: str) -> bytes:
    try:
        system, location = filesystem_of(path)
        with system.open_input_file(location) as stream:
            data: bytes = stream.read()
    except OSError as error:
        raise UnsuitableError(f"{path}: {error}") from error
    return data
