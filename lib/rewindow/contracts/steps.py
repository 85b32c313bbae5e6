"""A step machine yields the name of each step before it does it, so that whoever drives it can stop it between any two."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Self, TypeVar

Result = TypeVar("Result")


class Step(str):
    """The name of a step that knows more: ``known`` says which run it is of, and what else who follows it wants."""

    __slots__ = ("known",)

    known: dict[str, Any]

    def __new__(cls, name: str, **known: Any) -> Self:
        """Return a name that is equal to any other text that says the same."""
        step = super().__new__(cls, name)
        step.known = known
        return step


def drive(machine: Generator[str, None, Result], on_step: Callable[[str], None] | None = None) -> Result:
    """Drive a machine to its end and return its result. ``on_step`` is told each step before it is done."""
    while True:
        try:
            step = next(machine)
        except StopIteration as end:
            result: Result = end.value
            return result
        if on_step is not None:
            on_step(step)
