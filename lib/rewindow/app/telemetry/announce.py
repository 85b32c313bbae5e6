"""One warning for each system that cannot be told: in the log, or on standard error if nothing is logged."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

from rewindow.app.command_log import mute_others

PATIENCE_S = 5.0
"""How long a command waits at its end for a client to deliver, and after a failed delivery:"""
IMPATIENCE_S = 1.0


class Warner(logging.Handler):
    """Warns once in a command. As a handler it also takes what a client logs itself, instead of its stack traces."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self._about = name
        self.has_warned = False

    def warn(self, why: str) -> None:
        """Say once that the telemetry of this command is incomplete, and why."""
        if self.has_warned:
            return
        self.has_warned = True
        line = f"{self._about}: {' '.join(why.split())[:500]}. The command goes on without it"
        mute_others()
        log: Any = structlog.get_logger()
        if log.is_enabled_for(logging.WARNING):
            log.warning(line)
        else:
            sys.stderr.write(f"rewindow: warning: {line}\n")

    @property
    def patience_s(self) -> float:
        """How long a command waits for the client."""
        return IMPATIENCE_S if self.has_warned else PATIENCE_S

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line of the client's log."""
        self.warn(record.getMessage())

    def take_over(self, logger: str) -> None:
        """Take everything that a client's loggers say, unless somebody else handles it."""
        client = logging.getLogger(logger)
        for earlier in [one for one in client.handlers if isinstance(one, Warner)]:
            client.removeHandler(earlier)  # of another command in this process
        if not client.handlers:
            client.addHandler(self)
            client.propagate = False
