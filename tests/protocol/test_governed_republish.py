"""`republish` brings a catalog's outputs back to what the ledger says, whatever changed them, and loses to no late writer."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_fold import RESTAGE
from rewindow.control.plan.spec import MAIN
from rewindow.errors import CheckpointError, StorageError
from tests.crash import scene
from tests.protocol import backends
from tests.protocol.backends import SEED, Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

TARGET = "output/hourly"
HARM = {
    "RESTORE": "RESTORE TABLE {table} TO VERSION AS OF {version}",
    "DELETE": "DELETE FROM {table} WHERE value = {most}",
    "INSERT": "INSERT INTO {table} SELECT * FROM {table} LIMIT 1",
}
SAME_COUNTS = "UPDATE {table} SET value = value + 1"


@pytest.fixture(scope="module")
def jobs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    """Return a catalog with the landed scene and two runs."""
    backend = backends.through_spark(spark, tmp_path_factory.mktemp("upkeep"), most_here=10_000)
    backend.land_scene(SEED)
    backend.run(MAIN, 1, 2)
    return backend


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Return the outputs after each landing, on the backend of files."""
    files = backends.direct(tmp_path_factory.mktemp("clean"))
    files.land_scene(SEED)
    return [files.run(MAIN, landing) for landing in range(1, scene.LANDINGS + 1)]


def table_of(jobs: Backend) -> str:
    tables = jobs.tables()
    return tables.name_of(tables.state(scene.JOB).branch(MAIN).tables[TARGET].path).quoted


def version_before(spark: SparkSession, table: str) -> int:
    """Return a version with fewer rows than the newest."""
    count = spark.table(table).count()
    newest = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]["version"]
    return next(
        version
        for version in range(newest, -1, -1)
        if spark.sql(f"SELECT * FROM {table} VERSION AS OF {version}").count() < count
    )


@pytest.mark.parametrize("harm", [*HARM, "UPDATE"])
def test_an_output_that_was_altered_is_refused_and_republished(
    jobs: Backend, spark: SparkSession, expected: list[dict[str, str]], harm: str
) -> None:
    table = table_of(jobs)
    version, most = version_before(spark, table), spark.sql(f"SELECT max(value) FROM {table}").collect()[0][0]
    spark.sql(HARM.get(harm, SAME_COUNTS).format(table=table, version=version, most=most))
    assert jobs.outputs(MAIN) != expected[1]
    if harm in HARM:
        with pytest.raises(StorageError, match="`rewindow republish totals`"):
            jobs.run(MAIN, 2)
    done = drive(jobs.republishing(MAIN))
    assert [*done.drift] == [TARGET]
    assert (done.republished, done.repeated) == ([TARGET], [])
    assert jobs.outputs(MAIN) == expected[1]
    again = drive(jobs.republishing(MAIN))
    assert (again.drift, again.republished, again.repeated) == ({}, [], [])
    jobs.run(MAIN, 2)


def test_who_still_publishes_what_was_republished_adds_nothing(
    jobs: Backend, spark: SparkSession, expected: list[dict[str, str]]
) -> None:
    late = jobs.running(MAIN, 3)
    while next(late) != f"publish {TARGET} 3":
        pass
    table = table_of(jobs)
    spark.sql(f"DELETE FROM {table}")
    drive(jobs.republishing(MAIN))
    assert jobs.outputs(MAIN) == expected[2]
    drive(late)
    assert jobs.outputs(MAIN) == expected[2]


def test_runs_whose_staged_rows_are_gone_are_repeated(
    jobs: Backend, spark: SparkSession, expected: list[dict[str, str]]
) -> None:
    tables = jobs.tables()
    first = tables.state(scene.JOB).branch(MAIN).runs[0]
    metrics = spark.table(f"{tables.home}.rewindow_metrics").count()
    spark.sql(
        f"DELETE FROM {tables.home}.rewindow_ledger "
        f"WHERE kind = 'block' AND attempt = '{first.commit.attempt}' AND path NOT LIKE '%metrics%'"
    )
    spark.sql(f"DROP TABLE {table_of(jobs)}")
    done = drive(jobs.republishing(MAIN))
    assert [*done.repeated] == [first.spec.name]
    assert spark.table(f"{tables.home}.rewindow_metrics").count() == metrics
    assert jobs.outputs(MAIN) == expected[2]
    kinds = [[row.kind for row in rows] for rows in jobs.tables().own.ledger(scene.JOB).appends()]
    assert [RESTAGE] in kinds
    assert jobs.run(MAIN, scene.LANDINGS) == expected[-1]


def test_a_ledger_that_was_restored_to_an_earlier_version_is_refused(jobs: Backend, spark: SparkSession) -> None:
    ledger = f"{jobs.tables().home}.rewindow_ledger"
    (newest,) = spark.sql(f"DESCRIBE HISTORY {ledger} LIMIT 1").collect()
    before = jobs.tables().ledger_rows(scene.JOB)
    spark.sql(f"RESTORE TABLE {ledger} TO VERSION AS OF {newest['version'] - 1}")
    assert len(jobs.tables().ledger_rows(scene.JOB)) < len(before)
    with pytest.raises(CheckpointError):
        jobs.run(MAIN, scene.LANDINGS)
    spark.sql(f"RESTORE TABLE {ledger} TO VERSION AS OF {newest['version']}")
    jobs.run(MAIN, scene.LANDINGS)
