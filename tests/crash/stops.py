"""Duels with a stopped process: SIGSTOP at a known site, another command runs to its end, SIGCONT, and both go on.

A duel counts only if the kernel reported the first process as stopped while the second one ran. With `--takeover`, or after
the stopped process made no progress for too long (``stalls``), it wakes up as a zombie, whose run somebody else has committed;
otherwise the second one has to wait.
``overtaken`` counts the stopped processes that were told so: they ended with another code than 0.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.crash.commands import COMMANDS, LAND, RUN, after, call, compare, detached, noisy, prepared, seen, warm_up
from tests.crash.forks import answer, fork
from tests.crash.matrix import Outcome, folder, outcomes
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings
from tests.crash.sites import Sites

CODES = (0, 75, 76)
"""What either command may end with: it is done, or the other one was faster."""


@dataclass(frozen=True)
class Duel:
    """Two commands on one project. ``prepare``: the command whose preparation is that of the duel.

    ``stalls``: the stopped process has had no heartbeat for so long that the other one must take over.
    """

    name: str
    prepare: str
    stopped: tuple[str, ...]
    other: tuple[str, ...]
    stalls: bool = False


TAKEOVER = (*RUN, "--takeover")
DUELS = {
    duel.name: duel
    for duel in (
        Duel("run | run --takeover", "run", RUN, TAKEOVER),
        Duel("run | run", "run", RUN, RUN),
        Duel("land | land", "land", LAND, LAND),
        Duel("run | land", "run --land", (*RUN, "--land"), LAND),
        Duel("land | run", "run --land", LAND, (*RUN, "--land")),
        Duel("stalled run | run", "run", RUN, RUN, stalls=True),
        Duel("stalled land | land", "land", LAND, LAND, stalls=True),
    )
}
ROUNDS, QUICK_ROUNDS = 84, 6


def duel(name: str, seed: int, site: str, project: str, expected: dict[str, Any]) -> Outcome:
    """Stop the first command at a site, run the other one, let the first one go on, call both again, and compare."""
    one = DUELS[name]
    with folder() as root:
        copy = f"{root}/project"
        shutil.copytree(project, copy)
        first = fork(detached(partial(_stopping, copy, one.stopped, site)))
        _, status = os.waitpid(first.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return Outcome(name, seed, site, f"not reached: it ended with {os.waitstatus_to_exitcode(status)}")
        for beat in Path(f"{copy}/warehouse/rewindow/heartbeats").glob("*") if one.stalls else ():
            os.utime(beat, (0, 0))
        other = answer(partial(call, copy, one.other))
        os.kill(first.pid, signal.SIGCONT)
        first.finish()
        if one.stalls and other["code"] != 0:
            return Outcome(name, seed, site, f"wrong: nobody took over from a stalled process: {other}")
        ends = {"the other one": other, "the stopped one": json.loads(first.said)}
        for words in (one.stopped, one.other):
            ends[f"{' '.join(words)} again"] = done = answer(partial(call, copy, words))
            if done["code"] != 0:
                return Outcome(name, seed, site, f"wrong: {words} again ended with {done}")
        for who, done in ends.items():
            if done["code"] not in CODES or noisy(done["said"]):
                return Outcome(name, seed, site, f"wrong: {who} ended with {done['code']}: {done['said'][-300:]}")
        said = compare(answer(partial(seen, copy)), expected)
        codes = f"{ends['the stopped one']['code']} {other['code']}"
        return Outcome(name, seed, site, f"{said} / {codes}")


def _stopping(root: str, words: tuple[str, ...], site: str) -> dict[str, Any]:
    def visit(name: str) -> None:
        if name == site:
            os.kill(os.getpid(), signal.SIGSTOP)

    return _visiting(root, words, visit)


def _passed(root: str, words: tuple[str, ...]) -> list[str]:
    names: list[str] = []
    _visiting(root, words, names.append)
    return names


def _visiting(root: str, words: tuple[str, ...], visit: Callable[[str], None]) -> dict[str, Any]:
    Sites(f"{root}/warehouse", visit, fine=True).install()
    return call(root, words)


def suite(settings: Settings) -> Figures:
    """Stop the first command of each pair at sites spread over its whole call."""
    figures, results = Figures("stops"), Results.of("stops", settings.results)
    warm_up()
    names = ["run | run --takeover", "stalled run | run", "land | land"] if settings.quick else list(DUELS)
    rounds = (QUICK_ROUNDS if settings.quick else ROUNDS) // len(names)
    for name in names:
        one = DUELS[name]
        with folder() as root:
            project = prepared(root, COMMANDS[one.prepare])
            shutil.copytree(project, f"{root}/traced")
            sites = answer(partial(_passed, f"{root}/traced", one.stopped))
            expected = after(project, f"{root}/clean", one.stopped, one.other)
            chosen = random.Random(name).sample(sites, min(rounds, len(sites)))
            left = [(seed, site) for seed, site in enumerate(chosen) if not results.knows(name, seed, site)]
            jobs = [partial(duel, name, seed, site, project, expected) for seed, site in left]
            results.keep(outcomes(jobs, settings.at_once), settings.say)
    overtaken = 0
    for (name, _, site), said in results.said.items():
        word, _, codes = said.partition(" / ")
        figures.count(word, f"{name} stopped at {site}")
        overtaken += bool(codes) and codes.split()[0] != "0"
    figures.more = {"overtaken": overtaken}
    return figures
