"""Every pair of points, in memory: two processes are held at one point each, then released one after the other.

The points are those of `memory`: each opening of a table, each commit and its answer, each write, each step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rewindow.control import branch as branching
from rewindow.control.garbage_collection import collect
from rewindow.control.plan.job_fold import REPUBLISH
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.spec import MAIN, RunRequest
from rewindow.control.run import steps
from rewindow.errors import RewindowError
from tests.crash.forks import side_by_side
from tests.crash.history import Simulation
from tests.crash.memory import Faults, Process, World, here
from tests.crash.memory_job import EPOCHS, JOB, MemoryEngine, MemoryJobGc, Tables, binding, job
from tests.crash.memory_tables import in_memory
from tests.crash.settings import Figures, Settings

Machine = Callable[[Simulation], Iterator[str]]
ALLOWED = (2, 75, 76, 78)
"""The exit codes that the slower process may get."""


def _run(simulation: Simulation, branch: str = MAIN, through: int | None = None) -> Iterator[str]:
    tables = Tables(simulation.feed)
    request = RunRequest(branch=branch, through_landing=through)
    return steps(job(tables, branch), request, simulation.attempt(), MemoryEngine(), tables, lambda _attempt: False)


def _rewind(simulation: Simulation) -> Iterator[str]:
    return branching.rewind(JOB, MAIN, "main/1", Tables(simulation.feed))


def _promote(simulation: Simulation) -> Iterator[str]:
    return branching.promote(JOB, "trial", binding(MAIN), Tables(simulation.feed))


def _branch_run(simulation: Simulation) -> Iterator[str]:
    return _run(simulation, "trial")


def _republish(simulation: Simulation) -> Iterator[str]:
    tables = Tables(simulation.feed)
    yield "republish"
    state = tables.state(JOB)
    tables.append(JOB, LedgerRow(state.rows + 1, REPUBLISH, {"target": "output/totals", "branch": MAIN}))
    yield from tables.publish(JOB, tables.state(JOB), MAIN)


def _collect(simulation: Simulation) -> Iterator[str]:
    tables = Tables(simulation.feed)
    gc: Any = MemoryJobGc(tables, simulation.met)
    return collect(JOB, tables, gc, before_ms=2**60, keep_ms=0, every=2)


MACHINES: dict[str, Machine] = {
    "run": _run,
    "rewind": _rewind,
    "promote": _promote,
    "backfill": _branch_run,
    "republish": _republish,
    "gc": _collect,
}


def ground() -> World:
    """Return a warehouse with two runs of `main`, and a branch from the first run with a run of its own."""
    simulation = Simulation(0, landed=2)
    Process(simulation.world, Faults(), "before").enter()
    _all(_run(simulation, through=1))
    _all(_run(simulation, through=2))
    _all(branching.branch(JOB, "trial", Tables(simulation.feed), at="main/1"))
    simulation.landed = EPOCHS - 1
    _all(_run(simulation, "trial"))
    return simulation.world


def _all(machine: Iterator[str]) -> None:
    for _ in machine:
        pass


@dataclass
class Holding(Faults):
    """Holds the process at point number ``at`` until it is released."""

    at: int
    passed: int = 0
    held: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def point(self, name: str) -> None:
        self.passed += 1
        if self.passed == self.at:
            self.held.release()
            self.go.acquire()


class Player(threading.Thread):
    """A process that is held once."""

    def __init__(self, simulation: Simulation, machine: Machine, at: int) -> None:
        super().__init__(daemon=True)
        self.faults = Holding(at)
        self.said = "done"
        self._simulation, self._machine = simulation, machine

    def run(self) -> None:
        Process(self._simulation.world, self.faults, f"p{self.faults.at}-{id(self)}").enter()
        try:
            for _ in self._machine(self._simulation):
                here().faults.point("step")
        except RewindowError as error:
            self.said = "told" if error.exit_code in ALLOWED else f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - `meet` reports it
            self.said = f"{type(error).__name__}: {error}"
        self.faults.held.release()

    def to_its_point(self) -> None:
        self.start()
        self.faults.held.acquire()

    def to_the_end(self) -> None:
        self.faults.go.release()
        self.join()


def meet(world: World, one: str, other: str, first: int, second: int) -> tuple[str, int, int]:
    """Hold both, release them in turn, finish and compare. Return the result and the number of points that each passed."""
    mine = World({path: list(versions) for path, versions in world.tables.items()}, dict(world.files))
    simulation = Simulation(0, world=mine, landed=EPOCHS)
    players = [Player(simulation, MACHINES[one], first), Player(simulation, MACHINES[other], second)]
    for player in players:
        player.to_its_point()
    for player in players:
        player.to_the_end()
    for player in players:
        if player.said not in ("done", "told"):
            return f"wrong: {player.said}", 0, 0
    return simulation.end(), players[0].faults.passed, players[1].faults.passed


PAIRS = [(one, other) for one in MACHINES for other in MACHINES]


def _row(one: str, other: str, first: int, step: int) -> dict[str, Any]:
    """Hold the first process at one point, and the second at each of its points in turn."""
    with in_memory():
        world, bad, cases, second = ground(), [], 0, 1
        while True:
            said, _, passed = meet(world, one, other, first, second)
            cases += 1
            if said != "ok":
                bad.append([f"{one} at {first}, {other} at {second}", said])
            if second > passed:
                return {"cases": cases, "bad": bad}
            second += step


def points(one: str) -> int:
    """Return how many points an operation passes if nothing interferes."""
    with in_memory():
        return meet(ground(), one, one, 10**6, 10**6)[1]


def suite(settings: Settings) -> Figures:
    """Test every pair of points of every pair of operations. ``quick``: some points of two runs."""
    figures = Figures("pairs")
    step = 9 if settings.quick else 1
    lengths = {name: next(side_by_side([partial(points, name)], 1)) for name in MACHINES}
    pairs = [("run", "run")] if settings.quick else PAIRS
    jobs = [partial(_row, one, other, n, step) for one, other in pairs for n in range(1, lengths[one] + 1, step)]
    for said in side_by_side(jobs, settings.at_once):
        figures.cases += said["cases"] - len(said["bad"])
        for where, word in said["bad"]:
            figures.count(word, where)
    figures.more = {"points": lengths}
    return figures
