"""Name files for Spark so that it reads exactly these: it takes each path as a pattern, and ``x[1].csv`` matches ``x1.csv``.

The patterns are escaped. Spark's own switch, the option ``__globPaths__``, has no effect over Spark Connect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rewindow.contracts.ingest import Piece
from rewindow.errors import SourceError

_WILDCARD = re.compile(r"[*?\[\]{}\\]")
_SHOWN = "* ? [ ] { } or \\"


def exact_paths(pieces: Sequence[Piece]) -> list[str]:
    """Return the paths of files as patterns that match only them.

    Raises `SourceError` (66) for a path with a wildcard and a colon: in a pattern, Hadoop takes what is before the colon as a
    scheme.
    """
    for piece in pieces:
        if _WILDCARD.search(piece.path) and ":" in _without_scheme(piece.path):
            message = (
                f"{_named(piece)}: Spark cannot read a file whose path has a colon and also {_SHOWN}. Nothing was landed. "
                f"Rename the file or its folder: {piece.path}"
            )
            raise SourceError(message)
    return [_WILDCARD.sub(r"\\\g<0>", piece.path) for piece in pieces]


def _named(piece: Piece) -> str:
    return piece.name or piece.path


def _without_scheme(path: str) -> str:
    return path.partition("://")[2] or path
