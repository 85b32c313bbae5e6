"""The fault matrix: each operation killed at each of its sites, for many seeds; the same command again; all tables compared.

A case counts only if the kill was seen: the exit status is that of the kill, and the last word of the process was the
name of the site. Every third seed the command that fixes is killed too, at a moment of the seed's choosing.

Many operations pass sites of one name. The first seeds kill each operation at each of them; the others kill at each name
once, in an operation of the seed's choosing.
"""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from tests.crash.forks import answer, fork, preload, side_by_side
from tests.crash.judge import View, verdict, view
from tests.crash.operations import OPERATIONS, Operation
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings
from tests.crash.sites import KILLED, Sites, die, die_at, traced

Mutate = Callable[[], object]

EVERYWHERE = 3
"""Of so many seeds each site is a case in each operation that passes it."""


@dataclass(frozen=True)
class Case:
    """One kill."""

    operation: str
    seed: int
    site: str

    @property
    def by_signal(self) -> bool:
        return self.seed % 2 == 1


@dataclass(frozen=True)
class Ground:
    """What stands before an operation of a seed, the sites of a clean call, and what the tables say after it.

    ``expected_of_two``: what they say after two clean calls, if each counts (`Operation.each_counts`): this is due if the
    first call died when all it does was done.
    """

    folder: str
    sites: list[str]
    expected: View
    expected_of_two: View | None = None

    def expected_after(self, site: str) -> View:
        """Return what the tables must say when a call was killed at a site, and the same command was called again."""
        last = max((number for number, name in enumerate(self.sites) if ": landed" in name), default=0)
        is_done = self.expected_of_two is not None and self.sites.index(site) >= last
        return self.expected_of_two if is_done and self.expected_of_two is not None else self.expected


@dataclass(frozen=True)
class Outcome:
    """What came of a case: ``ok``, ``not reached``, ``lost``, ``doubled`` or ``wrong``, and details after a colon."""

    operation: str
    seed: int
    site: str
    said: str


def nothing() -> None:
    """Change nothing: the code as it is."""


@contextmanager
def folder() -> Iterator[str]:
    """Give a folder that is gone afterwards."""
    root = tempfile.mkdtemp(prefix="rewindow-crash-")
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def ground(root: str, operation: Operation, seed: int, *, then: Callable[[str], None] | None = None) -> Ground:
    """Prepare an operation, make one clean call in a copy (and ``then`` something), and see what the tables say."""
    before, after = f"{root}/before", f"{root}/after"
    answer(partial(operation.prepare, before, seed))
    shutil.copytree(before, after)
    names = answer(lambda: traced(after, operation.act(after)))
    if then is not None:
        answer(partial(then, after))
    expected = answer(partial(view, after))
    of_two = None
    if then is None:
        answer(partial(_call, after, operation))
        of_two = answer(partial(view, after))
    shutil.rmtree(after)
    if operation.each_counts:
        return Ground(before, names, expected, of_two)
    if of_two is not None and (said := verdict(expected, of_two)) != "ok":
        message = f"{operation.name}: a second clean call changes the tables: {said}"
        raise AssertionError(message)
    return Ground(before, names, expected)


def run_case(case: Case, prepared: Ground, mutate: Mutate = nothing) -> Outcome:
    """Kill the operation at the site, call it again, and compare."""
    operation = OPERATIONS[case.operation]
    with folder() as root:
        warehouse = f"{root}/w"
        shutil.copytree(prepared.folder, warehouse)

        def crash(mark: int) -> None:
            mutate()
            die_at(warehouse, operation.act(warehouse), case.site, by_signal=case.by_signal, mark=mark)

        child = fork(crash)
        status = child.finish()
        wanted = -signal.SIGKILL if case.by_signal else KILLED
        if (status, child.said.decode()) != (wanted, case.site):
            return Outcome(**asdict(case), said=f"not reached: {status} {child.said.decode()[-300:]}")
        if case.seed % 3 == 2 and not operation.each_counts:
            fork(partial(_die_again, warehouse, operation, case, mutate)).finish()
        return Outcome(**asdict(case), said=recovered(warehouse, operation, prepared.expected_after(case.site), mutate))


