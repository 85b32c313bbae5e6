"""The command line and its commands. Executes one command, prints its error, and exits with the exit code of this error."""

from __future__ import annotations

import gc
import io
import os
import sys
from _thread import interrupt_main
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer
from typer.core import TyperGroup
from typer.exceptions import Abort, TyperException

from rewindow.app.failures import Failure, failure_of
from rewindow.errors import UsageError, failed_io, unrendered, visible
from rewindow.storage.scratch import remove_all, remove_at_signals

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


_MODULES: Mapping[str, Sequence[str]] = {
    "landing_command": ("land",),
    "run_command": ("plan", "run"),
    "show_command": ("show",),
    "explain_command": ("explain", "setup"),
    "check_command": ("check",),
    "init_command": ("init",),
    "play_command": ("test",),
    "schema_command": ("schema",),
    "ls_command": ("ls",),
    "status_command": ("status",),
    "branch_commands": ("rewind", "backfill", "diff", "promote", "verify", "branch"),
    "maintenance_commands": ("republish", "resume", "reset", "gc"),
    "publish_command": ("publish",),
    "upgrade_command": ("upgrade",),
    "databricks_command": ("databricks",),
    "head_command": ("head",),
    "why_command": ("why",),
    "state_command": ("state",),
    "report_command": ("report",),
}
"""Maps a module of this package to the commands that it registers, in the order of the help."""


class _Commands(TyperGroup):
    """The commands.

    Only the module of the given command is loaded, because loading takes most of the time of a short command.
    """

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands."""
        return [name for names in _MODULES.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - click's signature
        """Return a command; None for an unknown name."""
        module = next((module for module, names in _MODULES.items() if cmd_name in names), None)
        if cmd_name not in self.commands and module is not None:
            from rewindow.app.cli.pandas_on_demand import load_pandas_on_demand

            load_pandas_on_demand()
            part = typer.Typer()
            part.callback()(lambda: None)  # with a callback, Typer makes a group even of one command
            import_module(f"rewindow.app.cli.{module}").register(part)
            self.commands.update(typer.main.get_group(part).commands)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of a command line. Once its module is loaded, call the function ``obj`` of the context."""
        resolved = super().resolve_command(ctx, args)
        if ctx.obj is not None:
            ctx.obj()
        return resolved

    def invoke(self, ctx: Any) -> Any:
        """Run a command. After Ctrl-C, raise `Abort`, for which Typer prints nothing.

        `entry` then prints which results were kept.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Abort from error


app = typer.Typer(
    cls=_Commands,
    help="Replay event logs from Delta tables, deterministically.\n\n"
    "Every command also takes --log-format json|text, which logs each of its steps to stderr.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    """Print the versions of rewindow and of the software it works with, and where rewindow is installed; then exit."""
    if wanted:
        from rewindow.app.version import version_lines

        sys.stdout.write("".join(f"{line}\n" for line in version_lines()))
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=print_version, help="Show the versions and exit.")
    ] = False,
) -> None:
    """Handle the options of `rewindow` itself."""
    del version


_YOUNG_OBJECTS = 200_000
"""Python searches for reference cycles after this many new objects. Its default is 700."""


class _Output(io.FileIO):
    """A file descriptor that discards what cannot be written, so that a command always finishes its work.

    A closed pipe is no failure. It means that the reader wants no more output.
    """

    failure: OSError | None = None
    """The first error of a write. After it, nothing is written, so the output ends early but has no gap."""

    def write(self, data: object) -> int:
        """Write bytes and return how many were written.

        If they are discarded, return their number, as if they had been written.
        """
        try:
            if self.failure is None:
                return super().write(data) or 0  # type: ignore[arg-type]
        except BrokenPipeError:
            pass
        except OSError as error:
            self.failure = error
        return memoryview(data).nbytes  # type: ignore[arg-type]


_SECONDS_TO_RETURN = 0.01
_outputs: dict[int, _Output] = {}
"""Maps the number of a file descriptor (1 or 2) to the object that writes to it."""


def tolerate_failing_streams() -> None:
    """Let this process continue if stdout or stderr cannot be written, is closed, or was missing from the start."""
    sys.stdout, sys.stderr = _tolerant(sys.stdout, 1), _tolerant(sys.stderr, 2)
    sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115 - a descriptor, as long as the process


def _tolerant(stream: TextIO | None, number: int) -> TextIO:
    """Return a stream to the same file descriptor whose writes never fail.

    A stream without descriptor is returned unchanged.
    """
    try:
        number = number if stream is None else stream.fileno()
    except (AttributeError, OSError, ValueError):
        return cast("TextIO", stream)
    if stream is not None:
        stream.flush()
    output = _outputs[number] = _Output(number, "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=stream.encoding if stream else "utf-8",
        errors="backslashreplace",
        line_buffering=output.isatty() or number == 2,
    )


FORMATS = ("json", "text")
OPTION = "--log-format"
_LONGEST_ARGUMENT = 4_000
"""The maximum length of an argument in characters. Python refuses to convert a number of more than 4,300 digits."""


def take_log_format(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the arguments without the option ``--log-format``, and the option's value (None without the option).

    The option may be anywhere in the line. Raises `UsageError` (2) for an unknown format.
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
    """Execute the command line and exit with a documented exit code. ``begin`` is called once the command's module is loaded."""
    remove_at_signals()
    tolerate_failing_streams()
    sys.unraisablehook = raise_interrupt_again
    # Most objects are modules and ledger rows that live until the command ends. Garbage collection of cycles among them would
    # take a tenth of a short command's time, and a third of the time in which a long ledger is read.
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    leave(run_command(sys.argv[1:], begin))


