"""Print one warning if telemetry cannot be sent to a system: in the log, or on standard error if nothing is logged."""

from __future__ import annotations

import logging
import sys

from rewindow.app.command_log import command_log
from rewindow.errors import visible, without_secrets

PATIENCE_S = 5.0
"""How many seconds a command waits at its end for a client to deliver. After a failed delivery, it waits `IMPATIENCE_S`."""
IMPATIENCE_S = 1.0


class Warner(logging.Handler):
    """Prints at most one warning per command.

    It is also the handler of a client's own logger, so that the stack traces of the client are not printed.
    """

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self._about = name
        self.has_warned = False

    def warn(self, why: str) -> None:
        """Print one warning that the telemetry of this command is incomplete, and why. Later calls print nothing."""
        if self.has_warned:
            return
        self.has_warned = True
        reason = without_secrets(" ".join(why.split()))
        line = f"{self._about}: {reason[:500]}. The command goes on without it"
        log = command_log()
        if log is not None:
            log.warning(line)
        else:
            sys.stderr.write(f"rewindow: warning: {visible(line)}\n")

    @property
    def patience_s(self) -> float:
        """How long a command waits for the client."""
        return IMPATIENCE_S if self.has_warned else PATIENCE_S

    def emit(self, record: logging.LogRecord) -> None:
        """Turn a line of the client's log into the warning."""
        self.warn(record.getMessage())

    def take_over(self, logger: str) -> None:
        """Handle everything that a client's loggers log, unless they have another handler."""
        client = logging.getLogger(logger)
        for earlier in [one for one in client.handlers if isinstance(one, Warner)]:
            client.removeHandler(earlier)  # added by another command in this process
        if not client.handlers:
            client.addHandler(self)
            client.propagate = False