def _die_again(warehouse: str, operation: Operation, case: Case, mutate: Mutate, _mark: int) -> None:
    mutate()
    left = random.Random(f"{case.operation} {case.seed} {case.site}").randrange(1, 70)

    def visit(_name: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            die(by_signal=case.by_signal)

    sites = Sites(warehouse, visit)
    sites.install()
    sites.drive(operation.act(warehouse))


def recovered(warehouse: str, operation: Operation, expected: View, mutate: Mutate = nothing) -> str:
    """Call an operation once more, in a process of its own, and say how its tables compare right after it."""
    try:
        answer(partial(_call, warehouse, operation, mutate))
        return verdict(expected, answer(partial(view, warehouse)))
    except RuntimeError as error:
        return in_a_line(str(error))


def _call(warehouse: str, operation: Operation, mutate: Mutate = nothing) -> None:
    mutate()
    for _ in operation.act(warehouse):
        pass


def in_a_line(traceback: str) -> str:
    """Say what an error that ended a process means for the tables."""
    last = traceback.strip().splitlines()[-1]
    for word in ("lost", "doubled"):
        if f"{word}: " in last or f"{word} output" in last:
            return f"{word}: {last}"
    return f"wrong: {last}"


def cases_of(seed: int, sites: Mapping[str, Sequence[str]]) -> list[Case]:
    """Return the cases of a seed. ``sites``: by operation, those that a clean call passed."""
    if seed < EVERYWHERE:
        return [Case(name, seed, site) for name, passed in sites.items() for site in passed]
    passing: defaultdict[str, list[str]] = defaultdict(list)
    for name, passed in sites.items():
        for site in passed:
            passing[site].append(name)
    return [Case(random.Random(f"{seed} {site}").choice(names), seed, site) for site, names in passing.items()]


def run_matrix(
    names: Sequence[str],
    seed: int,
    results: Results,
    say: Callable[[str], None],
    *,
    at_once: int,
    point: str | None = None,
    every: int = 1,
) -> None:
    """Run all cases of some operations and a seed that are not yet in the results, and keep each outcome as it is known.

    ``point``: only sites with this in their names; ``every``: only each so-manyth of these.
    """

    def left() -> list[Case]:
        sites = {name: results.sites[name, seed] for name in names}
        cases = [case for case in cases_of(seed, sites) if point is None or point in case.site][::every]
        return [case for case in cases if not results.knows(case.operation, seed, case.site)]

    if all((name, seed) in results.sites for name in names) and not left():
        return
    with folder() as root:
        grounds = {}
        for name, prepared in side_by_side([partial(_ground, root, name, seed) for name in names], at_once):
            grounds[name] = Ground(**prepared)
            results.note_sites(name, seed, grounds[name].sites)
        jobs = [partial(run_case, case, grounds[case.operation]) for case in left()]
        results.keep(outcomes(jobs, at_once), say)


def _ground(root: str, name: str, seed: int) -> tuple[str, dict[str, object]]:
    own = f"{root}/{name}"
    Path(own).mkdir()
    return name, asdict(ground(own, OPERATIONS[name], seed))


def outcomes(jobs: Iterable[Callable[[], Outcome]], at_once: int) -> Iterator[Outcome]:
    """Run cases in children, ``at_once`` in parallel. Yield each outcome as it is known; raises as `side_by_side`."""
    for said in side_by_side([partial(_as_json, job) for job in jobs], at_once):
        yield Outcome(**said)


def _as_json(job: Callable[[], Outcome]) -> dict[str, object]:
    return asdict(job())


def suite(settings: Settings) -> Figures:
    """Kill at each site for each seed; ``quick``: at some sites of one seed."""
    figures, results = Figures("matrix"), Results.of("matrix", settings.results)
    warm_up()
    chosen = (settings.point or "").split(",")
    is_named = OPERATIONS.keys() >= set(chosen)
    names, point = (chosen, None) if is_named else (list(OPERATIONS), settings.point)
    every = 30 if settings.quick else 1
    for seed in range(1 if settings.quick else settings.seeds):
        run_matrix(names, seed, results, settings.say, at_once=settings.at_once, point=point, every=every)
        settings.say(f"matrix: seed {seed} done, {len(results.said)} cases known")
    for (name, seed, site), said in results.said.items():
        if name in names and seed < settings.seeds and (point is None or point in site):
            figures.count(said, f"{name} {seed} {site}")
    figures.more = {
        **results.extent(),
        "steps": sorted({site.partition(" > ")[0] for passed in results.sites.values() for site in passed}),
    }
    return figures


def warm_up() -> None:
    """Import what cases import, so that children need not."""

    def work() -> None:
        with folder() as root:
            operation = OPERATIONS["run"]
            operation.prepare(root, 0)
            for _ in operation.act(root):
                pass
            view(root)

    preload(work)
