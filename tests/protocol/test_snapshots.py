"""A run writes a snapshot of its stores when one is due, also in a catalog: a restore reads it instead of all runs."""

from __future__ import annotations

import pytest

from rewindow.control.branch import rewind
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_fold import COMMIT, PLAN, SNAPSHOT
from rewindow.tables.governed.warehouse import CatalogTables
from tests.crash import scene
from tests.protocol.backends import Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_run_restores_a_snapshot_and_the_runs_since(jobs: Backend, expected: dict[str, str]) -> None:
    jobs.run("main", 1, 2, snapshot_every=2)
    before = jobs.tables().state(scene.JOB)
    assert len(before.basis(before.branch("main").runs[-1].spec.run)) == 2
    jobs.run("main", 3, snapshot_every=2)
    tables = jobs.tables()
    state = tables.state(scene.JOB)
    (first, second, third) = state.branch("main").runs
    assert [one.spec.run for one in state.basis(third.spec.run)] == [
        state.snapshots[second.spec.run].spec.run,
        third.spec.run,
    ]
    assert jobs.run("main", scene.LANDINGS, snapshot_every=2) == expected
    drive(rewind(scene.JOB, "main", first.spec.name, jobs.tables()))
    assert jobs.run("main", scene.LANDINGS, snapshot_every=2) == expected
    if isinstance(tables, CatalogTables):
        appends = tables.own.ledger(scene.JOB).appends()
        kinds = [[row.kind for row in rows] for rows in appends]
        assert [SNAPSHOT] in kinds
        assert ([PLAN, COMMIT] in kinds[kinds.index([SNAPSHOT]) :]) == ([PLAN, COMMIT] in kinds[:1])
