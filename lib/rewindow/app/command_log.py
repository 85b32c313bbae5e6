"""The log of a command, on standard error.

Importing structlog takes a tenth of a second, so it is imported only if the command logs.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from rewindow.errors import visible

_format: dict[str, str | None] = {}
"""``command``: the log format of the command line. If it is missing or None, nothing is logged."""


def configure_logs(wanted: str | None) -> None:
    """Set the format in which the command logs, ``json`` or ``text``. With None, it logs nothing."""
    _format["command"] = wanted
    if wanted is not None:
        _configure(wanted)


def command_log() -> Any:
    """Return the log of the command; None if it logs nothing."""
    if _format.get("command") is None:
        return None
    import structlog  # noqa: PLC0415 - see the docstring of the module

    return structlog.get_logger()


def as_visible_line(_log: Any, _method: str, line: Any) -> str:
    """Escape unprintable characters in a rendered line, so that data cannot forge another line.

    It must be the last processor of each log.
    """
    return visible(line.replace("\x7f", "\\u007f"))  # valid also in JSON, whose renderer has escaped everything else


def _configure(wanted: str) -> None:
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
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
