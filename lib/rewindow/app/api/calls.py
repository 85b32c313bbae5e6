"""Execute the calls of the API: one call at a time, with the project's code as it is on disk now, and with readable errors.

Each command of the command line imports the project's modules in a new process. But a notebook may have imported them earlier.
Without this module, a call would then run the code from before an edit, or the package `jobs` of another project. The same is
true of Spark's workers, which live as long as the process. So local workers import the code anew for each task. Remote workers
keep the code that was sent when the session started.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import ClassVar

import structlog

from rewindow.app.command_log import as_visible_line
from rewindow.app.failures import as_rewindow_error
from rewindow.app.open_project import OpenProject
from rewindow.app.watch import Watch
from rewindow.config.target import TargetConfig
from rewindow.engine.spark.shipping import CODE
from rewindow.errors import ConfigError, RewindowError
from rewindow.testing.fresh_modules import is_of_project, without_modules

LOGGER = "rewindow"
"""The logger of the standard library to which each step is logged, at level INFO."""
_ONE = RLock()
"""The lock by which a process executes one call at a time. Calls must not overlap, because they import modules, and may
start Spark."""
_REUSE = "spark.python.worker.reuse"


class Context:
    """An open project, shared by all values that the API returns."""

    def __init__(self, project: OpenProject, *, debug: bool) -> None:
        self._project, self._debug = project, debug
        self._code = RemoteCode(project.root, project.target)

    @contextmanager
    def command(self) -> Iterator[tuple[OpenProject, Watch]]:
        """Yield the project and an observer of steps. Any error in the block is raised as a `RewindowError`.

        A notebook shows only the error's message, unless the project was loaded with ``debug``. A `KeyboardInterrupt` is raised
        unchanged, with a note on which results of the command were kept.
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
            except BaseException as error:
                shown = as_rewindow_error(error, debug="load the project with debug=True")
                if not self._debug:
                    show_briefly(shown)
                if shown is error:
                    raise
                raise shown from error
            finally:
                if "spark" in vars(self._project):
                    self._code.was_sent(digest)


def show_briefly(error: RewindowError) -> None:
    """Let IPython show an error's class, exit code and message, without a stack trace."""
    lines = [f"{type(error).__name__} [{error.code}] (exit code {error.exit_code}): {error}"]
    vars(error)["_render_traceback_"] = lambda: lines


def _log() -> structlog.typing.FilteringBoundLogger:
    """Return a log for steps that writes to the standard library's logger, in the format of ``--log-format text``."""
    logger = logging.getLogger(LOGGER)
    log: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        logger,
        processors=[structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0), as_visible_line],
        wrapper_class=structlog.make_filtering_bound_logger(logger.getEffectiveLevel()),
    )
    return log


@contextmanager
def own_code(root: Path) -> Iterator[None]:
    """In this block, imports find the modules of a project first, as they are on disk now.

    Afterwards, restore earlier imports.
    """
    provided = _provided_by(root)

    def is_hidden(name: str, module: ModuleType) -> bool:
        is_hiding = name.partition(".")[0] in provided and "site-packages" not in (
            getattr(module, "__file__", None) or ""
        )
        return is_hiding or is_of_project(root, name, module)

    path, writes_none = list(sys.path), sys.dont_write_bytecode
    sys.path[:] = [str(root), *(folder for folder in path if folder != str(root))]
    # No bytecode is written. If a file is edited twice within a second, Python takes bytecode of the first edit as current.
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        with without_modules(is_hidden):
            yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, writes_none


def _provided_by(root: Path) -> set[str]:
    """Return the names of the modules and packages directly below a folder, without those of the standard library."""
    modules = {file.stem for file in root.glob("*.py")}
    packages = {folder.name for folder in root.iterdir() if folder.is_dir() and any(folder.glob("*.py"))}
    return (modules | packages) - {"rewindow", "__main__"} - sys.stdlib_module_names


def with_new_workers(target: TargetConfig) -> TargetConfig:
    """Return the target changed so that its local Spark starts a new worker for each task.

    A used worker would keep the code that it imported for an earlier call.
    """
    if target.master or target.connect:
        return target
    return target.model_copy(update={"spark": {_REUSE: "false", **target.spark}})


class RemoteCode:
    """The project's code on the remote workers of this process's Spark session. Local workers need no check."""

    _sent: ClassVar[tuple[Path, str] | None] = None
    """The folder of the project that was sent to the workers, and the digest of its code. All calls in a process share one
    session."""

    def __init__(self, root: Path, target: TargetConfig) -> None:
        self._root, self._is_remote = root, bool(target.master or target.connect)

    def check(self) -> str:
        """Return the digest of the project's code as it is now. Raises `ConfigError` (78) if the workers have other code."""
        if not self._is_remote:
            return ""
        now, sent = self._digest(), RemoteCode._sent
        if sent is not None and sent != (self._root, now):
            why = "the project's code has changed" if sent[0] == self._root else f"it was started for {sent[0]}"
            raise ConfigError(
                "worker-code-outdated",
                "Spark's workers have other code than {project} has now: {reason}. Restart the process (the kernel)",
                project=self._root,
                reason=why,
            )
        return now

    def was_sent(self, digest: str) -> None:
        """Record that the Spark session has started, and that its workers have the code of this digest."""
        if self._is_remote and RemoteCode._sent is None:
            RemoteCode._sent = (self._root, digest)

    def _digest(self) -> str:
        files = [path for name in CODE for path in sorted((self._root / name).rglob("*.py"))]
        texts = [f"{path.relative_to(self._root)}\n".encode() + path.read_bytes() for path in files]
        return blake2b(b"\0".join(texts), digest_size=16).hexdigest()
