"""The command lines that messages suggest."""

from __future__ import annotations

from dataclasses import dataclass

from rewindow.control.plan.spec import MAIN
from rewindow.report.text import asked


@dataclass(frozen=True, slots=True)
class Command:
    """The commands on one feed or job, as they are typed for its target and branch."""

    name: str
    target: str
    branch: str = MAIN

    def __call__(self, command: str) -> str:
        """Return a command line."""
        target = "" if self.target == "local" else f" --target {self.target}"
        return f"rewindow {command} {asked(self.name, self.branch)}{target}"
