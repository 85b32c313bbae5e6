"""What each table of a branch gets, publication by publication: a function of the ledger alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.branches import CommittedRun, JobState, Publication, Restart, Standing
from rewindow.control.plan.spec import OUTPUT, TableSpec
from rewindow.tables.shared.paths import METRICS, QUARANTINE

Reports = Callable[[CommittedRun], Sequence[TaskReport]]
"""Reads a run's reports from the journal."""

SHARED_TABLES: Mapping[str, str] = {METRICS: "job", QUARANTINE: "name"}
"""Tables that several jobs write, each with the column that names the job or feed of a row."""


@dataclass(frozen=True, slots=True)
class Due:
    """A table and all its publications, in the order of their ordinals 1, 2, 3 ..."""

    target: str
    table: TableSpec
    publications: Sequence[Publication]
    restart: Restart


def due_tables(state: JobState, name: str) -> Iterator[Due]:
    """Yield each table of a branch with its publications, outputs first."""
    branch = state.branch(name)
    for target in sorted(branch.tables, key=lambda target: (not target.startswith(OUTPUT), target)):
        table = branch.tables[target]
        if target.startswith(OUTPUT) and branch.standing is Standing.DROPPED:
            continue  # `gc` removes them
        if target.startswith(OUTPUT):
            yield Due(target, table, branch.publications, branch.restarts.get(target, Restart(1, 0)))
        else:
            yield Due(target, table, state.shared(table.path), state.restarts.get(table.path, Restart(1, 0)))


def missing(due: Due, published: int) -> range:
    """Return the ordinals that a table lacks, given the last one in its publication epoch. A restart skips older ones."""
    return range(max(published + 1, due.restart.ordinal, 1), len(due.publications) + 1)


def net(publications: Sequence[Publication]) -> Publication:
    """Return the net effect of several publications: the runs whose rows the table has in the end."""
    runs: dict[int, CommittedRun] = {}
    for publication in publications:
        for run in publication.removes:
            runs.pop(run.spec.run, None)
        runs |= {run.spec.run: run for run in publication.adds}
    return Publication(adds=tuple(runs.values()))


def publication_id(job: str, target: str, epoch: int = 1) -> str:
    """Return the application id under which a job publishes a target. Republishing starts a new epoch."""
    return f"rewindow.pub/{job}/{target}/{epoch}"


def due_rows(due: Due, published: int) -> Counter[int]:
    """Return how many rows of each run a table has after its first ``published`` publications."""
    rows = Counter[int]()
    for run in net(due.publications[:published]).adds:
        total = run.commit.targets.get(due.target)
        if total and total.rows:
            rows[run.spec.run] = total.rows
    return rows
