"""Random faults from a seed, which happen to a process at the points of a history, a few times at most."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewindow.control.plan.spec import Attempt
from tests.crash.memory import Faults, here

if TYPE_CHECKING:
    from tests.crash.history import Simulation


class Killed(BaseException):
    """Kills a simulated process: no code after it runs."""


FAULTS = ("crash", "lost", "refused", "made up", "delayed", "stale", "flip", "full", "clock")


@dataclass
class SeededFaults(Faults):
    """Random faults from a seed. ``mix``: the kinds in this history; ``left``: how many may still happen."""

    simulation: Simulation
    rng: random.Random
    mix: frozenset[str]
    left: int = 3

    def point(self, name: str) -> None:
        simulation, draw = self.simulation, self.rng.random()
        simulation.trace.append((here().name, name))
        if simulation.late and draw < 0.05:
            with suppress(Exception):
                simulation.late.pop(0)()
        if "crash" in self.mix and self._once(0.015):
            raise Killed
        if "flip" in self.mix and name.startswith("sleep") is False and self._once(0.004):
            self._flip()
        simulation.pause(stay=draw > simulation.restless)

    def answer(self, name: str) -> str:
        kinds = sorted(self.mix & {"lost", "refused", "made up", "delayed"})
        return self.rng.choice(kinds) if kinds and self._once(0.06) else "ok"

    def staleness(self, name: str) -> int:
        return self.rng.randrange(1, 3) if "stale" in self.mix and self._once(0.02) else 0

    def later(self, send: Callable[[], None]) -> None:
        self.simulation.late.append(send)

    def is_full(self) -> bool:
        return "full" in self.mix and self._once(0.03)

    def alive(self, _attempt: Attempt) -> bool:
        return "clock" in self.mix and self.rng.random() < 0.1

    def _once(self, likely: float) -> bool:
        if self.left and self.rng.random() < likely:
            self.left -= 1
            return True
        return False

    def _flip(self) -> None:
        """Corrupt a staged output file that is neither committed nor published."""
        world = here().world
        named = {add.path for versions in world.tables.values() for version in versions for add in version.adds}
        loose = [path for path in world.files if path.rpartition("/")[2] not in named and "-output-" in path]
        journaled = set(self.simulation.committed_attempts())
        loose = [path for path in loose if path.rpartition("/")[2].partition("-output-")[0] not in journaled]
        if loose:
            world.files[self.rng.choice(sorted(loose))].is_whole = False
            self.simulation.met["flips"] += 1
