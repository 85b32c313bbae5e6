"""A run knows without a history that its outputs are as the last run left them, and notices if they are not."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from rewindow.control.branch import accept
from rewindow.control.ledger_steps import drive
from rewindow.errors import AccessError, CheckpointError, StorageError
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed import last_publications as published
from rewindow.tables.governed import publish
from rewindow.tables.governed.commit import is_there
from rewindow.tables.governed.create_table import OWNER, owner
from rewindow.tables.governed.last_publications import lacking, version_of
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.publish import land_once
from rewindow.tables.governed.table_history import TableLook, table_version
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.publications import due_tables, publication_id
from tests.crash import scene
from tests.protocol import backends
from tests.protocol.backends import SEED, Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]
TARGET = "output/hourly"


@pytest.fixture(scope="module")
def jobs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    backend = backends.through_spark(spark, tmp_path_factory.mktemp("left"), most_here=10_000)
    backend.land_scene(SEED)
    return backend


def table_of(jobs: Backend, branch: str) -> tuple[TableName, str, int]:
    """Return the name of an output, the application id of its publications, and the last version that is due."""
    tables = jobs.tables()
    assert isinstance(tables, CatalogTables)
    state = tables.state(scene.JOB)
    (due,) = (due for due in due_tables(state, branch) if due.target == TARGET)
    version = version_of(due, lacking(due, 0)[-1])
    return tables.name_of(due.table.path), publication_id(state.ledger, scene.JOB, TARGET), version


def test_a_run_reads_no_history_of_tables_that_are_as_the_last_run_left_them(
    jobs: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.run("alone", 1)
    monkeypatch.setattr(published, "look_at", _unread)
    assert jobs.run("alone", 2, 3)


@pytest.mark.parametrize("change", ["DELETE FROM {} WHERE _run > 0", "INSERT INTO {0} SELECT * FROM {0} LIMIT 1"])
def test_a_change_between_two_runs_is_noticed(jobs: Backend, spark: SparkSession, change: str) -> None:
    branch = change.split(maxsplit=1)[0].lower()
    jobs.run(branch, 1, 2)
    spark.sql(change.format(table_of(jobs, branch)[0].quoted))
    with pytest.raises(StorageError, match="altered outside rewindow"):
        jobs.run(branch, 3)


def test_a_change_in_the_place_of_a_publication_is_noticed(jobs: Backend, spark: SparkSession) -> None:
    jobs.run("instead", 2)
    for step in jobs.running("instead", 3):
        if step == f"publish {TARGET} 2":
            break  # killed: the table lacks one commit
    else:
        pytest.fail("there is no such step")
    name, app, version = table_of(jobs, "instead")
    spark.sql(f"INSERT INTO {name.quoted} SELECT * FROM {name.quoted} LIMIT 1")  # now it has as many as it should
    assert not is_there(spark, name, app, version, Column("_run", "long"))
    with pytest.raises(StorageError, match="altered outside rewindow"):
        jobs.run("instead", scene.LANDINGS)


@pytest.mark.parametrize("which", [0, 1], ids=["first", "second"])
def test_a_change_before_one_of_several_publications_is_noticed(jobs: Backend, spark: SparkSession, which: int) -> None:
    branch = f"several-{which}"
    jobs.run(branch, 1)
    jobs.run(branch, 3, expects=True)
    jobs.run(branch, scene.LANDINGS)  # waits behind the run that is on hold
    steps = accept(scene.JOB, branch, None, jobs.tables())
    publishing = (step for step in steps if step.startswith(f"publish {TARGET}"))
    for _ in range(which + 1):
        next(publishing)
    if which == 0:
        steps.close()  # killed: the table lacks two commits
    spark.sql(f"DELETE FROM {table_of(jobs, branch)[0].quoted}")
    with pytest.raises(StorageError, match="altered outside rewindow"):
        drive(jobs.running(branch) if which == 0 else steps)
    drive(jobs.republishing(branch))
    assert jobs.run(branch, scene.LANDINGS) == jobs.run("undisturbed", 1, 3, scene.LANDINGS)


def test_a_change_while_a_run_looks_is_noticed(
    jobs: Backend, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.run("meanwhile", 2)

    def answered_late(_spark: SparkSession, name: TableName, *_: object) -> bool:
        spark.sql(f"INSERT INTO {name.quoted} SELECT * FROM {name.quoted} LIMIT 1")
        return True

    monkeypatch.setattr(published, "is_there", answered_late)
    with pytest.raises(StorageError, match="altered outside rewindow"):
        jobs.run("meanwhile", 3)


def test_a_table_that_was_dropped_and_made_again_is_not_taken_for_the_one_that_was_left(
    jobs: Backend, spark: SparkSession
) -> None:
    jobs.run("again", 1, 2)
    name, _, _ = table_of(jobs, "again")
    rows, version = spark.table(name.quoted).toArrow(), table_version(spark, name)
    owned = f"'{OWNER}' = '{owner(scene.JOB, 'again')}'"
    spark.sql(f"DROP TABLE {name.quoted}")
    spark.createDataFrame(rows).createOrReplaceTempView("rows_before")
    spark.sql(f"CREATE TABLE {name.quoted} USING delta TBLPROPERTIES ({owned}) AS SELECT * FROM rows_before LIMIT 1")
    while table_version(spark, name) != version:
        spark.sql(f"ALTER TABLE {name.quoted} SET TBLPROPERTIES ('note' = 'as many commits as before')")
    with pytest.raises(CheckpointError, match="has rows that the ledger"):
        jobs.run("again", 3)


@pytest.mark.parametrize("question", ["is_newest", "is_there"])
def test_a_platform_that_answers_otherwise_costs_a_look_at_the_history(
    jobs: Backend, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    branch = question.replace("_", "-")
    jobs.run(branch, 1)
    monkeypatch.setattr(published, question, lambda *_: False)
    read = _histories(monkeypatch)
    assert jobs.run(branch, 2)
    assert len(read) == len(set(read)) > 0


def test_the_first_run_after_an_upgrade_reads_histories_and_the_next_one_does_not(
    jobs: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before_the_upgrade:
        before_the_upgrade.setattr(published.KnownTables, "to_record", lambda _self: [])
        jobs.run("upgraded", 1)
    read = _histories(monkeypatch)
    jobs.run("upgraded", 2)
    assert read
    read.clear()
    jobs.run("upgraded", 3)
    assert not read


def test_asking_whether_a_publication_is_there_writes_nothing(jobs: Backend, spark: SparkSession) -> None:
    jobs.run("asked", 1)
    name, app, version = table_of(jobs, "asked")
    before = table_version(spark, name)
    for column in spark.table(name.quoted).schema.fields:
        asked = Column(column.name, column.dataType.simpleString())
        assert is_there(spark, name, app, version, asked)
        assert not is_there(spark, name, app, version + 1, asked)
    assert table_version(spark, name) == before


def test_a_right_that_is_missing_is_not_tried_again(
    jobs: Backend, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.run("denied", 1)
    name, app, version = table_of(jobs, "denied")
    tried: list[int] = []

    def denied(*_given: object, **_named: object) -> None:
        tried.append(1)
        message = "[INSUFFICIENT_PERMISSIONS] User does not have MODIFY: grant the access"
        raise AccessError("made-up", "{text}", text=message)

    monkeypatch.setattr(publish, "add_once", denied)
    with pytest.raises(AccessError, match="does not have MODIFY"):
        land_once(spark, spark.table(name.quoted), name, app, version + 1, is_last=True)
    assert len(tried) == 1
    land_once(spark, spark.table(name.quoted), name, app, version, is_last=True)  # another process had the right


def _histories(monkeypatch: pytest.MonkeyPatch) -> list[TableName]:
    """Return a list that gets the table of each history that is read from now on."""
    read: list[TableName] = []
    look_at = published.look_at

    def looking(spark: SparkSession, name: TableName, app_id: str) -> TableLook:
        read.append(name)
        return look_at(spark, name, app_id)

    monkeypatch.setattr(published, "look_at", looking)
    return read


def _unread(*_: object) -> None:
    pytest.fail("a history was read")
