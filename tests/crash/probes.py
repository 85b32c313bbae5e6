"""Probes: cases of the suites that are small enough to try on mutants. A probe must not fail on unbroken code."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import SubTopologyWork
from rewindow.engine.worker.local_engine import LocalEngine
from tests.crash import scene
from tests.crash.answers import ask, commits_of
from tests.crash.forged import FORGED, accepted
from tests.crash.forks import answer, side_by_side
from tests.crash.holds import hold
from tests.crash.matrix import Case, Ground, Mutate, folder, ground, run_case
from tests.crash.meetings import PAIRS, Meeting, call, compared, finish, meeting, of_main
from tests.crash.operations import OPERATIONS


class Grounds:
    """The prepared warehouses of the probes. They are created in parallel, before the first probe."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._made: dict[str, dict[str, Any]] = {}

    def prepare(self, probes: Probes, at_once: int) -> None:
        """Create the warehouses that these probes need."""
        needs = [need for need in dict.fromkeys(probe.need for probe in probes) if need]
        jobs = [partial(_make, f"{self._root}/{number}", need) for number, need in enumerate(needs)]
        for said in side_by_side(jobs, at_once):
            self._made[said["need"]] = said["made"]

    def ground(self, need: str) -> Ground:
        return Ground(**self._made[need])

    def meeting(self, need: str) -> Meeting:
        return Meeting(**self._made[need])


def _make(root: str, need: str) -> dict[str, Any]:
    kind, _, name = need.partition(":")
    if kind == "pair":
        return {"need": need, "made": asdict(meeting(root, PAIRS[name], 0))}
    then = finish if kind == "finished" else None
    name, _, seed = name.partition("#")
    return {"need": need, "made": asdict(ground(root, OPERATIONS[name], int(seed or 0), then=then))}


def _beginning(start: str, sites: Sequence[str]) -> list[str]:
    """Return the sites that start with this text. Raises `ValueError` if there are none, because such a probe proves nothing."""
    if not (found := [site for site in sites if site.startswith(start)]):
        message = f"no site starts with {start!r}: name one of {sites}"
        raise ValueError(message)
    return found


@dataclass(frozen=True)
class Kill:
    """Kill an operation at the sites that start with ``site``."""

    operation: str
    site: str
    seed: int = 0

    @property
    def need(self) -> str:
        return f"ground:{self.operation}#{self.seed}"

    def tried(self, grounds: Grounds, mutate: Mutate) -> Iterator[str]:
        prepared = grounds.ground(self.need)
        for site in _beginning(self.site, prepared.sites):
            yield run_case(Case(self.operation, self.seed, site), prepared, mutate).said


@dataclass(frozen=True)
class Hold:
    """Hold the first of a pair at the sites that start with ``site``."""

    pair: str
    site: str

    @property
    def need(self) -> str:
        return f"pair:{self.pair}"

    def tried(self, grounds: Grounds, mutate: Mutate) -> Iterator[str]:
        met = grounds.meeting(self.need)
        for site in _beginning(self.site, met.sites):
            yield hold(PAIRS[self.pair], met, 0, site, mutate).said


@dataclass(frozen=True)
class Ask:
    """Give each commit of an operation this answer."""

    operation: str
    kind: str

    @property
    def need(self) -> str:
        return f"finished:{self.operation}"

    def tried(self, grounds: Grounds, mutate: Mutate) -> Iterator[str]:
        prepared = grounds.ground(self.need)
        for number, what in enumerate(commits_of(self.operation, prepared)):
            if what == "commit":
                yield ask(self.operation, prepared, number, self.kind, mutate).said


