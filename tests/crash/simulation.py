"""Many small histories on tables in memory, each from a seed: the production runner under every fault that it may meet.

A history is a few processes, each with commands to give, on one job. At each point a process may die, its commit's answer
may be lost or come late, a listing may lack the newest versions, a staged file may change a bit, the disk may be full, the
clock may jump; and whoever comes next goes on from there. In the end a process without faults finishes, and the tables
must hold what a plain loop over the epochs gives.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

from rewindow import travel
from rewindow.core.schema import Column
from rewindow.core.semantics import Semantics
from rewindow.core.staging import StagedFile, TaskReport
from rewindow.core.work import StageWork
from rewindow.delta.checkpoints import find_checkpoint
from rewindow.delta.tables import METRICS
from rewindow.errors import RewindowError
from rewindow.keeping import collect
from rewindow.plan.fold_keeping import FORGET, SNAPSHOT
from rewindow.plan.fold_travel import REPUBLISH
from rewindow.plan.keeping import dead_attempts, decide_snapshot
from rewindow.plan.landings import Feed
from rewindow.plan.lineage import CommittedRun, JobState, LedgerRow, Standing
from rewindow.plan.planner import UpToDate
from rewindow.plan.spec import MAIN, Attempt, JobBinding, RunRequest, TableSpec
from rewindow.plan.stages import JobCode
from rewindow.runner import Job, steps
from tests.crash.forks import side_by_side
from tests.crash.matrix import Outcome
from tests.crash.memory import ROOT, Faults, File, MemoryTables, Process, World, here, in_memory
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings
from tests.plan.ledgers import BINDING, TOPIC, a_feed

JOB = "counts"
PARTITIONS = 2
EPOCHS = 4

_LOGS = [SimpleNamespace(topic=TOPIC, is_internal=False)]
_PART = SimpleNamespace(index=0, sources=_LOGS, sinks=[SimpleNamespace(topic="totals", is_internal=False)], stores=())
_TOPOLOGY = SimpleNamespace(sub_topologies=lambda: (_PART,))
CODE = JobCode(lambda: _TOPOLOGY, lambda: None, Semantics())  # type: ignore[arg-type,return-value]
_COLUMNS = (Column("user", "string"),)


@lru_cache
def feed(landings: int) -> Feed:
    return a_feed(landings)


@lru_cache
def binding(lineage: str) -> JobBinding:
    """Bind the job: an output of the lineage's own, a changelog and metrics that all share."""
    path = "out/totals" if lineage == MAIN else f"out/totals__{lineage}"
    tables = {
        "output/totals": TableSpec(path, _COLUMNS),
        "changelog/sums": TableSpec("state/sums", _COLUMNS),
        "metrics": TableSpec(METRICS, _COLUMNS),
    }
    return replace(BINDING, tables=tables)


@lru_cache(maxsize=4096)
def total(partition: int, epoch: int) -> str:
    """Return what the state of a partition is after an epoch: a digest of all that came before. The plain oracle."""
    return step(total(partition, epoch - 1), partition, epoch) if epoch else ""


def step(before: str, partition: int, epoch: int) -> str:
    """Return what an epoch makes of a state."""
    return blake2b(f"{before} {partition} {epoch}".encode(), digest_size=8).hexdigest()


class MemoryKeeper:
    """Writes snapshots of what the tables in memory hold, and deletes what dead attempts left."""

    def __init__(self, tables: Tables, new_attempt: Callable[[], Attempt], met: Counter[str]) -> None:
        self._tables, self._new_attempt, self._met = tables, new_attempt, met

    def stage_snapshot(self, state: JobState, run: CommittedRun) -> LedgerRow:
        number, attempt = state.rows + 1, self._new_attempt().id
        checkpoint = find_checkpoint(ROOT, run, state.basis(run.spec.run), self._tables.reports)
        files = []
        for (_, partition), paths in sorted(checkpoint.stores.items()):
            rows: dict[int, str] = {}
            for path in paths:
                rows |= dict(here().world.files[path].rows[1])
            changes = [(partition, rows[partition])]
            stage = MemoryEngine()._stage
            files.append(stage(attempt, f"{ROOT}/state/sums", "changelog/sums", partition, number, changes))
        reports = [TaskReport(0, 0, tuple(files), {}, (), {})]
        journal = self._tables._journal(JOB).append(attempt, reports)
        return decide_snapshot(state, run, attempt, journal, self._tables.totals(reports))

    def drop_reports(self) -> int:
        return 0

    def garbage(self, _keep_ms: int) -> Iterator[str]:
        rows = self._tables.ledger(JOB).read()
        dead = dead_attempts(rows, self._tables.state(JOB))
        for path in list(here().world.files):
            name = path.rpartition("/")[2]
            if "-".join(name.split("-")[:2]) in dead and not path.startswith(f"{ROOT}/rewindow/"):
                yield path

    def delete(self, garbage: str) -> None:
        here().faults.point(f"{garbage}: delete")
        self._met["deleted"] += here().world.files.pop(garbage, None) is not None

    def compact_ledger(self) -> None:
        return


