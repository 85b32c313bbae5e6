"""One history: a few processes execute commands on one job, then the tables are checked."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rewindow.control import branch as branching
from rewindow.control.garbage_collection import collect
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.job_fold import ACCEPT, FORGET, REPUBLISH, SNAPSHOT
from rewindow.control.plan.job_state import LedgerRow, Standing
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.retention import EVERY
from rewindow.control.plan.spec import MAIN, Attempt, RunRequest
from rewindow.control.run import steps
from rewindow.errors import RewindowError
from tests.crash.memory import ROOT, Faults, Process, World, here
from tests.crash.memory_job import EPOCHS, JOB, MemoryEngine, MemoryJobGc, Tables, binding, feed, job
from tests.crash.oracle import compared
from tests.crash.seeded_faults import FAULTS, Killed, SeededFaults

HELD = 0.15
"""The share of runs that are on hold."""


@dataclass
class Simulation:
    """One history. ``restless``: the probability of switching to another process at a point."""

    seed: int
    world: World = field(default_factory=World)
    landed: int = 2
    restless: float = 0.3
    trace: list[tuple[str, str]] = field(default_factory=list)
    late: list[Callable[[], None]] = field(default_factory=list)
    attempts: int = 0
    met: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._dice = random.Random(f"simulation {self.seed}")
        self._turns: dict[str, threading.Semaphore] = {}
        self._back = threading.Semaphore(0)
        self._ended: set[str] = set()
        self._failure: BaseException | None = None

    def feed(self) -> Feed:
        return feed(self.landed)

    def committed_attempts(self) -> Iterator[str]:
        """Yield the attempts of all COMMIT rows, directly from the storage."""
        for version in self.world.tables.get(f"{ROOT}/rewindow/runs", ()):
            for add in version.adds:
                if add.file[0].kind == "COMMIT":
                    yield add.file[0].body["attempt"]

    def pause(self, *, stay: bool) -> None:
        """Let another process run and wait for the next turn, unless ``stay``."""
        name = here().name
        if stay or name not in self._turns:
            return
        self._back.release()
        self._turns[name].acquire()

    def run(self) -> str:
        """Play the history. Return ``ok``, or what is wrong."""
        dice = self._dice
        self.restless = dice.choice([0.1, 0.3, 0.8])
        mix = frozenset(fault for fault in FAULTS if dice.random() < 0.5)
        threads = [self._process(f"p{n}", mix, dice.randrange(3, 7)) for n in range(dice.randrange(1, 4))]
        for thread in threads:
            thread.start()
        while len(self._ended) < len(threads):
            waiting = sorted(set(self._turns) - self._ended)
            if self.landed < EPOCHS and dice.random() < 0.02:
                self.landed += 1
            self._turns[dice.choice(waiting)].release()
            self._back.acquire()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            return f"wrong: {type(self._failure).__name__}: {self._failure}"
        for send in self.late:
            with suppress(Exception):
                send()
        return self.end()

    def _process(self, name: str, mix: frozenset[str], commands: int) -> threading.Thread:
        self._turns[name] = threading.Semaphore(0)
        faults = SeededFaults(self, random.Random(f"{self.seed} {name}"), mix)

        def play() -> None:
            self._turns[name].acquire()
            Process(self.world, faults, name).enter()
            try:
                for _ in range(commands):
                    self._command(faults)
            except BaseException as error:  # noqa: BLE001 - `run` reports it
                self._failure = error
            self._ended.add(name)
            self._back.release()

        return threading.Thread(target=play, daemon=True)

    def _command(self, faults: SeededFaults) -> None:
        command = faults.rng.choice(
            ["run", "run", "run", "branch", "rewind", "promote", "publish", "republish", "gc", "gc", "accept"]
        )
        for _ in range(3):
            try:
                for _step in self._machine(command, faults):
                    faults.point("step")
            except Killed:
                self.met["kills"] += 1
                continue
            except RewindowError as error:
                self.met[f"exit {error.exit_code}"] += 1
                if error.exit_code == 70:
                    raise
            return

    def _machine(self, command: str, faults: SeededFaults) -> Iterator[str]:
        tables = Tables(self.feed)
        branches = [
            name for name, one in tables.state(JOB).branches.items() if name != MAIN and one.standing is Standing.OPEN
        ]
        match command:
            case "run":
                yield from self._run(tables, faults.rng.choice([MAIN, *branches]), faults)
            case "branch" if len(branches) < 2:
                name = f"b{tables.state(JOB).rows}"
                runs = tables.state(JOB).branch(MAIN).runs
                yield from branching.branch(JOB, name, tables, at=faults.rng.choice(runs).spec.name if runs else "0")
            case "rewind":
                runs = tables.state(JOB).branch(MAIN).runs
                if len(runs) > 1:
                    yield from branching.rewind(JOB, MAIN, faults.rng.choice(runs[:-1]).spec.name, tables)
            case "promote" if branches:
                yield from branching.promote(JOB, faults.rng.choice(branches), binding(MAIN), tables)
            case "accept":
                name = faults.rng.choice([MAIN, *branches])
                if held := tables.state(JOB).on_hold(name):
                    yield from branching.accept(JOB, name, faults.rng.choice(held).spec.name, tables)
            case "gc":
                gc: Any = MemoryJobGc(tables, self.met)
                before_ms = faults.rng.choice([0, 2**60])
                yield from collect(JOB, tables, gc, before_ms=before_ms, keep_ms=0, every=faults.rng.choice([1, 2]))
            case "republish":
                state = tables.state(JOB)
                if "output/totals" in state.branch(MAIN).tables:
                    row = LedgerRow(state.rows + 1, REPUBLISH, {"target": "output/totals", "branch": MAIN})
                    yield "republish"
                    tables.append(JOB, row)
        for branch in tables.state(JOB).branches:
            yield from tables.publish(JOB, tables.state(JOB), branch)

    def _run(self, tables: Tables, branch: str, faults: SeededFaults) -> Iterator[str]:
        through = faults.rng.choice([None, None, 1, 2])
        request = RunRequest(branch=branch, through_landing=through)
        machine = steps(
            job(tables, branch, is_met=faults.rng.random() > HELD),
            request,
            self.attempt(),
            MemoryEngine(),
            tables,
            faults.alive,
            snapshot_every=faults.rng.choice([1, 2, EVERY]),
        )
        yield from machine

    def attempt(self) -> Attempt:
        self.attempts += 1
        return Attempt(f"{here().name}-{self.attempts}", "", 0, 0)

    def end(self) -> str:
        """Let a process without faults finish, and compare all tables with a simple loop over the epochs."""
        Process(self.world, Faults(), "end").enter()
        tables = Tables(self.feed)
        try:
            while not isinstance(_driven(self._last_run(tables)), UpToDate):
                pass
            if self._dice.random() < 0.5:
                self._accept_all(tables)
            state = tables.state(JOB)
            for branch in state.branches:
                for _ in tables.publish(JOB, state, branch):
                    pass
        except RewindowError as error:
            if self.met["flips"] and "damaged" in str(error):
                self.met["corruption reported"] += 1  # corrupted after the audit: no wrong rows, but a file to restore
                return "ok"
            return f"wrong: in the end {type(error).__name__}: {error}"
        kinds = Counter(row.kind for row in tables.ledger(JOB).read())
        self.met.update({kind: kinds[kind] for kind in (SNAPSHOT, FORGET, ACCEPT) if kinds[kind]})
        return compared(self.world, state, self.landed)

    def _accept_all(self, tables: Tables) -> None:
        for name, branch in tables.state(JOB).branches.items():
            while branch.is_open and (held := tables.state(JOB).on_hold(name)):
                _driven(branching.accept(JOB, name, held[0].spec.name, tables))

    def _last_run(self, tables: Tables) -> Any:
        return steps(job(tables, MAIN), RunRequest(), self.attempt(), MemoryEngine(), tables, lambda _attempt: False)


def _driven(machine: Any) -> Any:
    while True:
        try:
            next(machine)
        except StopIteration as end:
            return end.value
