"""Two or eight processes at once that sleep and die at random. Such duels find cases that nobody thought of.

The rounds in which two processes reached the same commit are counted separately.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.crash.forks import fork
from tests.crash.matrix import Mutate, Outcome, folder, nothing, outcomes, warm_up
from tests.crash.meetings import PAIRS, Meeting, call, compared, meeting
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings
from tests.crash.sites import Sites, die


@dataclass(frozen=True)
class Round:
    """One duel: all processes start at once, sleep and die at random, and are called again after they die."""

    pair: str
    seed: int
    site: str = "duel"


def duel(one: Round, met: Meeting, fighters: int = 2, mutate: Mutate = nothing) -> Outcome:
    """Fight one round. Return the comparison, with the number of kills and whether two processes reached the same commit."""
    pair = PAIRS[one.pair]
    with folder() as root:
        warehouse = f"{root}/w"
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
        word = compared(warehouse, said, met.expected, mutate, told=pair.told)
        more = f"{kills} kills {int(_contested(warehouse))} contested"
        return Outcome(one.pair, one.seed, one.site, f"{word} / {more}")


def _fight(
    warehouse: str, operation: str, one: Round, number: int, turn: int, begin: float, mutate: Mutate, mark: int
) -> None:
    mutate()
    rng = random.Random(f"{one} {number} {turn}")
    log = os.open(f"{warehouse}/commits-{number}", os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def visit(_name: str) -> None:
        draw = rng.random()
        if draw < 0.008:
            die(by_signal=True)
        elif draw < 0.25:
            time.sleep(rng.random() * 0.01)
        elif draw < 0.28:
            time.sleep(rng.random() * 0.1)

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


ROUNDS = 1_000


def suite(settings: Settings) -> Figures:
    """Fight rounds of two processes for all pairs, and some rounds of eight runs."""
    figures, results = Figures("duels"), Results.of("duels", settings.results)
    warm_up()
    names = ["run | run"] if settings.quick else list(PAIRS)
    rounds = 6 if settings.quick else ROUNDS
    for index, name in enumerate(names):
        seeds = range(rounds // len(names) + (index < rounds % len(names)))
        _fight_all(name, "duel", list(seeds), 2, results, settings)
        if name == "run | run":  # of eight runs, two almost always reach the same commit
            _fight_all(name, "duel of 8", list(range(max(1, rounds // 50))), 8, results, settings)
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
    with folder() as root:
        met = meeting(root, PAIRS[name], 0)
        jobs = [partial(duel, Round(name, seed, site), met, fighters) for seed in left]
        results.keep(outcomes(jobs, settings.at_once), settings.say)