class MemoryEngine:
    """Goes on from the state that it is given, epoch by epoch; each says what all before it came to."""

    def run_stage(self, work: StageWork) -> list[TaskReport]:
        return [self._task(work, task.partition, task.stores) for task in work.tasks]

    def _task(self, work: StageWork, partition: int, _stores: object) -> TaskReport:
        state = here().restored.get(partition, "")  # type: ignore[attr-defined]
        rows, changes = [], []
        for epoch in work.epochs:
            state = step(state, partition, epoch.number)
            rows.append((partition, epoch.number, state))
        changes.append((partition, state))
        files = [
            self._stage(work.attempt, work.roots["output/totals"], "output/totals", partition, work.run, rows),
            self._stage(work.attempt, work.roots["changelog/sums"], "changelog/sums", partition, work.run, changes),
        ]
        return TaskReport(0, partition, tuple(files), {}, (), {TOPIC: 10 * len(work.epochs)})

    def stage_rows(self, target: str, root: str, attempt: str, _columns: object, rows: Any) -> list[StagedFile]:
        run = int(attempt.rpartition("-")[2])
        return [self._stage(attempt, root, target, 0, run, list(rows) or [()])]

    def _stage(
        self, attempt: str, root: str, target: str, partition: int, run: int, rows: Sequence[tuple[Any, ...]]
    ) -> StagedFile:
        process = here()
        process.faults.point(f"{target}: stage")
        path = f"{attempt}-{target.partition('/')[0]}-{partition}-{len(process.world.files)}"
        process.world.files[f"{root}/{path}"] = File((run, rows))
        digest = blake2b(repr(rows).encode(), digest_size=16).hexdigest()
        return StagedFile(target, partition, path, len(rows), 1, {"_partition": str(partition)}, {}, digest, "")


class Tables(MemoryTables):
    """Reads a chain's state as a task would: later rows of a partition win."""

    def restore(self, state: Any, spec: Any) -> Any:
        checkpoint = super().restore(state, spec)
        restored: dict[int, str] = {}
        for (_store, _partition), paths in sorted(checkpoint.stores.items()):
            for path in paths:
                restored |= dict(here().world.files[path].rows[1])
        here().restored = restored  # type: ignore[attr-defined]
        return replace(checkpoint, states={})


def job(tables: Tables, lineage: str) -> Job:
    return Job(JOB, CODE, binding(lineage), tables.feed("activity"))


class Killed(BaseException):
    """What a killed process looks like from within: nothing after it runs."""


FAULTS = ("crash", "lost", "refused", "made up", "delayed", "stale", "flip", "full", "clock")


@dataclass
class Chance(Faults):
    """Faults by dice. ``mix``: which of them this history knows; each comes a few times at most."""

    simulation: Simulation
    dice: random.Random
    mix: frozenset[str]
    left: int = 3

    def point(self, name: str) -> None:
        simulation, dice = self.simulation, self.dice.random()
        simulation.trace.append((here().name, name))
        if simulation.late and dice < 0.05:
            with suppress(Exception):
                simulation.late.pop(0)()
        if "crash" in self.mix and self._once(0.015):
            raise Killed
        if "flip" in self.mix and name.startswith("sleep") is False and self._once(0.004):
            self._flip()
        simulation.pause(stay=dice > simulation.restless)

    def answer(self, name: str) -> str:
        kinds = sorted(self.mix & {"lost", "refused", "made up", "delayed"})
        return self.dice.choice(kinds) if kinds and self._once(0.06) else "ok"

    def staleness(self, name: str) -> int:
        return self.dice.randrange(1, 3) if "stale" in self.mix and self._once(0.02) else 0

    def later(self, send: Callable[[], None]) -> None:
        self.simulation.late.append(send)

    def is_full(self) -> bool:
        return "full" in self.mix and self._once(0.03)

    def alive(self, _attempt: Attempt) -> bool:
        return "clock" in self.mix and self.dice.random() < 0.1

    def _once(self, likely: float) -> bool:
        if self.left and self.dice.random() < likely:
            self.left -= 1
            return True
        return False

    def _flip(self) -> None:
        """Damage a staged file that no row of a ledger counts on yet."""
        world = here().world
        named = {add.path for versions in world.tables.values() for version in versions for add in version.adds}
        loose = [path for path in world.files if path.rpartition("/")[2] not in named and "-output-" in path]
        journaled = set(self.simulation.committed_attempts())
        loose = [path for path in loose if path.rpartition("/")[2].partition("-output-")[0] not in journaled]
        if loose:
            world.files[self.dice.choice(sorted(loose))].is_whole = False
            self.simulation.met["flips"] += 1


