"""Run one command line: print its error, and exit with the error's code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TextIO

from typer.exceptions import Abort, TyperException

from rewindow.app.cli.app import app
from rewindow.app.failures import Failure, failure_of
from rewindow.errors import UsageError, unrendered


class _Pipe(io.FileIO):
    """A file descriptor that drops what a closed pipe refuses, so that a command ends as it would have without a pipe."""

    def write(self, data: object) -> int:
        """Write some bytes and return how many; all of them if nobody reads."""
        try:
            return super().write(data) or 0  # type: ignore[arg-type]
        except BrokenPipeError:
            return memoryview(data).nbytes  # type: ignore[arg-type]


def tolerate_closed_pipes() -> None:
    """Let the output of this process outlive its readers."""
    sys.stdout, sys.stderr = _tolerant(sys.stdout), _tolerant(sys.stderr)


def _tolerant(stream: TextIO) -> TextIO:
    """Return a stream to the same descriptor; the stream itself if it has none, as in a notebook."""
    try:
        number = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return stream
    stream.flush()
    buffer = io.BufferedWriter(_Pipe(number, "wb", closefd=False))
    return io.TextIOWrapper(
        buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=stream.isatty() or stream is sys.stderr
    )


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


def main(begin: Callable[[], object] = lambda: None) -> None:
    """Run the command line and exit with one of the documented exit codes. ``begin`` is called once the command is loaded."""
    tolerate_closed_pipes()
    leave(run_command(sys.argv[1:], begin))


def leave(code: int) -> None:
    """Exit immediately with this code: native code of the Delta libraries sometimes aborts a normal exit (ADR-13)."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_command(arguments: list[str], begin: Callable[[], object] = lambda: None) -> int:
    """Run one command line and return its exit code. Prints errors and never raises them."""
    as_json, debug = "--json" in arguments, "--debug" in arguments
    log_format = None
    try:
        arguments, log_format = take_log_format(arguments)
        _check(arguments)
        result = app(arguments, prog_name="rewindow", standalone_mode=False, obj=partial(_begin, log_format, begin))
    except TyperException as error:
        failure = Failure(_usage(error), UsageError.exit_code, type(error).__name__, "command-line-invalid", {})
        return _fail(failure, log_format, as_json=as_json)
    except (KeyboardInterrupt, Abort):
        return _fail(failure_of(KeyboardInterrupt()), log_format, as_json=as_json)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - users never see a stack trace
        if isinstance(error, SystemExit) and (is_completion() or _is_of_the_command_line(error)):
            return error.code if isinstance(error.code, int) else 0
        return _fail(failure_of(error), log_format, as_json=as_json, error=error if debug else None)
    return result if isinstance(result, int) else 0


def _begin(log_format: str | None, begin: Callable[[], object]) -> None:
    from rewindow.app.command_log import configure_logs

    configure_logs(log_format)
    begin()


def is_completion() -> bool:
    """Return whether a shell asks for completions, which end with `SystemExit`."""
    return any(name.startswith("_") and name.endswith("_COMPLETE") for name in os.environ)


def _is_of_the_command_line(error: SystemExit) -> bool:
    """Return whether Typer ended the command, as after ``--show-completion``, and not a job's code."""
    raised, module = error.__traceback__, ""
    while raised is not None:
        module, raised = raised.tb_frame.f_globals.get("__name__", ""), raised.tb_next
    return module.partition(".")[0] == "typer"


def _check(arguments: list[str]) -> None:
    for argument in arguments:
        if "{{" in argument:
            raise unrendered(f"argument {argument!r}")


def _usage(error: TyperException) -> str:
    formatted = getattr(error, "format_message", None)
    message = formatted() if callable(formatted) else str(error)
    message = message.replace(": Value error, ", ": ").replace(
        ": Input should be ", ": it should be "
    )  # pydantic's words
    return f"{message.rstrip('.') or 'missing command'} (see --help)"


def _fail(failure: Failure, log_format: str | None, *, as_json: bool, error: BaseException | None = None) -> int:
    if is_completion():  # it would become part of the line that is being typed
        return failure.exit_code
    from rewindow.app.cli.printing import Printer
    from rewindow.app.command_log import configure_logs

    configure_logs(log_format)  # a command line that is wrong has loaded no command
    Printer(as_json=as_json).failed(failure, error)
    return failure.exit_code
