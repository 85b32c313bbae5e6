"""SIGKILL of a Python worker of Spark at a random record: the run fails, and the next call completes it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

from rewindow import Count, StreamsBuilder, TimeWindows, Topology, until_window_closes
from tests.crash import scene
from tests.crash.forks import answer
from tests.crash.matrix import Ground, Outcome, folder, ground, outcomes, recovered, warm_up
from tests.crash.meetings import call
from tests.crash.operations import OPERATIONS
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings
from tests.crash.spark import engine, one_jvm

FLAG = "REWINDOW_CRASH_FLAG"
"""The environment variable with the path of a file that states at which record of a run a worker dies.

While that file exists, the workers count records in another file beside it.
"""
COUNTED = ".counted"
NEVER = 2**60

CASES, QUICK_CASES = 40, 2


def topology() -> Topology:
    """Build a job like the scene's, in which a worker may die when it reads a record."""
    builder = StreamsBuilder()
    hours = builder.stream(scene.TOPIC).filter(lives).group_by_key().windowed_by(TimeWindows.of("40ms", grace="10ms"))
    hours.aggregate(Count(), store="hours").suppress(until_window_closes(), name="closed").to_stream().to("hourly")
    return builder.build()


def lives(_key: object, _value: object) -> bool:
    """Count a record of the run, and kill this process at the chosen one, once. Always return True."""
    flag = Path(os.environ.get(FLAG, "/nowhere"))
    with suppress(FileNotFoundError):  # no worker is to die, or one already has
        last = int(flag.read_text())
        with Path(f"{flag}{COUNTED}").open("ab") as counted:
            counted.write(b".")
            counted.flush()
            number = os.fstat(counted.fileno()).st_size
        if number >= last:
            flag.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
    return True


def records_read(prepared: Ground, flag: str) -> int:
    """Return the number of records that a clean call reads."""
    with folder() as root:
        warehouse = f"{root}/w"
        shutil.copytree(prepared.folder, warehouse)
        Path(flag).write_text(str(NEVER))
        answer(partial(call, warehouse, "run"))
    Path(flag).unlink()
    return Path(f"{flag}{COUNTED}").stat().st_size


def kill(seed: int, prepared: Ground, flag: str, records: int) -> Outcome:
    """Kill a worker during a run, make the call again, and compare the tables."""
    with folder() as root:
        warehouse = f"{root}/w"
        shutil.copytree(prepared.folder, warehouse)
        Path(f"{flag}{COUNTED}").unlink(missing_ok=True)
        Path(flag).write_text(str(random.Random(f"worker {seed}").randint(1, records)))
        try:
            said = answer(partial(call, warehouse, "run"))
        except RuntimeError as error:
            said = str(error).strip().splitlines()[-1]
        if Path(flag).exists():
            Path(flag).unlink()
            return Outcome("run", seed, "worker", f"not reached: the run said {said[:200]}")
        word = recovered(warehouse, OPERATIONS["run"], prepared.expected)
        if said == "done":
            word = "wrong: a run whose worker was killed said that it is done"
        return Outcome("run", seed, "worker", word)


def suite(settings: Settings) -> Figures:
    """Kill a worker in each of several runs."""
    figures, results = Figures("workers"), Results.of("workers", settings.results)
    warm_up()
    before = scene.topology, scene.engine_of
    scene.topology, scene.engine_of = topology, engine
    flag = tempfile.mktemp(prefix="rewindow-crash-flag-")  # noqa: S306 - the file exists only while a worker is to die
    os.environ[FLAG] = flag
    try:
        with one_jvm(), folder() as root:
            prepared = ground(root, OPERATIONS["run"], 0)
            seeds = [
                seed
                for seed in range(QUICK_CASES if settings.quick else CASES)
                if not results.knows("run", seed, "worker")
            ]
            records = records_read(prepared, flag)
            results.keep(outcomes([partial(kill, seed, prepared, flag, records) for seed in seeds], 1), settings.say)
    finally:
        scene.topology, scene.engine_of = before
        del os.environ[FLAG]
        Path(f"{flag}{COUNTED}").unlink(missing_ok=True)
    for (name, seed, _), word in results.said.items():
        figures.count(word, f"{name} {seed}: a worker killed")
    return figures