@dataclass
class Simulation:
    """One history. ``restless``: how readily another process comes to its turn."""

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
        """Say which attempts a COMMIT row names, as the storage has it: no process is asked."""
        for version in self.world.tables.get(f"{ROOT}/rewindow/runs", ()):
            for add in version.adds:
                if add.file[0].kind == "COMMIT":
                    yield add.file[0].body["attempt"]

    def pause(self, *, stay: bool) -> None:
        """Give the turn away, and wait for the next one."""
        name = here().name
        if stay or name not in self._turns:
            return
        self._back.release()
        self._turns[name].acquire()

    def run(self) -> str:
        """Play the history; say ``ok``, or what is wrong."""
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
        chance = Chance(self, random.Random(f"{self.seed} {name}"), mix)

        def play() -> None:
            self._turns[name].acquire()
            Process(self.world, chance, name).enter()
            try:
                for _ in range(commands):
                    self._command(chance)
            except BaseException as error:  # noqa: BLE001 - told by the one who waits
                self._failure = error
            self._ended.add(name)
            self._back.release()

        return threading.Thread(target=play, daemon=True)

    def _command(self, chance: Chance) -> None:
        command = chance.dice.choice(
            ["run", "run", "run", "branch", "rewind", "promote", "publish", "republish", "gc", "gc"]
        )
        for _ in range(3):
            try:
                for _step in self._machine(command, chance):
                    chance.point("step")
            except Killed:
                self.met["kills"] += 1
                continue
            except RewindowError as error:
                self.met[f"exit {error.exit_code}"] += 1
                if error.exit_code == 70:
                    raise
            return

    def _machine(self, command: str, chance: Chance) -> Iterator[str]:
        tables = Tables(self.feed)
        branches = [
            name for name, one in tables.state(JOB).lineages.items() if name != MAIN and one.standing is Standing.OPEN
        ]
        match command:
            case "run":
                yield from self._run(tables, chance.dice.choice([MAIN, *branches]), chance)
            case "branch" if len(branches) < 2:
                name = f"b{tables.state(JOB).rows}"
                runs = tables.state(JOB).lineage(MAIN).runs
                yield from travel.branch(JOB, name, tables, at=chance.dice.choice(runs).spec.name if runs else "0")
            case "rewind":
                runs = tables.state(JOB).lineage(MAIN).runs
                if len(runs) > 1:
                    yield from travel.rewind(JOB, MAIN, chance.dice.choice(runs[:-1]).spec.name, tables)
            case "promote" if branches:
                yield from travel.promote(JOB, chance.dice.choice(branches), binding(MAIN), tables)
            case "gc":
                keeper, before_ms = MemoryKeeper(tables, self.attempt, self.met), chance.dice.choice([0, 2**60])
                yield from collect(
                    JOB, tables, keeper, before_ms=before_ms, keep_ms=0, every=chance.dice.choice([1, 2])
                )
            case "republish":
                state = tables.state(JOB)
                if "output/totals" in state.lineage(MAIN).tables:
                    row = LedgerRow(state.rows + 1, REPUBLISH, {"target": "output/totals", "lineage": MAIN})
                    yield "republish"
                    tables.append(JOB, row)
        for lineage in tables.state(JOB).lineages:
            yield from tables.publish(JOB, tables.state(JOB), lineage)

    def _run(self, tables: Tables, lineage: str, chance: Chance) -> Iterator[str]:
        through = chance.dice.choice([None, None, 1, 2])
        request = RunRequest(lineage=lineage, through_landing=through)
        return (yield from steps(job(tables, lineage), request, self.attempt(), MemoryEngine(), tables, chance.alive))

    def attempt(self) -> Attempt:
        self.attempts += 1
        return Attempt(f"{here().name}-{self.attempts}", "", 0, 0)

    def end(self) -> str:
        """Let a process without faults finish, and compare everything with a plain loop over the epochs."""
        Process(self.world, Faults(), "end").enter()
        tables = Tables(self.feed)
        try:
            while not isinstance(_driven(self._last_run(tables)), UpToDate):
                pass
            state = tables.state(JOB)
            for lineage in state.lineages:
                for _ in tables.publish(JOB, state, lineage):
                    pass
        except RewindowError as error:
            if self.met["flips"] and "damaged" in str(error):
                self.met["damage told"] += 1  # it came after the audit: no wrong number, a file to put back
                return "ok"
            return f"wrong: in the end {type(error).__name__}: {error}"
        kinds = Counter(row.kind for row in tables.ledger(JOB).read())
        self.met.update({kind: kinds[kind] for kind in (SNAPSHOT, FORGET) if kinds[kind]})
        return self._compared(state)

    def _last_run(self, tables: Tables) -> Any:
        return steps(job(tables, MAIN), RunRequest(), self.attempt(), MemoryEngine(), tables, lambda _attempt: False)

    def _compared(self, state: Any) -> str:
        if state.lineage(MAIN).last_epoch != self.landed:
            return f"lost: main is at epoch {state.lineage(MAIN).last_epoch} of {self.landed}"
        for lineage in state.lineages.values():
            if lineage.standing is not Standing.OPEN or "output/totals" not in lineage.tables:
                continue
            due = Counter(
                (partition, epoch, total(partition, epoch))
                for run in lineage.own_runs
                for epoch in run.spec.epochs
                for partition in range(PARTITIONS)
            )
            found = self._rows(f"{ROOT}/{lineage.tables['output/totals'].path}")
            if found != due:
                missing, extra = due - found, found - due
                return (
                    f"{'lost' if missing else 'doubled'}: {lineage.name} lacks {dict(missing)}, has {dict(extra)} too"
                )
        shared = self._runs_in("state/sums")
        wanted = Counter({run.spec.run: PARTITIONS for run in state.naming("state/sums")})
        if shared != wanted:
            return f"{'lost' if wanted - shared else 'doubled'}: the changelog has {shared}, committed was {wanted}"
        return "ok"

    def _rows(self, path: str) -> Counter[Any]:
        there: dict[str, Any] = {}
        for version in self.world.tables.get(path, ()):
            there = {name: add for name, add in there.items() if name not in version.removes}
            there |= {add.path: add for add in version.adds}
        return Counter(row for name in there for row in self.world.files[f"{path}/{name}"].rows[1])

    def _runs_in(self, path: str) -> Counter[int]:
        """Count the files of each run that a table ever got and did not lose, one twice if it was added twice."""
        there = Counter[int]()
        for version in self.world.tables.get(f"{ROOT}/{path}", ()):
            there.update(self._run_of(path, add.path) for add in version.adds)
            there.subtract(self._run_of(path, name) for name in version.removes)
        return Counter({run: files for run, files in there.items() if files})

    def _run_of(self, path: str, name: str) -> int:
        run: int = self.world.files[f"{ROOT}/{path}/{name}"].rows[0]
        return run


