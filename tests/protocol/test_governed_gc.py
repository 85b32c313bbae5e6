"""`gc` in a catalog deletes staged rows that nothing needs: runs, rewinds, branches and `republish` go on as before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from rewindow.control.branch import branch, drop, rewind
from rewindow.control.garbage_collection import collect_feed
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.spec import MAIN, OUTPUT
from rewindow.errors import NotNowError
from rewindow.tables.governed.gc import CatalogFeedGc
from rewindow.tables.governed.own_rows import feed_name
from tests.crash import scene
from tests.protocol import backends
from tests.protocol.backends import SEED, Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def jobs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    """Return a catalog with the landed scene and what `gc` is for: a dead attempt, rewound runs, a dropped branch."""
    backend = backends.through_spark(spark, tmp_path_factory.mktemp("gc"), most_here=10_000)
    backend.land_scene(SEED)
    backend.run(MAIN, 1, 2)
    stop_before(with_workers(spark, backend).running(MAIN, 3), "stage")
    backend.run(MAIN, 3)
    tables = backend.tables()
    first, second, _ = tables.state(scene.JOB).branch(MAIN).runs
    drive(branch(scene.JOB, "trial", tables, parent=MAIN, at=first.spec.name))
    backend.run("trial", 2)
    drive(rewind(scene.JOB, MAIN, second.spec.name, tables))
    drive(drop(scene.JOB, "trial", tables))
    backend.run(MAIN, 3)
    return backend


def with_workers(spark: SparkSession, jobs: Backend) -> Backend:
    """Return the same tables for runs whose tasks are on Spark's workers, so that their plans are durable."""
    return backends.of_catalog(spark, jobs.root, jobs.tables().home, most_here=0)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Return the outputs after each landing, on the backend of files."""
    files = backends.direct(tmp_path_factory.mktemp("clean"))
    files.land_scene(SEED)
    return [files.run(MAIN, landing) for landing in range(1, scene.LANDINGS + 1)]


def parts(jobs: Backend) -> set[tuple[str, str]]:
    """Return the attempts and parts of the staged rows of the job."""
    rows = jobs.tables().own.table.frame().where(f"name = '{scene.JOB}' AND kind = 'block'").select("attempt", "path")
    return {(row["attempt"], row["path"].split("/")[1]) for row in rows.collect()}


def stop_before(machine: Iterator[str], step: str) -> None:
    while next(machine) != step:
        pass


def test_what_was_needed_within_the_retention_stays(jobs: Backend) -> None:
    before, ledger = parts(jobs), jobs.tables().ledger_rows(scene.JOB)
    done = drive(jobs.collecting(keep_ms=DAY_MS))
    died = {one.path.split("/")[0] for one in done.deleted}
    assert {one.why for one in done.deleted} == {"of an attempt that did not finish"}
    assert sum(one.bytes for one in done.deleted) > 0
    assert (done.snapshots, done.forgotten, done.reports, len(died)) == ([], 0, 1, 1)
    assert parts(jobs) == {(attempt, part) for attempt, part in before if attempt not in died}
    assert jobs.tables().ledger_rows(scene.JOB) == ledger


def test_a_run_that_read_what_gc_replaced_makes_nothing(jobs: Backend, expected: list[dict[str, str]]) -> None:
    late = jobs.running(MAIN, scene.LANDINGS)
    stop_before(late, "execute sub-topology 0")
    done = drive(jobs.collecting(every=2))
    assert (len(done.snapshots), done.forgotten) == (1, 5)
    assert {one.path.split("/")[1] for one in done.deleted} == {"changelog", "internal", "output"}
    with pytest.raises(NotNowError, match="another process decided first"):
        drive(late)
    assert jobs.outputs(MAIN) == expected[2]
    again = drive(jobs.collecting(every=2))
    assert (again.snapshots, again.forgotten, again.reports, list(again.deleted)) == ([], 0, 0, [])


def test_runs_and_republish_go_on_from_what_is_left(jobs: Backend, expected: list[dict[str, str]]) -> None:
    tables = jobs.tables()
    state = tables.state(scene.JOB)
    kept = {
        run.commit.attempt
        for run in state.branch(MAIN).runs
        if any(total.rows for target, total in run.commit.targets.items() if target.startswith(OUTPUT))
    }
    snapshots = {one.commit.attempt for one in state.snapshots.values()}
    assert {attempt for attempt, part in parts(jobs) if part == "output"} == kept
    assert {attempt for attempt, part in parts(jobs) if part == "changelog"} == snapshots
    assert not [part for _, part in parts(jobs) if part == "internal"]
    done = drive(jobs.republishing(MAIN, "output/hourly"))
    assert (done.drift, done.repeated) == ({}, [])
    assert jobs.outputs(MAIN) == expected[2]
    assert jobs.run(MAIN, scene.LANDINGS) == expected[-1]


def test_a_run_whose_plan_is_known_keeps_what_it_reads(
    jobs: Backend, spark: SparkSession, expected: list[dict[str, str]]
) -> None:
    jobs.run("slow", 1, 2)
    late = with_workers(spark, jobs).running("slow", scene.LANDINGS)
    stop_before(late, "execute sub-topology 1")
    done = drive(jobs.collecting(every=2, is_alive=True))
    assert done.forgotten == 2
    assert "changelog" not in {one.path.split("/")[1] for one in done.deleted}
    drive(late)
    assert jobs.outputs("slow") == expected[-1]


def test_gc_of_a_feed_removes_what_dead_landings_staged(jobs: Backend, spark: SparkSession) -> None:
    feeds, tables = jobs.feeds()
    ledger = f"{tables.home}.rewindow_ledger"
    name = feed_name(scene.FEED)
    spark.sql(
        f"INSERT INTO {ledger} SELECT name, seq, kind, 'unknown' AS attempt, sub_topology, partition, "
        f"'unknown/log/x' AS path, body, data, recorded_at - {2 * DAY_MS} AS recorded_at FROM {ledger} "
        f"WHERE name = '{name}' AND kind = 'block' LIMIT 1"
    )
    landed = jobs.landed(scene.FEED)
    gc = CatalogFeedGc(feeds, scene.FEED)
    done = drive(collect_feed(scene.FEED, feeds.publish_steps, gc, keep_ms=0))
    assert [(one.path, one.why) for one in done.deleted] == [("unknown/log", "of an unknown attempt")]
    assert not list(CatalogFeedGc(feeds, scene.FEED).garbage(0))
    assert jobs.landed(scene.FEED) == landed
