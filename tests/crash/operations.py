"""What is crashed: each operation of the protocol with what stands before it, and what a person does after it died."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from deltalake import DeltaTable

from rewindow.contracts.steps import drive
from rewindow.control import branch as branching
from rewindow.control import repair as republish
from rewindow.control.gc import collect
from rewindow.control.gc_feed import collect_feed
from rewindow.control.plan.branches import LedgerRow, Standing
from rewindow.control.plan.ledger_state_branches import REPUBLISH
from rewindow.control.plan.spec import MAIN
from rewindow.control.reset import reset
from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.gc_feed import FeedGc
from rewindow.tables.delta.gc_job import JobGc
from rewindow.tables.delta.repair import Repair
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import RUNS
from tests.crash import scene
from tests.crash.scene import JOB, Steps
from tests.ingest.local_engine import HOUR, T0

BRANCH = "trial"
HOURS = 6
"""Of records, where a log is to be in many small files."""


@dataclass(frozen=True)
class Operation:
    """``act`` may be repeated at any time, as a scheduler or a person repeats a command."""

    name: str
    prepare: Callable[[str, int], None]
    act: Callable[[str], Steps]


def some_runs(throughs: list[int]) -> Callable[[str, int], None]:
    def prepare(warehouse: str, seed: int) -> None:
        scene.land_all(warehouse, seed)
        scene.run_until(warehouse, throughs)

    return prepare


def _first_run(warehouse: str) -> Steps:
    yield from scene.run_all(DeltaTables(warehouse))


def _rewind(warehouse: str) -> Steps:
    tables = DeltaTables(warehouse)
    yield "look"
    if len(tables.state(JOB).branch(MAIN).runs) > 1:
        yield from branching.rewind(JOB, MAIN, "main/1", tables)
    yield from tables.publish(JOB, tables.state(JOB), MAIN)


def _late(warehouse: str, seed: int) -> None:
    """Leave a run on which a branch is to stand, committed and published nowhere."""
    some_runs([1])(warehouse, seed)
    stop_before(scene.running(DeltaTables(warehouse), MAIN, 2), "publish")


def _backfill(warehouse: str, at: str = "main/1") -> Steps:
    tables = DeltaTables(warehouse)
    yield "look"
    if BRANCH not in tables.state(JOB).branches:
        yield from branching.branch(JOB, BRANCH, tables, at=at)
    yield from scene.run_all(tables, BRANCH)


def branched(warehouse: str, seed: int) -> None:
    some_runs([1, 2, 3])(warehouse, seed)
    drive(_backfill(warehouse))  # type: ignore[arg-type]


def _promote(warehouse: str) -> Steps:
    tables = DeltaTables(warehouse)
    yield "look"
    if tables.state(JOB).branch(BRANCH).standing is Standing.OPEN:
        yield from branching.promote(JOB, BRANCH, scene.bound(tables).binding, tables)
    yield from tables.publish(JOB, tables.state(JOB), MAIN)


def _rewound_once(warehouse: str, seed: int) -> None:
    """Leave a history in which the newest publications are not the whole of it."""
    some_runs([1, 2])(warehouse, seed)
    drive(branching.rewind(JOB, MAIN, "main/1", DeltaTables(warehouse)))
    scene.run_until(warehouse, [3])


def _republish(warehouse: str) -> Steps:
    tables = DeltaTables(warehouse)
    yield "look"
    state = tables.state(JOB)
    if not state.branch(MAIN).restarts:
        body = {"target": "output/hourly", "branch": MAIN}
        yield "republish"
        tables.append(JOB, LedgerRow(state.rows + 1, REPUBLISH, body))
    yield from tables.publish(JOB, tables.state(JOB), MAIN)


def ravaged(warehouse: str, seed: int) -> None:
    """Leave what another hand leaves: staged files of runs gone, one of them rewound, and an output deleted from."""
    some_runs([1, 2, 3])(warehouse, seed)
    tables = DeltaTables(warehouse)
    drive(branching.rewind(JOB, MAIN, "main/2", tables))
    first, second, rewound = tables.state(JOB).committed
    lost = [(rewound, target) for target in ("changelog/hours", "changelog/closed", "changelog/sizes")]
    for run, target in (*lost, (first, "output/hourly"), (first, "changelog/hours"), (second, "changelog/closed")):
        folder = Path(table_path(warehouse, run.spec.binding.tables[target].path))
        for report in tables.reports(run):
            for file in report.files:
                if file.target == target:
                    (folder / file.path).unlink()
    DeltaTable(table_path(warehouse, "out/sizes")).delete()


def _fix(warehouse: str) -> Steps:
    tables = DeltaTables(warehouse)
    asked = republish.Asked(MAIN)
    yield from republish.republish(scene.bound(tables), asked, scene.attempt, scene.engine_of(), tables, Repair(tables))


def _untidy(warehouse: str, seed: int) -> None:
    """Leave what `gc` is for: long changelogs, a dead attempt, runs that were rewound, a branch given up."""
    some_runs([1, 2])(warehouse, seed)
    tables = DeltaTables(warehouse)
    stop_before(scene.running(tables, MAIN, 3), "commit")
    scene.run_until(warehouse, [3])
    drive(_backfill(warehouse))  # type: ignore[arg-type]
    drive(branching.rewind(JOB, MAIN, "main/2", tables))
    drive(branching.drop(JOB, BRANCH, tables))
    scene.run_until(warehouse, [3])


def _collect(warehouse: str) -> Steps:
    tables = DeltaTables(warehouse)
    gc = JobGc(tables, JOB, lambda: scene.attempt("snapshot").id, lambda _attempt: False)
    yield from collect(JOB, tables, gc, before_ms=2**60, keep_ms=0, every=2)


def _deleted_ledger(warehouse: str, seed: int) -> None:
    """Leave tables of a ledger that somebody deleted, and a new ledger without runs."""
    some_runs([1, 2, 3])(warehouse, seed)
    shutil.rmtree(table_path(warehouse, RUNS))


def _reset(warehouse: str) -> Steps:
    """Start over, but only until the first run of the new beginning: a person does not reset that."""
    tables = DeltaTables(warehouse)
    yield "look"
    if tables.state(JOB).reset is None or not tables.state(JOB).committed:
        yield from reset(JOB, ["out/hourly", "out/sizes"], tables)
    yield from scene.run_all(tables)


def _small_files(warehouse: str, seed: int) -> None:
    """Leave a log in small files, some merged long ago, and a landing that died and was overtaken."""
    scene.write_source(warehouse, seed, hours=HOURS)
    for hours in (1, 2, 3):
        drive(scene.landing(warehouse, now_ms=T0 + hours * HOUR))  # type: ignore[arg-type]
    drive(_collect_feed(warehouse))  # type: ignore[arg-type]
    scene.grow_old(warehouse)
    stop_before(scene.landing(warehouse, now_ms=T0 + 4 * HOUR), "decide")
    for hours in (4, HOURS - 1):
        drive(scene.landing(warehouse, now_ms=T0 + hours * HOUR))  # type: ignore[arg-type]


def small_files_read(warehouse: str, seed: int) -> None:
    """The same, and a job that has read the first of them."""
    _small_files(warehouse, seed)
    scene.run_until(warehouse, [1])


def _collect_feed(warehouse: str) -> Steps:
    tables = DeltaFeedTables(warehouse)
    yield from collect_feed(scene.FEED, tables.publish_steps, FeedGc(tables, scene.FEED, lambda: True), keep_ms=0)


def _rewind_and_republish(warehouse: str) -> Steps:
    """Die right after the row of a rewind; whoever comes next publishes a table anew, and not as it was before."""
    tables = DeltaTables(warehouse)
    if len(tables.state(JOB).branch(MAIN).runs) > 1:
        for step in branching.rewind(JOB, MAIN, "main/1", tables):
            if step.startswith("publish"):
                break
            yield step
    yield from _republish(warehouse)


def unpublished(warehouse: str, seed: int) -> None:
    """Leave what processes leave that died right after their row: a commit here, two rewinds one on the other there."""
    some_runs([1, 2, 3])(warehouse, seed)
    drive(branching.branch(JOB, BRANCH, DeltaTables(warehouse), at="main/1"))
    stop_before(scene.running(DeltaTables(warehouse), BRANCH, 2), "publish")
    for to in ("main/2", "main/1"):
        stop_before(branching.rewind(JOB, MAIN, to, DeltaTables(warehouse)), "publish ")


def stop_before(machine: Iterator[str], step: str) -> None:
    """Drive a machine until it says that a step comes next, and leave it there, as a process does that dies."""
    for reached in machine:
        if reached.startswith(step):
            return


def _publish(warehouse: str) -> Steps:
    tables = DeltaTables(warehouse)
    for branch in (MAIN, BRANCH):
        yield f"publish {branch}"
        yield from tables.publish(JOB, tables.state(JOB), branch)


OPERATIONS = {
    one.name: one
    for one in (
        Operation("first-run", some_runs([]), _first_run),
        Operation("run", some_runs([1, 2]), _first_run),
        Operation("land", scene.write_source, scene.landing),
        Operation("land-more", scene.write_and_land, partial(scene.landing, now_ms=scene.LATER_MS)),
        Operation("rewind", some_runs([1, 2, 3]), _rewind),
        Operation("backfill", some_runs([1, 2, 3]), _backfill),
        Operation("backfill-late", _late, partial(_backfill, at="main/2")),
        Operation("promote", branched, _promote),
        Operation("republish", _rewound_once, _republish),
        Operation("fix", ravaged, _fix),
        Operation("gc", _untidy, _collect),
        Operation("reset", branched, _reset),
        Operation("reset-deleted", _deleted_ledger, _reset),
        Operation("gc-feed", _small_files, _collect_feed),
        Operation("land-last", _small_files, partial(scene.landing, now_ms=T0 + HOURS * HOUR)),
        Operation("rewind-republish", some_runs([1, 2, 3]), _rewind_and_republish),
        Operation("publish", unpublished, _publish),
    )
}
