"""What a suppress waits for, as values (KIP-328)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suppressed:
    """Hold every update of a window back until the window and its grace are over: final results only."""


def until_window_closes() -> Suppressed:
    """Emit one final result for each key and window. The buffer is bounded by the windows that are open."""
    return Suppressed()
