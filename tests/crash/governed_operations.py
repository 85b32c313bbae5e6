"""What is crashed on governed tables: each operation with what comes before it, as in `operations` for files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rewindow.control import branch as branching
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import MAIN
from tests.crash.governed_ground import HOME, backend, connected
from tests.crash.operations import BRANCH, ON_HOLD, stop_before
from tests.crash.scene import JOB
from tests.protocol.backends import Backend

Prepare = Callable[[Backend, int], None]
Act = Callable[[Path, int], Iterator[str]]


@dataclass(frozen=True)
class Operation:
    """``act`` is a command as it is called, by a process that has read nothing yet.

    ``passes``: sites that a clean call must pass, because without them its cases would show nothing.
    """

    prepare: Prepare
    act: Act
    passes: tuple[str, ...] = ()


def _landed(epochs: int) -> Prepare:
    return lambda tables, seed: tables.land_scene(seed, through=epochs)


def _runs(*throughs: int) -> Prepare:
    def prepare(tables: Backend, seed: int) -> None:
        tables.land_scene(seed)
        tables.run(MAIN, *throughs)

    return prepare


def _land(root: Path, seed: int, *, number: int = 3, by_workers: bool = False) -> Iterator[str]:
    return (yield from backend(root, by_workers=by_workers).landing_of_scene(seed, number))


def _run(root: Path, _seed: int, *, by_workers: bool = False, branch: str = MAIN) -> Iterator[str]:
    tables = backend(root, by_workers=by_workers)
    while not isinstance((yield from tables.running(branch)), UpToDate):
        pass


def _expecting_run(root: Path, _seed: int) -> Iterator[str]:
    for through, expects in ON_HOLD:
        yield from backend(root).running(MAIN, through, expects=expects)


def _on_hold(tables: Backend, seed: int) -> None:
    _runs(1)(tables, seed)
    for through, expects in ON_HOLD:
        drive(tables.running(MAIN, through, expects=expects))


def _accept(root: Path, _seed: int) -> Iterator[str]:
    yield from branching.accept(JOB, MAIN, "main/2", backend(root).tables())


def _rewind(root: Path, _seed: int) -> Iterator[str]:
    yield from branching.rewind(JOB, MAIN, "main/1", backend(root).tables())


def _late(tables: Backend, seed: int) -> None:
    """Leave a run that is committed and published nowhere."""
    _runs(1)(tables, seed)
    stop_before(tables.running(MAIN, 3), "publish")


def _backfill(root: Path, seed: int) -> Iterator[str]:
    yield from branching.branch(JOB, BRANCH, backend(root).tables(), at="main/1")
    yield from _run(root, seed, branch=BRANCH)


def _branched(tables: Backend, seed: int) -> None:
    _runs(1, 3, 4)(tables, seed)
    drive(branching.branch(JOB, BRANCH, tables.tables(), at="main/1"))
    tables.run(BRANCH, 3, 4)


def _promote(root: Path, _seed: int) -> Iterator[str]:
    tables = backend(root)
    yield from branching.promote(JOB, BRANCH, tables.job(MAIN).binding, tables.tables())


def _drop(root: Path, _seed: int) -> Iterator[str]:
    yield from branching.drop(JOB, BRANCH, backend(root).tables())


def _snapshot(root: Path, _seed: int) -> Iterator[str]:
    """Run as often as there is something to do; each run but the first writes a snapshot before."""
    while not isinstance((yield from backend(root).running(MAIN, snapshot_every=1)), UpToDate):
        pass


def _untidy(tables: Backend, seed: int) -> None:
    """Leave what `gc` is for: the blocks of many runs, a dead attempt, rewound runs, a branch given up."""
    _runs(1, 2)(tables, seed)
    stop_before(backend(tables.root, by_workers=True).running(MAIN, 3), "commit")
    tables.run(MAIN, 3)
    drive(branching.branch(JOB, BRANCH, tables.tables(), at="main/1"))
    tables.run(BRANCH, 3)
    drive(branching.rewind(JOB, MAIN, "main/2", tables.tables()))
    drive(branching.drop(JOB, BRANCH, tables.tables()))


def _collect(root: Path, _seed: int) -> Iterator[str]:
    yield from backend(root).collecting(every=2)


def _altered(tables: Backend, seed: int) -> None:
    """Leave what another hand leaves: an output restored to its empty version, and staged rows of a run deleted.

    Not to a later version: a run without rows publishes nothing, so that one may be the newest.
    """
    _runs(1, 2, 4)(tables, seed)
    warehouse = tables.tables()
    branch = warehouse.state(JOB).branch(MAIN)
    attempt = branch.runs[1].commit.attempt
    lost = f"kind = 'block' AND attempt = '{attempt}' AND path NOT LIKE '%metrics%'"
    connected().sql(f"DELETE FROM {HOME}.rewindow_ledger WHERE {lost}").collect()
    table = warehouse.name_of(branch.tables["output/hourly"].path).quoted
    assert connected().table(table).count(), f"seed {seed}: the output has no rows, so nothing can be altered"
    connected().sql(f"RESTORE TABLE {table} TO VERSION AS OF 0").collect()


def _republish(root: Path, _seed: int, *targets: str) -> Iterator[str]:
    yield from backend(root).republishing(MAIN, *targets)


def _reset(root: Path, seed: int) -> Iterator[str]:
    """Start over, but only until the first run of the new beginning: a person does not reset that."""
    tables = backend(root)
    warehouse = tables.tables()
    state = warehouse.state(JOB)
    if state.reset is None or not state.committed:
        yield from branching.reset(JOB, [tables.output(topic, MAIN) for topic in ("hourly", "sizes")], warehouse)
    yield from _run(root, seed)


def _sampled(tables: Backend, seed: int) -> None:
    tables.land_scene(seed, through=2)
    tables.run(MAIN, 1)


SAMPLE = Operation(_sampled, _run)
"""A run after as little as possible, for a quick call."""
_DELETED = "DELETE FROM: executed"
_REPUBLISH = "republish output/hourly"
OPERATIONS = {
    "run": Operation(_runs(1, 2), _run),
    "land": Operation(_landed(2), _land),
    "first-landing": Operation(_landed(0), partial(_land, number=2)),
    "first-run": Operation(_runs(), _run),
    "run-by-workers": Operation(_runs(2), partial(_run, by_workers=True)),
    "land-by-workers": Operation(_landed(2), partial(_land, by_workers=True)),
    "run-late": Operation(_late, _run),
    "run-on-hold": Operation(_runs(1), _expecting_run),
    "accept": Operation(_on_hold, _accept, ("accept > append rewindow_ledger: executed",)),
    "rewind": Operation(_runs(1, 2, 4), _rewind),
    "backfill": Operation(_runs(1, 2), _backfill),
    "promote": Operation(_branched, _promote),
    "drop": Operation(_branched, _drop),
    "run-snapshot": Operation(_runs(1, 2), _snapshot, ("snapshot main/2 > append rewindow_ledger: executed",)),
    "gc": Operation(
        _untidy,
        _collect,
        (
            "forget > append rewindow_ledger: executed",
            *(f"{step} > {_DELETED}" for step in ("reports", "remove orphans")),
        ),
    ),
    "republish": Operation(
        _runs(1, 2, 4),
        lambda root, seed: _republish(root, seed, "output/hourly"),
        (f"{_REPUBLISH} > append rewindow_ledger: executed",),
    ),
    "reset": Operation(
        _branched,
        _reset,
        (
            "reset > append rewindow_ledger: executed",
            f"empty {HOME}_out.hourly > append hourly: executed",
            "empty metrics > DELETE FROM: executed",
        ),
    ),
    "fix": Operation(
        _altered,
        _republish,
        tuple(f"{step} > append rewindow_ledger: executed" for step in ("restage main/2", _REPUBLISH)),
    ),
}
