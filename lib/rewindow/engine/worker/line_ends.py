"""Find new CSV files that may be half written: their last line has no end, although those of landed files have one.

A row that is cut within its last value is read like any other, with another value. Of JSON lines, only whole ones can be read,
and a compressed text that is cut cannot be decompressed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rewindow.contracts.ingest import Piece, SourceSpec
from rewindow.contracts.text_options import CSV
from rewindow.engine.worker.file_digests import COMPRESSED

_COMPARED = 3
"""Last landed files that tell whether the files of a source end with the end of a line."""
_END_BYTES = 4
"""Bytes of a line end in any encoding."""


def open_ended(spec: SourceSpec, fresh: Sequence[Piece], landed: Sequence[Piece]) -> tuple[str, ...]:
    """Return the new CSV files whose last line has no end; none if that is so in the last landed files, too.

    Reads the last bytes of each new file, and of a few landed ones if necessary. Raises `OSError`.
    """
    if spec.format != CSV:
        return ()
    found = tuple(piece.name for piece in fresh if _is_open(piece))
    if not found or (landed and all(_is_open(piece) for piece in landed[-_COMPARED:])):
        return ()
    return found


def _is_open(piece: Piece) -> bool:
    if piece.name.lower().endswith(COMPRESSED):
        return False
    with Path(piece.path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END_BYTES))
        end = file.read().rstrip(b"\0")  # UTF-16 has zeros around it
    return not end.endswith((b"\n", b"\r"))
