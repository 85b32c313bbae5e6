"""Step machines: generators that yield the name of each step before they do it, so a caller can stop between steps."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Self, TypeVar

Result = TypeVar("Result")


class Step(str):
    """The name of a step, with context for observers: ``known`` holds the run and other details."""

    __slots__ = ("known",)

    known: dict[str, Any]

    def __new__(cls, name: str, **known: Any) -> Self:
        """Return a step that equals its name as a plain string."""
        step = super().__new__(cls, name)
        step.known = known
        return step


def drive(machine: Generator[str, None, Result], on_step: Callable[[str], None] | None = None) -> Result:
    """Run a step machine to its end and return its result. ``on_step`` gets each step before it is done."""
    while True:
        try:
            step = next(machine)
        except StopIteration as end:
            result: Result = end.value
            return result
        if on_step is not None:
            on_step(step)
