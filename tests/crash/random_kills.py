"""Commands that a signal ends at a random moment. The same command again must reach the clean state at once.

A command runs from its entry point on, as in a process of its own: with its signal handlers, streams and temporary folders.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from rewindow.__main__ import main
from rewindow.contracts.exit_codes import CODES
from tests.bad_input.scene import without_spark
from tests.crash.commands import COMMANDS, after, again, noisy, prepared, warm_up
from tests.crash.forks import fork
from tests.crash.matrix import Outcome, folder, outcomes
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings

KILLS, QUICK_KILLS = 308, 4
TRIES = 12
"""How often a kill is tried again earlier, because the command had ended before it."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGHUP)
"""The signal of each seed, in turn. Each third seed sends it twice."""


def kill(name: str, seed: int, project: str, seconds: float, expected: dict[str, Any]) -> Outcome:
    """End a command at a random moment of its ``seconds``, call it again, and compare."""
    words, number = COMMANDS[name].words, SIGNALS[seed % len(SIGNALS)]
    rng = random.Random(f"{name} {seed}")
    for _ in range(TRIES):
        with folder() as root:
            copy, temporary = Path(root) / "project", Path(root) / "temporary"
            shutil.copytree(project, copy)
            temporary.mkdir()
            child = fork(partial(command, copy, words, temporary))
            time.sleep(rng.random() * seconds)
            for _ in range(1 + (seed % 3 == 0)):
                os.kill(child.pid, number)
            code = child.finish()
            if code == 0:
                seconds *= 0.7
                continue
            left = [] if number == signal.SIGKILL else [*temporary.glob("rewindow-*")]
            said = (temporary / "said").read_text() if (temporary / "said").exists() else ""
            if code not in {-number, 128 + number} or 128 + number not in CODES or left or noisy(said):
                word = f"wrong: ended with {code} by signal {number}, left {left}: {said[-300:]}"
                return Outcome(name, seed, "random", word)
            return Outcome(name, seed, "random", again(str(copy), words, expected))
    return Outcome(name, seed, "random", "not reached: the command always ended before its kill")


def command(project: Path, words: tuple[str, ...], temporary: Path, _mark: int) -> None:
    """Run a command line from the entry point of its process. What it prints goes to the file `said` of its temporary folder."""
    nowhere, said = os.open(os.devnull, os.O_RDWR), os.open(temporary / "said", os.O_CREAT | os.O_WRONLY)
    for stream, number in ((nowhere, 0), (said, 1), (said, 2)):
        os.dup2(stream, number)
    os.chdir(project)
    os.environ["TMPDIR"], tempfile.tempdir = str(temporary), None
    sys.argv = ["rewindow", *words]
    with without_spark():
        main()


def suite(settings: Settings) -> Figures:
    """End each command at random moments."""
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
