"""What is crashed: each operation of the protocol with what stands before it. After it died, a person calls it again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from deltalake import DeltaTable

from rewindow.control import branch as branching
from rewindow.control import drift_repair as republish
from rewindow.control.branch import reset
from rewindow.control.garbage_collection import collect, collect_feed, tidy, tidy_feed
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.spec import MAIN
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.gc import FeedGc, JobGc
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.repair import Repair
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import RUNS
from tests.crash import scene
from tests.crash.scene import JOB, Steps
from tests.ingest.local_engine import HOUR, T0

BRANCH = "trial"
ON_HOLD = ((2, True), (3, False))
"""Landings up to which runs go, and whether they expect something, which no run meets."""
HOURS = 6
"""Of records, where a log is to be in many small files."""


@dataclass(frozen=True)
class Operation:
    """``act`` is a command as it is called, with no look at what there is: after a kill the same command is called again.

    ``each_counts``: a call whose work is done is not told from one that ended, and another one does it once more.
    """

    name: str
    prepare: Callable[[str, int], None]
    act: Callable[[str], Steps]
    each_counts: bool = False


def some_runs(throughs: list[int]) -> Callable[[str, int], None]:
    def prepare(warehouse: str, seed: int) -> None:
        scene.land_all(warehouse, seed)
        scene.run_until(warehouse, throughs)

    return prepare


def _first_run(warehouse: str) -> Steps:
    yield from scene.run_all(DeltaTables(warehouse))


def _rewind(warehouse: str) -> Steps:
    yield from branching.rewind(JOB, MAIN, "main/1", DeltaTables(warehouse))


def _expecting_run(warehouse: str) -> Steps:
    """Make a run that is on hold, and one behind it that expects nothing."""
    for through, expects in ON_HOLD:
        yield from scene.running(DeltaTables(warehouse), MAIN, through, expects=expects)


def on_hold(warehouse: str, seed: int) -> None:
    """Leave runs on hold and one between them, the last of which is committed and its shared tables are not published."""
    some_runs([1])(warehouse, seed)
    for through, expects in ON_HOLD:
        drive(scene.running(DeltaTables(warehouse), MAIN, through, expects=expects))  # type: ignore[arg-type]
    stop_before(scene.running(DeltaTables(warehouse), MAIN, 4, expects=True), "publish")


def _accept(warehouse: str) -> Steps:
    for run in ("main/2", "main/4"):
        yield from branching.accept(JOB, MAIN, run, DeltaTables(warehouse))


def _late(warehouse: str, seed: int) -> None:
    """Leave a run on which a branch is to stand, committed and published nowhere."""
    some_runs([1])(warehouse, seed)
    stop_before(scene.running(DeltaTables(warehouse), MAIN, 2), "publish")


def _backfill(warehouse: str, at: str = "main/1") -> Steps:
    tables = DeltaTables(warehouse)
    yield from branching.branch(JOB, BRANCH, tables, at=at)
    yield from scene.run_all(tables, BRANCH)


def branched(warehouse: str, seed: int) -> None:
    some_runs([1, 2, 3])(warehouse, seed)
    drive(_backfill(warehouse))  # type: ignore[arg-type]


def _promote(warehouse: str) -> Steps:
    tables = DeltaTables(warehouse)
    yield from branching.promote(JOB, BRANCH, scene.bound(tables).binding, tables)


def _drop(warehouse: str) -> Steps:
    yield from branching.drop(JOB, BRANCH, DeltaTables(warehouse))


def _branched_late(*late: str) -> Callable[[str, int], None]:
    """Leave a branch that is as far as `main`. The last runs of the ``late`` ones are committed and published nowhere."""

    def prepare(warehouse: str, seed: int) -> None:
        some_runs([1, 2])(warehouse, seed)
        drive(branching.branch(JOB, BRANCH, DeltaTables(warehouse), at="main/1"))
        for branch in (MAIN, BRANCH):
            run = scene.running(DeltaTables(warehouse), branch, 3)
            stop_before(run, "publish" if branch in late else "nothing")

    return prepare


def _rewound_once(warehouse: str, seed: int) -> None:
    """Leave a history in which the newest publications are not the whole of it."""
    some_runs([1, 2])(warehouse, seed)
    drive(branching.rewind(JOB, MAIN, "main/1", DeltaTables(warehouse)))
    scene.run_until(warehouse, [3])


def _republish(warehouse: str) -> Steps:
    yield from _repair(warehouse, "output/hourly")


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
    yield from _repair(warehouse)


def _repair(warehouse: str, *targets: str) -> Steps:
    tables = DeltaTables(warehouse)
    asked = republish.RepublishRequest(MAIN, targets)
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
    gc = JobGc(tables, JOB, lambda _attempt: False)
    yield from collect(JOB, tables, gc, before_ms=2**60, keep_ms=0, every=2, merge_from=2)


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


def _run_and_clean_up(warehouse: str) -> Steps:
    tables = DeltaTables(warehouse)
    yield from scene.run_all(tables)
    yield from tidy(JobGc(tables, JOB, lambda _attempt: False), keep_ms=0, merge_from=2)
    yield from tidy_feed(FeedGc(DeltaFeedTables(warehouse), scene.FEED, lambda: True), keep_ms=0)


def _land_again(warehouse: str) -> Steps:
    yield from scene.landing(warehouse, new_generation=True)


def _replaced(warehouse: str, seed: int) -> None:
    """Two generations, of which the second keeps nothing of the first."""
    scene.write_and_land(warehouse, seed)
    drive(_land_again(warehouse))  # type: ignore[arg-type]


def _rewind_and_republish(warehouse: str) -> Steps:
    """Die right after the row of a rewind; whoever comes next publishes a table anew, and not as it was before."""
    for step in branching.rewind(JOB, MAIN, "main/1", DeltaTables(warehouse)):
        if step.startswith("publish"):
            break
        yield step
    yield from _republish(warehouse)


def unpublished(warehouse: str, seed: int) -> None:
    """Leave what processes leave that died right after their row: a commit here, two rewinds one on the other there.

    A rewind publishes first, so the second one had begun before the first had decided.
    """
    some_runs([1, 2, 3])(warehouse, seed)
    drive(branching.branch(JOB, BRANCH, DeltaTables(warehouse), at="main/1"))
    stop_before(scene.running(DeltaTables(warehouse), BRANCH, 2), "publish")
    rewinds = [branching.rewind(JOB, MAIN, to, DeltaTables(warehouse)) for to in ("main/2", "main/1")]
    for rewind in rewinds:
        stop_before(rewind, "decide")
    for rewind in rewinds:
        stop_before(rewind, "publish ")


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
        Operation("land-again", scene.write_and_land, _land_again, each_counts=True),
        Operation("rewind", some_runs([1, 2, 3]), _rewind),
        Operation("rewind-late", _branched_late(MAIN), _rewind),
        Operation("backfill", some_runs([1, 2, 3]), _backfill),
        Operation("backfill-late", _late, partial(_backfill, at="main/2")),
        Operation("promote", branched, _promote),
        Operation("promote-late", _branched_late(MAIN, BRANCH), _promote),
        Operation("drop", branched, _drop),
        Operation("drop-late", _branched_late(BRANCH), _drop),
        Operation("republish", _rewound_once, _republish),
        Operation("fix", ravaged, _fix),
        Operation("gc", _untidy, _collect),
        Operation("run-clean-up", small_files_read, _run_and_clean_up),
        Operation("reset", branched, _reset),
        Operation("reset-deleted", _deleted_ledger, _reset),
        Operation("gc-feed", _small_files, _collect_feed),
        Operation("gc-replaced", _replaced, _collect_feed),
        Operation("land-last", _small_files, partial(scene.landing, now_ms=T0 + HOURS * HOUR)),
        Operation("rewind-republish", some_runs([1, 2, 3]), _rewind_and_republish),
        Operation("publish", unpublished, _publish),
        Operation("run-on-hold", some_runs([1]), _expecting_run),
        Operation("accept", on_hold, _accept),
        Operation("rewind-on-hold", on_hold, _rewind),
    )
}
