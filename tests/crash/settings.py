"""What the command was asked for, and the figures that a suite gives back. Plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BAD = ("not_reached", "lost", "doubled", "wrong")
"""What must be 0."""


@dataclass(frozen=True)
class Settings:
    """``point``: an operation, or a part of the names of sites; None for all. ``quick``: a sample of a few seconds."""

    point: str | None = None
    seeds: int = 20
    at_once: int = 2
    quick: bool = False
    results: Path | None = None
    say: Callable[[str], None] = lambda _line: None


@dataclass
class Figures:
    """What a suite found. ``more``: what else it has to say, for the scoreboard."""

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
        """Whether all is as it must be. A suite without cases proves nothing."""
        return self.cases > 0 and not any(getattr(self, word) for word in BAD)

    def count(self, said: str, where: str) -> None:
        """Count a case by the first word that was said of it."""
        self.cases += 1
        word = said.partition(":")[0].replace(" ", "_")
        if word in BAD:
            setattr(self, word, getattr(self, word) + 1)
            self.failures.append(f"{where}: {said}")
