"""The protocol gives the same tables on both backends: files committed directly, and rows committed through Spark."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rewindow.control.branch import branch, promote, rewind
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.verify import verify
from rewindow.errors import CheckpointError, ConfigError, InvariantError, NotNowError, StorageError
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.commit import add_once
from rewindow.tables.governed.create_table import OWNER, create_table, owner
from rewindow.tables.governed.names import TableName, output_name
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.paths import METRICS, RUNS
from tests.crash import scene
from tests.protocol.backends import Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def row(seq: int, said: str) -> LedgerRow:
    return LedgerRow(seq, "NOTE", {"said": said})


def test_a_ledger_takes_one_row_a_number(backend: Backend) -> None:
    mine, theirs = backend.ledger("one"), backend.ledger("one")
    assert mine.read() == []
    assert mine.append([row(1, "a")])
    assert [one.body for one in theirs.read()] == [{"said": "a"}]
    assert theirs.append([row(2, "b")])
    assert not mine.append([row(2, "c")])
    assert not mine.append([row(1, "d")])
    with pytest.raises(InvariantError, match="not the next number"):
        mine.append([row(4, "e")])
    assert theirs.append([row(3, "f"), row(4, "g")])
    assert not mine.append([row(3, "h"), row(4, "i"), row(5, "j")])
    assert [one.body["said"] for one in mine.read()] == ["a", "b", "f", "g"]
    assert backend.ledger("other").read() == []


def test_a_ledger_takes_one_row_a_number_though_answers_are_lost(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(backend.tables(), CatalogTables):
        pytest.skip("of files: tests/crash/answers.py")
    ledger = backend.ledger("answers")

    def unanswered(*given: Any, **named: Any) -> None:
        add_once(*given, **named)
        raise OSError("the answer is lost")

    monkeypatch.setattr("rewindow.tables.governed.own_table.add_once", unanswered)
    assert ledger.append([row(1, "a")])
    assert not backend.ledger("answers").append([row(1, "b")])
    assert [one.body["said"] for one in ledger.read()] == ["a"]


def test_runs_cut_otherwise_give_the_tables_of_one_run_of_files(jobs: Backend, expected: dict[str, str]) -> None:
    assert jobs.run("cut", 1, 3, scene.LANDINGS) == expected


@pytest.mark.parametrize("at", ["execute sub-topology 1", "stage", "commit", "publish output/hourly 2"])
def test_killed_before_a_step_the_next_call_makes_it_good(jobs: Backend, expected: dict[str, str], at: str) -> None:
    branch = "killed_" + re.sub(r"\W", "_", at)
    jobs.run(branch, 2)
    dying = jobs.running(branch, scene.LANDINGS)
    for step in dying:
        if step == at:
            break
    else:
        pytest.fail(f"there is no step {at}")
    assert jobs.run(branch, scene.LANDINGS) == expected


def test_who_was_fenced_commits_nothing(jobs: Backend, expected: dict[str, str]) -> None:
    late = jobs.running("fenced", scene.LANDINGS)
    while next(late) != "commit":
        pass
    assert jobs.run("fenced", scene.LANDINGS) == expected
    with pytest.raises(NotNowError):
        drive(late)
    assert jobs.outputs("fenced") == expected


def test_two_who_publish_at_once_add_nothing_twice(jobs: Backend, expected: dict[str, str]) -> None:
    one = jobs.running("two", scene.LANDINGS)
    while not next(one).startswith("publish output"):
        pass
    assert jobs.run("two", scene.LANDINGS) == expected  # recovers first: publishes what the first decided
    drive(one)
    assert jobs.outputs("two") == expected


def test_a_branch_promoted_after_a_rewind_gives_the_tables_of_one_run(jobs: Backend, expected: dict[str, str]) -> None:
    jobs.run("back-1", 1)
    after_one = jobs.outputs("back-1")
    jobs.run("back-1", 2)
    tables = jobs.tables()
    first = tables.state(scene.JOB).branch("back-1").runs[0].spec.name
    drive(rewind(scene.JOB, "back-1", first, tables))
    assert jobs.outputs("back-1") == after_one
    drive(branch(scene.JOB, "its.branch-2", tables, parent="back-1", at=first))
    jobs.run("its.branch-2", scene.LANDINGS)
    drive(promote(scene.JOB, "its.branch-2", jobs.job("back-1").binding, tables, into="back-1"))
    assert jobs.outputs("back-1") == expected
    for name in ("back-1", "its.branch-2"):
        tables.check_published(scene.JOB, tables.state(scene.JOB), name)


def test_a_branch_becomes_a_branch_that_never_ran(jobs: Backend, expected: dict[str, str]) -> None:
    drive(branch(scene.JOB, "first-of-all", jobs.tables(), parent="never-ran"))
    jobs.run("first-of-all", scene.LANDINGS)
    drive(promote(scene.JOB, "first-of-all", jobs.job("never-ran").binding, jobs.tables(), into="never-ran"))
    assert jobs.outputs("never-ran") == expected


def test_a_committed_run_is_verified_and_leaves_nothing(jobs: Backend) -> None:
    jobs.run("proved", 2, scene.LANDINGS)
    tables, attempt = jobs.tables(), scene.attempt("proof")
    run = tables.state(scene.JOB).branch("proved").runs[-1]
    proof = drive(verify(jobs.job("proved"), run, attempt, jobs.engine_of(tables), tables))
    assert sum(proof.counts.values()) > 0
    assert not proof.differences
    if isinstance(tables, CatalogTables):
        assert tables.journal(scene.JOB).blocks([attempt.id]).count() == 0


def test_two_branches_are_compared_a_part_of_the_keys_at_a_time(
    backend: Backend, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("governed.diff", "delta.diff"):
        monkeypatch.setattr(f"rewindow.tables.{module}.PARTITION_ROWS", 5)
    backend.run("whole", scene.LANDINGS)
    backend.run("short", 2)
    tables = backend.tables()
    state = tables.state(scene.JOB)
    target = min(expected)
    one, other = (state.branch(name).tables[target] for name in ("whole", "short"))
    keys = ["key"]
    alike = tables.compare(one, one, keys, epochs=(0, 9), samples=3)
    assert alike.is_none
    assert alike.equal > 0
    cut = tables.compare(one, other, keys, epochs=(0, 9), samples=3)
    assert cut.different + cut.only_first > 0
    assert cut.only_second == 0
    assert all(key.keys() == {"key"} and ours for key, ours, _theirs in cut.samples)


@pytest.mark.cluster
def test_two_branches_of_one_table_name_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE SCHEMA spark_catalog.shared LOCATION '{tmp_path}'")
    names = {output_name("spark_catalog.shared.hourly", branch, "") for branch in ("fix-1", "fix_1", "fix.1")}
    (name,) = names
    for _ in range(2):
        create_table(spark, TableName.parse(name, ""), [Column("x", "long")], (), {OWNER: owner("hourly", "fix-1")})
    with pytest.raises(ConfigError, match="name another table or branch"):
        create_table(spark, TableName.parse(name, ""), [Column("x", "long")], (), {OWNER: owner("hourly", "fix_1")})


def test_names_of_a_catalog_are_validated_and_quoted() -> None:
    assert TableName.parse("main.shop.orders-2", "other").quoted == "`main`.`shop`.`orders-2`"
    assert str(TableName.parse("shop.orders", "main")) == "main.shop.orders"
    assert output_name("shop.orders", "fix", "main") == "main.shop.orders__fix"
    assert output_name("shop.orders", "backfill-2", "main") == "main.shop.orders__backfill_2"
    for wrong in ("orders", "a.b.c.d", "main.shop.or`ders", "main..orders", "main.shop.x; DROP TABLE y", "ü.b.c"):
        with pytest.raises(ConfigError, match="not the name of a table"):
            TableName.parse(wrong, "main")


def test_a_run_finds_rows_that_something_else_added_to_its_output(jobs: Backend, spark: SparkSession) -> None:
    tables = jobs.tables()
    if not isinstance(tables, CatalogTables):
        pytest.skip("of files: tests/bad_input")
    jobs.run("drifted", 1)
    name = tables.name_of(tables.state(scene.JOB).branch("drifted").tables["output/hourly"].path)
    spark.sql(f"OPTIMIZE {name.quoted}")
    jobs.run("drifted", 2)
    spark.sql(f"INSERT INTO {name.quoted} SELECT * FROM {name.quoted} LIMIT 1")
    with pytest.raises(StorageError, match="altered outside rewindow"):
        jobs.run("drifted", scene.LANDINGS)


def test_the_metrics_of_a_catalog_are_a_view_of_committed_runs(jobs: Backend, spark: SparkSession) -> None:
    tables = jobs.tables()
    if not isinstance(tables, CatalogTables):
        pytest.skip("of files: a table")
    jobs.run("measured", 1)
    dying = jobs.running("measured", scene.LANDINGS)
    while next(dying) != "commit":
        pass
    del dying
    found = spark.table(tables.name_of(METRICS).quoted).where("branch = 'measured'").select("_run", "unit").collect()
    (run,) = tables.state(scene.JOB).branch("measured").runs
    assert {one["_run"] for one in found} == {run.spec.run}
    assert all(one["unit"] for one in found)


def test_rows_of_a_ledger_that_was_deleted_are_refused(jobs: Backend, spark: SparkSession) -> None:
    jobs.run("anew", 2)
    tables = jobs.tables()
    if isinstance(tables, CatalogTables):
        spark.sql(f"DELETE FROM {tables.home}.rewindow_ledger WHERE name = '{scene.JOB}'")
    else:
        shutil.rmtree(Path(tables.warehouse) / RUNS)
    with pytest.raises(CheckpointError, match=r"did not publish|were deleted"):
        jobs.run("anew", 2)


def test_an_output_that_a_failed_run_left_takes_other_columns(backend: Backend, spark: SparkSession) -> None:
    tables = backend.tables()
    if not isinstance(tables, CatalogTables):
        pytest.skip("of files: tests/bad_input/test_refused_tables.py")
    name = TableName.parse(f"{tables.home}.left", "")
    for columns in ([Column("x", "long")], [Column("y", "string")]):
        create_table(spark, name, columns, (), {OWNER: owner("left", "main")})
    assert spark.table(name.quoted).columns == ["y"]
    spark.sql(f"INSERT INTO {name.quoted} VALUES ('published')")
    with pytest.raises(CheckpointError, match="has other columns"):
        create_table(spark, name, [Column("x", "long")], (), {OWNER: owner("left", "main")})


def test_a_table_of_version_0_that_somebody_else_filled_is_refused(backend: Backend, spark: SparkSession) -> None:
    tables = backend.tables()
    if not isinstance(tables, CatalogTables):
        pytest.skip("of files: tests/bad_input/test_refused_tables.py")
    mine = {OWNER: owner("left", "main")}
    for table, owned, error in (
        ("theirs", "", ConfigError),
        ("filled", f"'{OWNER}' = '{mine[OWNER]}'", CheckpointError),
    ):
        name = TableName.parse(f"{tables.home}.{table}", "")
        properties = f"TBLPROPERTIES ({owned})" if owned else ""
        spark.sql(f"CREATE TABLE {name.quoted} USING delta {properties} AS SELECT 'precious' AS note")
        with pytest.raises(error):
            create_table(spark, name, [Column("x", "long")], (), mine)
        assert [row.note for row in spark.table(name.quoted).collect()] == ["precious"]
