"""A small run on main plans and commits in one append: whoever is slower has made nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_fold import COMMIT, PLAN
from rewindow.control.plan.spec import MAIN
from rewindow.errors import NotNowError
from tests.crash import scene
from tests.protocol import backends
from tests.protocol.backends import Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

LAST = scene.LANDINGS - 1


@pytest.fixture(scope="module")
def jobs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    backend = backends.through_spark(spark, tmp_path_factory.mktemp("held"), most_here=10_000)
    backend.land_scene(3)
    return backend


def test_a_small_run_is_one_append_and_the_slower_of_two_makes_nothing(jobs: Backend, tmp_path: Path) -> None:
    files = backends.direct(tmp_path)
    files.land_scene(3)
    expected = files.run("clean", LAST)
    dying = jobs.running(MAIN, 1)
    while next(dying) != "audit":
        pass
    del dying
    assert jobs.tables().ledger_rows(scene.JOB) == [], "a run that died has left nothing"
    late = jobs.running(MAIN, LAST)
    while next(late) != "commit":
        pass
    jobs.run(MAIN, 1)
    with pytest.raises(NotNowError, match="another process decided first"):
        drive(late)
    assert jobs.run(MAIN, LAST) == expected
    appends = jobs.tables().own.ledger(scene.JOB).appends()
    assert [[row.kind for row in rows] for rows in appends] == [[PLAN, COMMIT], [PLAN, COMMIT]]
    assert len({row.token for rows in appends for row in rows}) == 2


def test_a_plan_is_appended_at_once_while_other_branches_run(jobs: Backend) -> None:
    other = jobs.running("other", 2)
    while next(other) != "commit":
        pass
    jobs.run(MAIN, scene.LANDINGS)
    drive(other)
    assert jobs.tables().state(scene.JOB).branch("other").runs
    appends = jobs.tables().own.ledger(scene.JOB).appends()[2:]
    assert [[row.kind for row in rows] for rows in appends] == [[PLAN], [PLAN], [COMMIT], [COMMIT]]
