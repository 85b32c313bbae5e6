"""Two processes at once, no lock around them: one held at a point while the other goes to the end, and both at random.

Directed holds find what random duels do not; random duels find what nobody thought of. Both count only where they meant
something: a hold was seen at its site, and of the duels those rounds are counted in which both reached one commit.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rewindow.delta.warehouse import DeltaTables
from rewindow.errors import RewindowError
from rewindow.plan.lineage import Standing
from rewindow.plan.spec import MAIN
from tests.crash import scene
from tests.crash.forks import Child, answer, fork, side_by_side
from tests.crash.judge import View, verdict, view
from tests.crash.matrix import Mutate, Outcome, folder, in_a_line, nothing, warm_up
from tests.crash.operations import OPERATIONS, branched, ravaged, small_files_read, some_runs, unpublished
from tests.crash.results import Results
from tests.crash.scene import JOB
from tests.crash.settings import Figures, Settings
from tests.crash.sites import Sites, die, traced

EXPECTED_ERRORS = ("NotNowError", "UsageError", "CheckpointError", "ConfigError")
"""What the slower of two may be told: come back later, or that the other has done it."""


@dataclass(frozen=True)
class Pair:
    """Two operations on one warehouse. After both, runs bring `main` to the end: there the clean call went, too."""

    name: str
    prepare: Callable[[str, int], None]
    one: str
    other: str


PAIRS = {
    pair.name: pair
    for pair in (
        Pair("run | run", some_runs([1, 2]), "run", "run"),
        Pair("run | rewind", some_runs([1, 2]), "run", "rewind"),
        Pair("rewind | run", some_runs([1, 2, 3]), "rewind", "run"),
        Pair("rewind | rewind", some_runs([1, 2, 3]), "rewind", "rewind"),
        Pair("backfill | run", some_runs([1, 2, 3]), "backfill", "run"),
        Pair("backfill | backfill", some_runs([1, 2, 3]), "backfill", "backfill"),
        Pair("run | promote", branched, "run", "promote"),
        Pair("promote | run", branched, "promote", "run"),
        Pair("promote | rewind", branched, "promote", "rewind"),
        Pair("rewind | promote", branched, "rewind", "promote"),
        Pair("promote | promote", branched, "promote", "promote"),
        Pair("publish | publish", unpublished, "publish", "publish"),
        Pair("republish | run", some_runs([1, 2]), "republish", "run"),
        Pair("run | rewind-republish", some_runs([1, 2]), "run", "rewind-republish"),
        Pair("first-run | first-run", some_runs([]), "first-run", "first-run"),
        Pair("land | land", scene.write_source, "land", "land"),
        Pair("gc-feed | land", small_files_read, "gc-feed", "land-last"),
        Pair("land | gc-feed", small_files_read, "land-last", "gc-feed"),
        Pair("gc-feed | gc-feed", small_files_read, "gc-feed", "gc-feed"),
        Pair("gc-feed | run", small_files_read, "gc-feed", "run"),
        Pair("run | gc-feed", small_files_read, "run", "gc-feed"),
        Pair("gc | run", some_runs([1, 2]), "gc", "run"),
        Pair("run | gc", some_runs([1, 2]), "run", "gc"),
        Pair("gc | rewind", some_runs([1, 2, 3]), "gc", "rewind"),
        Pair("gc | promote", branched, "gc", "promote"),
        Pair("mend | run", ravaged, "mend", "run"),
        Pair("mend | rewind", ravaged, "mend", "rewind"),
    )
}


@dataclass(frozen=True)
class Meeting:
    """A warehouse before a pair, the sites of the first one's clean call, and what `main` says in the end."""

    folder: str
    sites: list[str]
    expected: View


def meeting(place: str, pair: Pair, seed: int) -> Meeting:
    """Prepare a pair and make both calls, one after the other."""
    before, after = f"{place}/before", f"{place}/after"
    answer(partial(pair.prepare, before, seed))
    shutil.copytree(before, after)
    names = answer(lambda: traced(after, OPERATIONS[pair.one].act(after), fine=True))
    answer(partial(call, after, pair.other))
    answer(partial(finish, after))
    expected = of_main(answer(partial(view, after)))
    shutil.rmtree(after)
    return Meeting(before, names, expected)


