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
