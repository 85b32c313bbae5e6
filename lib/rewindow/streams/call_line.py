"""The line of the user's code that is being executed, for errors that are found when that code has returned."""

from __future__ import annotations

import inspect

_OURS = "rewindow."


def call_line() -> str:
    """Return ``file:line`` of the innermost caller outside rewindow; nothing if there is none."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_OURS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
