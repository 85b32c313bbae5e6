"""A byte of the warehouse changes before a command: it says so or does not need the byte, and goes on once it is restored."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from tests.crash.commands import COMMANDS, after, again, call, noisy, prepared, warm_up
from tests.crash.forks import answer
from tests.crash.matrix import Outcome, folder, outcomes
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings

MUTATIONS, QUICK_MUTATIONS = 220, 4
NAMES = ("land", "run", "rewind", "backfill", "promote", "republish", "reset", "gc")


def mutate(name: str, seed: int, project: str, expected: dict[str, Any]) -> Outcome:
    """Change a byte of a file, call the command, restore the byte, call it again, and compare."""
    words, rng = COMMANDS[name].words, random.Random(f"mutation {name} {seed}")
    with folder() as root:
        copy = Path(root) / "project"
        shutil.copytree(project, copy)
        path = rng.choice(
            sorted(file for file in copy.glob("warehouse/**/*") if file.is_file() and file.stat().st_size)
        )
        data = path.read_bytes()
        at = rng.randrange(len(data))
        changed = data[:at] + bytes([(data[at] + rng.randrange(1, 256)) % 256]) + data[at + 1 :]
        path.write_bytes(changed)
        where = f"{path.relative_to(copy)} byte {at}"
        done = answer(partial(call, str(copy), words))
        if noisy(done["said"]):
            return Outcome(name, seed, "byte", f"wrong: {where}: {done['code']} {done['said'][-300:]}")
        if path.exists() and path.read_bytes() == changed:
            path.write_bytes(data)
        said = again(str(copy), words, expected)
        return Outcome(name, seed, "byte", said if said == "ok" else f"{said} (after {where})")


def suite(settings: Settings) -> Figures:
    """Change bytes before each of several commands."""
    figures, results = Figures("mutated-bytes"), Results.of("mutated-bytes", settings.results)
    warm_up()
    names = ["run"] if settings.quick else list(NAMES)
    seeds = range((QUICK_MUTATIONS if settings.quick else MUTATIONS) // len(names))
    for name in names:
        left = [seed for seed in seeds if not results.knows(name, seed, "byte")]
        if not left:
            continue
        with folder() as root:
            project = prepared(root, COMMANDS[name])
            expected = after(project, f"{root}/clean", COMMANDS[name].words)
            jobs = [partial(mutate, name, seed, project, expected) for seed in left]
            results.keep(outcomes(jobs, settings.at_once), settings.say)
    for (name, seed, _), word in results.said.items():
        figures.count(word, f"{name} {seed}")
    return figures
