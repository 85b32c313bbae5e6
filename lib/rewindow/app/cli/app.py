"""The command line: the names of all commands, the modules that define them, and how one command is executed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import Abort

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
            part = typer.Typer()
            part.callback()(lambda: None)  # with a callback, Typer makes a group even of one command
            import_module(f"rewindow.app.cli.{module}").register(part)
            self.commands.update(typer.main.get_group(part).commands)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of a command line. Once the command is loaded, call the function ``obj`` of the context."""
        resolved = super().resolve_command(ctx, args)
        if ctx.obj is not None:
            ctx.obj()
        return resolved

    def invoke(self, ctx: Any) -> Any:
        """Run a command. After Ctrl-C, raise `Abort`, for which Typer prints nothing; `entry` then prints what was kept."""
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