def call(warehouse: str, operation: str, sites: Sites | None = None) -> str:
    """Make one call and say what it said: ``done``, or the name and text of its error."""
    try:
        machine = OPERATIONS[operation].act(warehouse)
        if sites is not None:
            sites.drive(machine)
        for _ in machine:
            pass
    except RewindowError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def finish(warehouse: str) -> None:
    """Do what is left to do: publish every lineage, and run `main` to the end."""
    if not (Path(warehouse) / "rewindow" / "runs").exists():
        if (Path(warehouse) / "raw").exists():
            call(warehouse, "land")
        return
    tables = DeltaTables(warehouse)
    for lineage in (MAIN, *tables.state(JOB).lineages):
        for _ in tables.publish(JOB, tables.state(JOB), lineage):
            pass
    if tables.state(JOB).lineage(MAIN).standing is Standing.OPEN:
        for _ in scene.run_all(tables):
            pass


def of_main(says: View) -> View:
    """Leave out what the order of two operations may change: how far other lineages are."""
    kept = {name: rows for name, rows in says["rows"].items() if "__" not in name}
    parts = {part: {MAIN: says[part].get(MAIN)} for part in ("hashes", "lineages") if part in says}
    return {**says, **parts, "rows": kept}


def hold(pair: Pair, met: Meeting, seed: int, site: str, mutate: Mutate = nothing) -> Outcome:
    """Hold the first at a site, let the second go to the end, let the first go on; then compare."""
    with folder() as place:
        warehouse = f"{place}/w"
        shutil.copytree(met.folder, warehouse)
        gate, opened = os.pipe()
        first = fork(partial(_held, warehouse, pair.one, site, gate, mutate))
        if not _reaches(first, site):
            return Outcome(pair.name, seed, site, f"not reached: {first.finish()} {first.said[-300:].decode()}")
        said = [_last(answer(partial(_calling, warehouse, pair.other, mutate)))]
        os.write(opened, b"x")
        first.finish()
        os.close(gate)
        os.close(opened)
        said.append(_last(first.said.decode()))
        return Outcome(pair.name, seed, site, compared(warehouse, said, met.expected, mutate))


def compared(warehouse: str, said: list[str], expected: View, mutate: Mutate = nothing) -> str:
    """Do what is left, and say how `main` compares; ``said``: what the processes said in the end."""
    for text in said:
        if text != "done" and not text.startswith(EXPECTED_ERRORS):
            return f"wrong: one said {text[-400:]}"
    try:
        answer(partial(_finishing, warehouse, mutate))
        return verdict(expected, of_main(answer(partial(view, warehouse))))
    except RuntimeError as error:
        return in_a_line(str(error))


def _held(warehouse: str, operation: str, site: str, gate: int, mutate: Mutate, mark: int) -> None:
    mutate()

    def visit(name: str) -> None:
        if name == site:
            os.write(mark, f"{site}\n".encode())
            os.read(gate, 1)

    sites = Sites(warehouse, visit, fine=True)
    sites.install()
    os.write(mark, f"\n{call(warehouse, operation, sites)}".encode())


def _calling(warehouse: str, operation: str, mutate: Mutate) -> str:
    mutate()
    return call(warehouse, operation)


def _finishing(warehouse: str, mutate: Mutate) -> None:
    mutate()
    finish(warehouse)


def _reaches(child: Child, site: str) -> bool:
    while chunk := os.read(child.pipe, 1 << 16):
        child.said += chunk
        if child.said.decode().startswith(f"{site}\n"):
            return True
    return False


def _last(text: str) -> str:
    return text.rpartition("\n")[2] if "\ndone" in text else text.partition("\n\n")[2] or text


@dataclass(frozen=True)
class Round:
    """One duel: both start at once, sleep here and there, die now and then and are called again."""

    pair: str
    seed: int


def duel(one: Round, met: Meeting, fighters: int = 2, mutate: Mutate = nothing) -> dict[str, Any]:
    """Fight one round. Says how it compares, how many died, and whether two reached one and the same commit."""
    pair = PAIRS[one.pair]
    with folder() as place:
        warehouse = f"{place}/w"
        shutil.copytree(met.folder, warehouse)
        operations = [(pair.one, pair.other)[number % 2] for number in range(fighters)]
        begin = time.monotonic() + 0.05
        calls = [0] * fighters
        running = {
            n: fork(partial(_fight, warehouse, operations[n], one, n, 0, begin, mutate)) for n in range(fighters)
        }
        said, kills = [], 0
        while running:
            number = next(iter(running))
            child = running.pop(number)
            status = child.finish()
            text = child.said.decode()
            kills += status < 0
            calls[number] += 1
            if (status < 0 or text.startswith("NotNowError")) and calls[number] < 12:
                running[number] = fork(
                    partial(_fight, warehouse, operations[number], one, number, calls[number], 0.0, mutate)
                )
            elif status >= 0:
                said.append(text)
        word = compared(warehouse, said, met.expected, mutate)
        return {**asdict(Outcome(one.pair, one.seed, "duel", word)), "kills": kills, "contested": _contested(warehouse)}


