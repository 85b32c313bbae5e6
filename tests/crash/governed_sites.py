"""The sites at which a client of Spark Connect can die: during and after each statement that changes something.

A client that dies during a statement leaves it to the server, which completes it while the next command runs. Between two
statements everything is as after the first of them, so the steps there are no sites of their own.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from pyspark.sql.connect.client import SparkConnectClient

DURING = "while it executes"
_WRITES = ("INSERT", "DELETE", "CREATE", "ALTER", "DROP", "UPDATE", "MERGE", "REPLACE", "RESTORE", "OPTIMIZE", "VACUUM")
"""The first words of statements that change something."""


@dataclass
class Sites:
    """The sites that this process passes. ``visit`` is called at each one, with the seconds that a clean call takes there."""

    visit: Callable[[str], None]
    during: Callable[[str], Callable[[], None] | None] = lambda _name: None
    """Returns what is called while a statement executes, if this process is to die there."""
    step: str = "begin"
    seconds: dict[str, float] = field(default_factory=dict)
    _seen: Counter[str] = field(default_factory=Counter)

    def drive(self, machine: Iterator[str]) -> None:
        """Execute the steps of a machine. Each of its statements has two sites."""
        self._wrap()
        for step in machine:
            self.step = step

    def _wrap(self) -> None:
        execute = SparkConnectClient.execute_command

        @wraps(execute)
        def executing(client: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
            what = changes(command)
            if not what:
                return execute(client, command, *args, **kwargs)
            name = self._named(f"{what}: {DURING}")
            end = self.during(name)
            begun = time.monotonic()
            answer = execute(client, command, *args, **kwargs)
            if end:
                end()
            self.seconds[name] = time.monotonic() - begun
            self.visit(name)
            self.visit(self._named(f"{what}: executed"))
            return answer

        SparkConnectClient.execute_command = executing  # type: ignore[method-assign,assignment]

    def _named(self, what: str) -> str:
        name = f"{self.step} > {what}"
        self._seen[name] += 1
        return name if self._seen[name] == 1 else f"{name} ({self._seen[name]})"


def changes(command: Any) -> str:
    """Return what a command changes: ``append TABLE`` or the beginning of a statement. Empty if it only reads."""
    kind = command.WhichOneof("command_type")
    if kind == "write_operation":
        return f"append {command.write_operation.table.table_name.replace('`', '').rpartition('.')[2]}"
    if kind != "sql_command":
        return ""
    sql = command.sql_command
    text = sql.input.sql.query if sql.HasField("input") else sql.sql
    words = re.sub(r"[`(]", " ", text).split()
    if not words or words[0].upper() not in _WRITES:
        return ""
    named = next((word.rpartition(".")[2] for word in words if "." in word), "")
    return f"{words[0]} {words[1]} {named}".strip()


def traced(machine: Iterator[str]) -> tuple[list[str], dict[str, float]]:
    """Execute a machine to its end; return the sites that it passed, and the seconds of its statements."""
    names: list[str] = []
    sites = Sites(names.append)
    sites.drive(machine)
    return names, sites.seconds


def die_at(machine: Iterator[str], site: str, mark: int, after_s: float) -> None:
    """Execute a machine and die by SIGKILL at a site; during a statement after some seconds, at the latest at its end."""

    def die() -> None:
        os.write(mark, site.encode())
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()

    def during(name: str) -> Callable[[], None] | None:
        if name != site:
            return None
        timer = threading.Timer(after_s, die)
        timer.start()
        return timer.join

    Sites(lambda name: die() if name == site else None, during).drive(machine)