@dataclass(frozen=True)
class Spoil:
    """Flip a bit of a target's newest staged file before the audit. The run must fail and change nothing."""

    target: str

    need = "finished:run"

    def tried(self, grounds: Grounds, mutate: Mutate) -> Iterator[str]:
        prepared = grounds.ground(self.need)
        with folder() as root:
            warehouse = f"{root}/w"
            shutil.copytree(prepared.folder, warehouse)

            def spoilt() -> str:
                mutate()
                return self._run(warehouse)

            said = answer(spoilt)
            if not said.startswith("StorageError"):
                yield f"wrong: a run with a corrupted file ended with {said[:200]}"
            yield compared(warehouse, [], of_main(prepared.expected))

    def _run(self, warehouse: str) -> str:
        machine = OPERATIONS["run"].act(warehouse)
        try:
            for step in machine:
                if step == "audit":
                    _flip(
                        max(Path(warehouse, self.target).glob("**/*.parquet"), key=lambda path: path.stat().st_mtime_ns)
                    )
        except Exception as error:  # noqa: BLE001 - `tried` checks its class
            return f"{type(error).__name__}: {error}"
        return "done"


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(bytes(data))


@dataclass(frozen=True)
class Lose:
    """Make the engine lose the report of a task, or records of it. The run must fail and change nothing."""

    what: str

    need = "finished:run"

    def tried(self, grounds: Grounds, mutate: Mutate) -> Iterator[str]:
        prepared = grounds.ground(self.need)
        with folder() as root:
            warehouse = f"{root}/w"
            shutil.copytree(prepared.folder, warehouse)

            def lost() -> str:
                mutate()
                scene.engine_of = _Losing if self.what == "report" else _Skipping
                return call(warehouse, "run")

            try:
                said = answer(lost)
            except RuntimeError as error:
                said = str(error)[-200:]
            if not said.startswith("InvariantError"):
                yield f"wrong: a run with a loss ended with {said[:200]}"
            yield compared(warehouse, [], of_main(prepared.expected))


class _Losing(LocalEngine):
    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        return super().run_sub_topology(work)[:-1]


class _Skipping(LocalEngine):
    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        made = super().run_sub_topology(work)
        return [replace(one, consumed={topic: max(0, n - 1) for topic, n in one.consumed.items()}) for one in made]


@dataclass(frozen=True)
class Remake:
    """Make repeated runs give different rows than they committed. The repair must fail."""

    need = "ground:fix#0"

    def tried(self, grounds: Grounds, mutate: Mutate) -> Iterator[str]:
        prepared = grounds.ground(self.need)
        with folder() as root:
            warehouse = f"{root}/w"
            shutil.copytree(prepared.folder, warehouse)

            def made_again() -> str:
                mutate()
                scene.engine_of = _Differing
                return call(warehouse, "fix")

            said = answer(made_again)
            if not said.startswith("InvariantError"):
                yield f"wrong: a repair with different rows ended with {said[:200]}"


class _Differing(LocalEngine):
    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        return [
            replace(one, files=tuple(replace(file, rows_digest="0" * 32) for file in one.files))
            for one in super().run_sub_topology(work)
        ]


@dataclass(frozen=True)
class Forged:
    """Fold illegal ledgers."""

    need = ""

    def tried(self, grounds: Grounds, mutate: Mutate) -> Iterator[str]:
        def judged() -> list[str]:
            mutate()
            return [accepted(name) for name in FORGED]

        yield from answer(judged)


Probe = Kill | Hold | Ask | Spoil | Lose | Remake | Forged
Probes = Sequence[Probe]


def first_catch(probes: Probes, grounds: Grounds, mutate: Mutate) -> str | None:
    """Return the first probe that detects the fault and what it reports, or None if none does."""
    for probe in probes:
        for said in _safely(probe, grounds, mutate):
            if said != "ok":  # a site that is no longer reached counts as detected too
                return f"{probe}: {said}"
    return None


def _safely(probe: Probe, grounds: Grounds, mutate: Mutate) -> Iterator[Any]:
    try:
        yield from probe.tried(grounds, mutate)
    except (RuntimeError, TimeoutError) as error:
        yield f"wrong: {str(error).strip().splitlines()[-1]}"