def _fight(
    warehouse: str, operation: str, one: Round, number: int, turn: int, begin: float, mutate: Mutate, mark: int
) -> None:
    mutate()
    chance = random.Random(f"{one} {number} {turn}")
    log = os.open(f"{warehouse}/commits-{number}", os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def visit(_name: str) -> None:
        dice = chance.random()
        if dice < 0.008:
            die(by_signal=True)
        elif dice < 0.25:
            time.sleep(chance.random() * 0.01)
        elif dice < 0.28:
            time.sleep(chance.random() * 0.1)

    def committing(table: str, app_id: str, version: int) -> None:
        os.write(log, f"{table} {app_id} {version}\n".encode())

    sites = Sites(warehouse, visit, fine=True, committing=committing)
    sites.install()
    time.sleep(max(0.0, begin - time.monotonic()))
    os.write(mark, call(warehouse, operation, sites).encode())


def _contested(warehouse: str) -> bool:
    who: dict[str, set[str]] = defaultdict(set)
    for log in Path(warehouse).glob("commits-*"):
        for line in log.read_text().splitlines():
            who[line].add(log.name)
    return any(len(names) > 1 for names in who.values())


def holds(settings: Settings) -> Figures:
    """Hold the first of each pair at each of its sites; ``quick``: at a few of one pair."""
    figures, results = Figures("holds"), Results.of("holds", settings.results)
    warm_up()
    pairs = [PAIRS["run | run"], PAIRS["promote | rewind"]] if settings.quick else list(PAIRS.values())
    for pair in pairs:
        with folder() as place:
            met = meeting(place, pair, 0)
            sites = met.sites[:: max(1, len(met.sites) // 6)] if settings.quick else met.sites
            if settings.point:
                sites = [site for site in sites if settings.point in site or settings.point in pair.name]
            left = [site for site in sites if not results.knows(pair.name, 0, site)]
            results.note_sites(pair.name, 0, met.sites)
            for said in side_by_side([partial(_hold_as_json, pair, met, site) for site in left], settings.at_once):
                _keep(said, results, settings)
            for site in sites:
                figures.count(results.said[pair.name, 0, site], f"{pair.name} held at {site}")
    figures.more = {"pairs": len(pairs)}
    return figures


def _hold_as_json(pair: Pair, met: Meeting, site: str) -> dict[str, Any]:
    return asdict(hold(pair, met, 0, site))


def _keep(said: dict[str, Any], results: Results, settings: Settings) -> None:
    if "error" in said:
        raise RuntimeError(said["error"])
    outcome = Outcome(**{name: said[name] for name in ("operation", "seed", "site", "said")})
    results.add(outcome)
    if outcome.said != "ok":
        settings.say(f"{outcome.operation} {outcome.seed} {outcome.site}: {outcome.said}")


ROUNDS = 1_000


def duels(settings: Settings) -> Figures:
    """Fight rounds of two, all pairs in turn, and a tenth as many of eight runners."""
    figures, results = Figures("duels"), Results.of("duels", settings.results)
    warm_up()
    names = ["run | run"] if settings.quick else list(PAIRS)
    rounds = 6 if settings.quick else ROUNDS
    for index, name in enumerate(names):
        seeds = range(rounds // len(names) + (index < rounds % len(names)))
        _fight_all(name, "duel", list(seeds), 2, results, settings)
        if name == "run | run" and not settings.quick:
            _fight_all(name, "duel of 8", list(range(rounds // 50)), 8, results, settings)
    kills = contested = 0
    for (name, seed, site), said in results.said.items():
        word, _, rest = said.partition(" / ")
        figures.count(word, f"{name} {seed} {site}")
        kills += int(rest.split()[0])
        contested += int(rest.split()[2])
    figures.more = {"kills": kills, "contested": contested}
    return figures


def _fight_all(name: str, site: str, seeds: list[int], fighters: int, results: Results, settings: Settings) -> None:
    left = [seed for seed in seeds if not results.knows(name, seed, site)]
    if not left:
        return
    with folder() as place:
        met = meeting(place, PAIRS[name], 0)
        jobs = [partial(duel, Round(name, seed), met, fighters) for seed in left]
        for said in side_by_side(jobs, settings.at_once):
            if "error" in said:
                raise RuntimeError(said["error"])
            if said["said"] != "ok":
                settings.say(f"{name} {said['seed']} {site}: {said['said']}")
            more = f" / {said['kills']} kills {int(said['contested'])} contested"
            results.add(Outcome(name, said["seed"], site, said["said"] + more))
