"""The settings of the command, and the figures of a suite. Plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BAD = ("not_reached", "lost", "doubled", "wrong")
"""The counts that must be 0."""


@dataclass(frozen=True)
class Settings:
    """The command's options. ``point``: an operation or a part of a site's name, None for all; ``quick``: a sample.

    ``kills``: how many random kills, None for the suite's own number.
    """

    point: str | None = None
    seeds: int = 20
    at_once: int = 2
    quick: bool = False
    kills: int | None = None
    results: Path | None = None
    say: Callable[[str], None] = lambda _line: None


@dataclass
class Figures:
    """The figures of a suite. ``more``: additional figures for the report."""

    suite: str
    cases: int = 0
    not_reached: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    seconds: float = 0.0
    more: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def is_green(self) -> bool:
        """Whether there are cases and none of them is bad."""
        return self.cases > 0 and not any(getattr(self, word) for word in BAD)

    def count(self, said: str, where: str) -> None:
        """Count a case by the first words of its outcome."""
        self.cases += 1
        word = said.partition(":")[0].replace(" ", "_")
        if word in BAD:
            setattr(self, word, getattr(self, word) + 1)
            self.failures.append(f"{where}: {said}")
