"""Name files for Spark so that it reads exactly these: it takes each path as a pattern, and ``x[1].csv`` matches ``x1.csv``.

The patterns are escaped. Spark's own switch, the option ``__globPaths__``, has no effect over Spark Connect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rewindow.contracts.ingest import Piece
from rewindow.engine.worker.csv_files import is_multi_line
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


def inferable_paths(pieces: Sequence[Piece], options: Mapping[str, str]) -> list[str]:
    """Return the paths of files of which Spark is to infer the columns, as patterns that match only them.

    To infer, Spark opens the files of a ``multiLine`` source with Hadoop's own reader, which takes the paths that the patterns
    matched as patterns again. Raises `SourceError` (66) for a path that is none to it, and as `exact_paths`.
    """
    for piece in pieces if is_multi_line({name.lower(): value for name, value in options.items()}) else ():
        if _WILDCARD.search(piece.path) or ":" in _without_scheme(piece.path):
            message = (
                f"{_named(piece)}: with `multiLine`, Spark cannot infer columns from a file whose path has a colon, {_SHOWN}: it "
                f"may open other files. Nothing was landed. State the columns under `schema:`, or rename the file or its "
                f"folder: {piece.path}"
            )
            raise SourceError(message)
    return exact_paths(pieces)


def _named(piece: Piece) -> str:
    return piece.name or piece.path


def _without_scheme(path: str) -> str:
    return path.partition("://")[2] or path
