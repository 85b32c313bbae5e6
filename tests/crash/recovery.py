"""How long a command takes that finds a run committed and not published, killed there: no record is replayed again."""

from __future__ import annotations

import shutil
import time
from functools import partial
from statistics import median
from typing import Any

from rewindow.tables.delta.warehouse import DeltaTables
from tests.crash import scene
from tests.crash.forks import answer, side_by_side
from tests.crash.judge import verdict, view
from tests.crash.matrix import folder, warm_up
from tests.crash.operations import OPERATIONS, some_runs, stop_before
from tests.crash.settings import Figures, Settings

TIMES, QUICK_TIMES = 40, 2


def suite(settings: Settings) -> Figures:
    """Leave a dead run, time the command that fixes it, in a process that has imported what it needs; compare the tables."""
    figures = Figures("recovery")
    warm_up()
    with folder() as root:
        answer(partial(_dead, f"{root}/dead"))
        shutil.copytree(f"{root}/dead", f"{root}/clean")
        answer(partial(_finish, f"{root}/clean"))
        expected = answer(partial(view, f"{root}/clean"))
        jobs = [partial(_timed, root, number, expected) for number in range(QUICK_TIMES if settings.quick else TIMES)]
        seconds = []
        for said in side_by_side(jobs, 1):
            figures.count(said["said"], "recovery")
            seconds.append(said["seconds"])
    figures.more = {"median": round(median(seconds), 2), "longest": round(max(seconds), 2)}
    return figures


def _dead(warehouse: str) -> None:
    some_runs([1, 2])(warehouse, 0)
    stop_before(scene.running(DeltaTables(warehouse)), "publish")


def _finish(warehouse: str) -> float:
    begun = time.monotonic()
    for _ in OPERATIONS["run"].act(warehouse):
        pass
    return time.monotonic() - begun


def _timed(root: str, number: int, expected: dict[str, Any]) -> dict[str, Any]:
    warehouse = f"{root}/{number}"
    shutil.copytree(f"{root}/dead", warehouse)
    seconds = answer(partial(_finish, warehouse))
    return {"seconds": seconds, "said": verdict(expected, answer(partial(view, warehouse)))}
