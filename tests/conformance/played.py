"""The result of playing a scenario of either kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Played:
    """The results by step. ``ties``: the steps in which L1 or D6 decided an order."""

    steps: list[Any] = field(default_factory=list)
    init: list[dict[str, Any]] = field(default_factory=list)
    ties: set[int] = field(default_factory=set)
    error: tuple[str, int | None] | None = None
    message: str = ""
    stores: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)
    inside: str | None = None
    """The first difference from the recorded buffers or metrics, if they were compared."""


def before_failure(steps: list[Any], error: tuple[str, int | None] | None) -> list[Any]:
    """Return the steps before the one that fails. That step sends nothing, because a run that fails commits nothing."""
    return steps if error is None else steps[: error[1] or 0]
