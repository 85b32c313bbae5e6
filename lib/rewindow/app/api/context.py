"""What surrounds each call of the API: one at a time, with the project's code as it is now, and with readable errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING

import structlog

from rewindow.app.api.own_code import own_code
from rewindow.app.api.worker_code import RemoteCode
from rewindow.app.failures import as_rewindow_error
from rewindow.app.project import Project as OpenProject
from rewindow.app.watch import Watch
from rewindow.errors import RewindowError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGER = "rewindow"
"""The logger of the standard library that gets each step, at level INFO."""
_ONE = RLock()
"""Calls import modules and may start Spark, so a process makes one at a time."""


class Context:
    """An open project, as the values of the API share it."""

    def __init__(self, project: OpenProject, *, debug: bool) -> None:
        self._project, self._debug = project, debug
        self._code = RemoteCode(project.root, project.target)

    @contextmanager
    def command(self) -> Iterator[tuple[OpenProject, Watch]]:
        """Yield the project, and an observer of steps. Raises a `RewindowError` for whatever fails in the block.

        A notebook shows its message alone, unless the project was loaded with ``debug``. A `KeyboardInterrupt` passes, with a
        note that says what was kept.
        """
        watch = Watch(log=_log())
        with _ONE, own_code(self._project.root):
            digest = ""
            try:
                digest = self._code.check()
                yield self._project, watch
            except KeyboardInterrupt as error:
                error.add_note(watch.what_is_kept())
                raise
            except (Exception, SystemExit) as error:
                known = as_rewindow_error(error, debug="load the project with debug=True")
                if not self._debug:
                    show_briefly(known)
                if known is error:
                    raise
                raise known from error
            finally:
                if "spark" in vars(self._project):
                    self._code.was_sent(digest)

    def session(self) -> SparkSession:
        """Return the Spark session of the project's target, started on first use."""
        with self.command() as (project, _):
            return project.spark


def show_briefly(error: RewindowError) -> None:
    """Let IPython show an error's class, exit code and message, without a stack trace."""
    lines = [f"{type(error).__name__} (exit code {error.exit_code}): {error}"]
    vars(error)["_render_traceback_"] = lambda: lines


def _log() -> structlog.typing.FilteringBoundLogger:
    """Return a log for steps that writes to the standard library's logger, in the format of ``--log-format text``."""
    logger = logging.getLogger(LOGGER)
    made: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        logger,
        processors=[structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0)],
        wrapper_class=structlog.make_filtering_bound_logger(logger.getEffectiveLevel()),
    )
    return made
