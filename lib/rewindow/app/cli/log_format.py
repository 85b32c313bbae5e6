"""The log of a command: `--log-format`, and what it logs besides its steps."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any

from rewindow.app.failures import Failure
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


def configure_logs(wanted: str | None) -> None:
    """Log in a format to standard error. Without one, nothing is logged."""
    import structlog

    renderer: Any = (
        structlog.processors.JSONRenderer(sort_keys=True)
        if wanted == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso"), renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO if wanted else logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def log_failure(failure: Failure) -> None:
    """Log the failure of a command."""
    import structlog

    structlog.get_logger().error("failed", exit_code=failure.exit_code, error=failure.message, code=failure.code)


def log_summary(summary: dict[str, Any]) -> None:
    """Log the summary of a run."""
    import structlog

    structlog.get_logger().info("summary", **summary)
