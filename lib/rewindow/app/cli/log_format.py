"""The option `--log-format`, which every command takes."""

from __future__ import annotations

from collections.abc import Sequence

from rewindow.errors import UsageError

FORMATS = ("json", "text")
OPTION = "--log-format"


def take_log_format(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the other arguments and the value of ``--log-format``, which may stand anywhere; None without one.

    Raises `UsageError` (2) for an unknown format.
    """
    rest: list[str] = []
    wanted: str | None = None
    words = iter(arguments)
    for word in words:
        if word == OPTION:
            wanted = next(words, "")
        elif word.startswith(f"{OPTION}="):
            wanted = word.partition("=")[2]
        else:
            rest.append(word)
    if wanted is not None and wanted not in FORMATS:
        raise UsageError(
            "log-format-unknown",
            "unknown --log-format {given!r}: use {formats}",
            given=wanted,
            formats=" or ".join(FORMATS),
        )
    return rest, wanted
