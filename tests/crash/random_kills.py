"""Commands killed from another process at a random moment. The same command again must reach the clean state at once."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from functools import partial
from typing import Any

from tests.crash.commands import COMMANDS, after, again, call, detached, prepared, warm_up
from tests.crash.forks import fork
from tests.crash.matrix import Outcome, folder, outcomes
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings

KILLS, QUICK_KILLS = 220, 4
TRIES = 12
"""How often a kill is tried again earlier, because the command had ended before it."""


def kill(name: str, seed: int, project: str, seconds: float, expected: dict[str, Any]) -> Outcome:
    """Kill a command at a random moment of its ``seconds``, call it again, and compare."""
    words = COMMANDS[name].words
    rng = random.Random(f"{name} {seed}")
    for _ in range(TRIES):
        with folder() as root:
            copy = f"{root}/project"
            shutil.copytree(project, copy)
            child = fork(detached(partial(call, copy, words)))
            time.sleep(rng.random() * seconds)
            os.kill(child.pid, signal.SIGKILL)
            if child.finish() == -signal.SIGKILL:
                return Outcome(name, seed, "random", again(copy, words, expected))
        seconds *= 0.7
    return Outcome(name, seed, "random", "not reached: the command always ended before its kill")


def suite(settings: Settings) -> Figures:
    """Kill each command at random moments."""
    figures, results = Figures("random-kills"), Results.of("random-kills", settings.results)
    warm_up()
    names = ["land", "run"] if settings.quick else list(COMMANDS)
    seeds = range((settings.kills or (QUICK_KILLS if settings.quick else KILLS)) // len(names))
    for name in names:
        left = [seed for seed in seeds if not results.knows(name, seed, "random")]
        if not left:
            continue
        with folder() as root:
            project = prepared(root, COMMANDS[name])
            begun = time.monotonic()
            expected = after(project, f"{root}/clean", COMMANDS[name].words)
            seconds = (time.monotonic() - begun) / 2
            jobs = [partial(kill, name, seed, project, seconds, expected) for seed in left]
            results.keep(outcomes(jobs, settings.at_once), settings.say)
    for (name, seed, _), word in results.said.items():
        figures.count(word, f"{name} {seed}")
    return figures