def raise_interrupt_again(unraisable: UnraisableHookArgs) -> None:
    """Interrupt the main thread again if Python swallowed a Ctrl-C in a callback, such as the import system's or `__del__`.

    Python would only print the stack trace of the interrupt, and the command would continue.
    """
    if unraisable.exc_type is KeyboardInterrupt:
        # Python would swallow an interrupt that this function raises. So a timer raises it after the function has returned.
        Timer(_SECONDS_TO_RETURN, interrupt_main).start()
    else:
        sys.__unraisablehook__(unraisable)


def leave(code: int) -> None:
    """Exit immediately with this code. If the code is 0 but writing to stdout failed, exit with the code of this failure."""
    remove_all()
    sys.stdout.flush()
    if (stdout := _outputs.get(1)) is not None and stdout.failure is not None:
        lost = failed_io(
            stdout.failure,
            "stdout-not-written",
            "standard output cannot be written: {reason}. The command has ended, and only its output is incomplete: make room "
            "there or write elsewhere; `rewindow status` says how things are",
            reason=stdout.failure.strerror,
        )
        sys.stderr.write(f"rewindow: {lost} [{lost.code}]\n")
        code = code or lost.exit_code
    sys.stderr.flush()
    # In a normal exit, native code of the Delta libraries sometimes aborts the process (ADR-13).
    os._exit(code)


def run_command(arguments: list[str], begin: Callable[[], object] = lambda: None) -> int:
    """Execute one command line and return its exit code. Prints errors and never raises them.

    ``begin`` is called once the command's module is loaded.
    """
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
    except BaseException as error:  # noqa: BLE001 - users never see a stack trace, and Python's exit code 1 means a difference
        if isinstance(error, SystemExit) and (is_completion() or _is_of_the_command_line(error)):
            return error.code if isinstance(error.code, int) else 0
        return _fail(failure_of(error), log_format, as_json=as_json, error=error if debug else None)
    return result if isinstance(result, int) else 0


def _begin(log_format: str | None, begin: Callable[[], object]) -> None:
    from rewindow.app.command_log import configure_logs

    configure_logs(log_format)
    begin()


def is_completion() -> bool:
    """Return whether a shell started this process to complete a line. Typer ends such a process with `SystemExit`."""
    return any(name.startswith("_") and name.endswith("_COMPLETE") for name in os.environ)


def _is_of_the_command_line(error: SystemExit) -> bool:
    """Return whether Typer raised the `SystemExit`, for example after ``--show-completion``. If not, a library raised it."""
    raised, module = error.__traceback__, ""
    while raised is not None:
        module, raised = raised.tb_frame.f_globals.get("__name__", ""), raised.tb_next
    return module.partition(".")[0] == "typer"


def _check(arguments: list[str]) -> None:
    for argument in arguments:
        if "{{" in argument:
            raise unrendered(f"argument {argument!r}")
        if len(argument) > _LONGEST_ARGUMENT:
            raise UsageError(
                "argument-too-long",
                "an argument has {count:,} characters: give at most {most:,}",
                count=len(argument),
                most=_LONGEST_ARGUMENT,
            )


def _usage(error: TyperException) -> str:
    formatted = getattr(error, "format_message", None)
    message = formatted() if callable(formatted) else str(error)
    message = message.replace(": Value error, ", ": ").replace(
        ": Input should be ", ": it should be "
    )  # remove pydantic's words
    return f"{visible(message.rstrip('.')) or 'missing command'} (see --help)"


def _fail(failure: Failure, log_format: str | None, *, as_json: bool, error: BaseException | None = None) -> int:
    if is_completion():  # print nothing: the shell would show the message in the line that is being typed
        return failure.exit_code
    try:
        from rewindow.app.cli.printing import Printer
        from rewindow.app.command_log import configure_logs

        configure_logs(log_format)  # `_begin` is not called for an invalid command line
        Printer(as_json=as_json).failed(failure, error)
    except BaseException:  # noqa: BLE001 - without memory or file handles, these modules cannot be loaded
        os.write(2, f"rewindow: {failure.message}\n".encode(errors="replace"))
    return failure.exit_code