def _driven(machine: Any) -> Any:
    while True:
        try:
            next(machine)
        except StopIteration as end:
            return end.value


SEEDS, QUICK_SEEDS, CHUNK = 20_000, 100, 250


def suite(settings: Settings) -> Figures:
    """Play histories, seed by seed; what was played before is not played again."""
    figures, results = Figures("simulation"), Results.of("simulation", settings.results)
    through = QUICK_SEEDS if settings.quick else SEEDS
    chunks = [range(first, min(first + CHUNK, through)) for first in range(0, through, CHUNK)]
    left = [chunk for chunk in chunks if not results.knows("history", chunk.start, str(len(chunk)))]
    met: Counter[str] = Counter()
    for said in side_by_side([partial(_chunk, chunk) for chunk in left], settings.at_once):
        if "error" in said:
            raise RuntimeError(said["error"])
        results.add(Outcome("history", said["first"], str(said["seeds"]), json.dumps(said)))
    for (name, _, _), text in results.said.items():
        if name == "history":
            said = json.loads(text)
            met.update(said["met"])
            figures.cases += said["seeds"] - len(said["bad"])
            for seed, word in said["bad"]:
                figures.count(word, f"seed {seed}")
    figures.more = dict(met)
    return figures


def _chunk(seeds: range) -> dict[str, Any]:
    said = play(seeds)
    met: Counter[str] = Counter()
    for _, _, more in said:
        met.update(more)
    return {
        "first": seeds.start,
        "seeds": len(seeds),
        "met": met,
        "bad": [[seed, word] for seed, word, _ in said if word != "ok"],
    }


def play(seeds: Sequence[int]) -> list[tuple[int, str, dict[str, int]]]:
    """Play histories; say of each what came of it."""
    said = []
    with in_memory():
        for seed in seeds:
            simulation = Simulation(seed)
            said.append((seed, simulation.run(), dict(simulation.met)))
    return said
