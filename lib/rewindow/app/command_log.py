"""The log of a command, on standard error.

Importing structlog takes a tenth of a second, so it is imported only if something may log with it.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from rewindow.errors import visible

_given: dict[str, str | None] = {}
"""``format``: the log format of the command line, None if the command logs nothing. Empty without a command line, as in a
notebook."""


def configure_logs(wanted: str | None) -> None:
    """Log in this format, ``json`` or ``text``; None logs nothing."""
    _given["format"] = wanted
    if wanted is not None or "structlog" in sys.modules:
        _configure(wanted)


def mute_others() -> None:
    """If the command logs nothing, silence other code that logs with structlog, such as the project's.

    Must be called before that code is imported.
    """
    if "format" in _given and _given["format"] is None:
        _configure(None)


def command_log() -> Any:
    """Return the log of the command; None if it logs nothing."""
    if _given.get("format") is None:
        return None
    import structlog  # noqa: PLC0415 - see the docstring of the module

    return structlog.get_logger()


def as_visible_line(_log: Any, _method: str, line: Any) -> str:
    """Escape what is unprintable in a rendered line, so that data cannot forge another one. The last processor of each log."""
    return visible(line.replace("\x7f", "\\u007f"))  # valid also in JSON, whose renderer has escaped everything else


def _configure(wanted: str | None) -> None:
    import structlog  # noqa: PLC0415 - see the docstring of the module

    renderer: Any = (
        structlog.processors.JSONRenderer(sort_keys=True)
        if wanted == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            renderer,
            as_visible_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO if wanted else logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
