"""The expected tables of the job in memory, computed by a simple loop over its epochs."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

from rewindow.control.plan.job_state import JobState, Standing
from rewindow.control.plan.spec import MAIN
from tests.crash.memory import ROOT, World
from tests.crash.memory_job import PARTITIONS, step


@lru_cache(maxsize=4096)
def total(partition: int, epoch: int) -> str:
    """Return the state of a partition after an epoch: a digest of all epochs so far."""
    return step(total(partition, epoch - 1), partition, epoch) if epoch else ""


def compared(world: World, state: JobState, landed: int) -> str:
    """Return ``ok``, or what is lost or doubled of the landed epochs. All that is committed and not on hold must be published."""
    if state.branch(MAIN).last_epoch != landed:
        return f"lost: main is at epoch {state.branch(MAIN).last_epoch} of {landed}"
    for branch in state.branches.values():
        if branch.standing is not Standing.OPEN or "output/totals" not in branch.tables:
            continue
        due = Counter(
            (partition, epoch, total(partition, epoch))
            for run in branch.published_runs[branch.inherited :]
            for epoch in run.spec.epochs
            for partition in range(PARTITIONS)
        )
        found = _rows(world, f"{ROOT}/{branch.tables['output/totals'].path}")
        if found != due:
            missing, extra = due - found, found - due
            return f"{'lost' if missing else 'doubled'}: {branch.name} lacks {dict(missing)}, has {dict(extra)} too"
    shared = _runs_in(world, "state/sums")
    wanted = Counter({run.spec.run: PARTITIONS for run in state.naming("state/sums")})
    if shared != wanted:
        return f"{'lost' if wanted - shared else 'doubled'}: the changelog has {shared}, committed was {wanted}"
    return "ok"


def _rows(world: World, path: str) -> Counter[Any]:
    there: dict[str, Any] = {}
    for version in world.tables.get(path, ()):
        there = {name: add for name, add in there.items() if name not in version.removes}
        there |= {add.path: add for add in version.adds}
    return Counter(row for name in there for row in world.files[f"{path}/{name}"].rows[1])


def _runs_in(world: World, path: str) -> Counter[int]:
    """Count the files of each run that were added to a table and not removed. A file added twice counts twice."""
    there = Counter[int]()
    for version in world.tables.get(f"{ROOT}/{path}", ()):
        there.update(_run_of(world, path, add.path) for add in version.adds)
        there.subtract(_run_of(world, path, name) for name in version.removes)
    return Counter({run: files for run, files in there.items() if files})


def _run_of(world: World, path: str, name: str) -> int:
    run: int = world.files[f"{ROOT}/{path}/{name}"].rows[0]
    return run
