"""Expectations observe the same on both backends, and a run on hold is published by neither before it is accepted."""

from __future__ import annotations

import pytest

from rewindow.control.branch import accept, rewind
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.verify import verify
from rewindow.tables.shared.paths import EXPECTATIONS
from rewindow.tables.shared.warehouse import TableSpec
from tests.crash import scene
from tests.protocol import backends
from tests.protocol.backends import SEED, Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the outputs of clean runs without expectations on the backend of files."""
    files = backends.direct(tmp_path_factory.mktemp("clean"))
    files.land_scene(SEED)
    return files.run("clean", 2, scene.LANDINGS)


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> list[list[tuple[str, int, str, tuple[str, ...]]]]:
    """Return what the backend of files observes."""
    files = backends.direct(tmp_path_factory.mktemp("observed"))
    files.land_scene(SEED)
    files.run("clean", 2, scene.LANDINGS, expects=True)
    return [told(run) for run in files.tables().state(scene.JOB).branch("clean").runs]


def told(run: CommittedRun) -> list[tuple[str, int, str, tuple[str, ...]]]:
    return [(one.name, one.failed, one.observed, one.examples) for one in run.commit.expectations]


def test_a_run_on_hold_is_published_when_it_is_accepted(jobs: Backend, expected: dict, observed: list) -> None:
    jobs.run("held", 2, expects=True)
    jobs.run("held", scene.LANDINGS, expects=True)
    tables = jobs.tables()
    branch = tables.state(scene.JOB).branch("held")
    assert [told(run) for run in branch.runs] == observed
    assert observed[-1][0][1] == 1, "no run adds rows to `hourly`, so the test proves nothing"
    published = sum(
        run.commit.targets[t].rows for run in branch.published_runs for t in run.commit.targets if "out" in t
    )
    counted = sum(tables.count_rows(table) for target, table in branch.tables.items() if target.startswith("output/"))
    assert counted == published
    assert tables.count_rows(TableSpec(EXPECTATIONS, ())) >= 6
    for run in tables.state(scene.JOB).on_hold("held"):
        drive(accept(scene.JOB, "held", run.spec.name, jobs.tables()))
    assert jobs.outputs("held") == expected
    tables = jobs.tables()
    last = tables.state(scene.JOB).branch("held").runs[-1]
    proof = drive(verify(jobs.job("held", expects=True), last, scene.attempt("proof"), jobs.engine_of(tables), tables))
    assert not proof.differences


def test_killed_at_the_check_the_next_call_observes_the_same(jobs: Backend, expected: dict, observed: list) -> None:
    jobs.run("killed", 2, expects=True)
    for at in ("expect", "commit"):
        for step in jobs.running("killed", scene.LANDINGS, expects=True):
            if step == at:
                break
        else:
            pytest.fail(f"there is no step {at}")
    jobs.run("killed", scene.LANDINGS, expects=True)
    state = jobs.tables().state(scene.JOB)
    assert told(state.branch("killed").runs[-1]) == observed[-1]
    for run in state.on_hold("killed"):
        drive(accept(scene.JOB, "killed", run.spec.name, jobs.tables()))
    assert jobs.outputs("killed") == expected


def test_a_run_that_is_rewound_while_on_hold_leaves_no_row(jobs: Backend, expected: dict) -> None:
    jobs.run("back", 2)
    before = jobs.outputs("back")
    jobs.run("back", scene.LANDINGS, expects=True)
    tables = jobs.tables()
    first = tables.state(scene.JOB).branch("back").runs[0].spec.name
    drive(rewind(scene.JOB, "back", first, tables))
    assert jobs.outputs("back") == before
    assert jobs.run("back", scene.LANDINGS) == expected
