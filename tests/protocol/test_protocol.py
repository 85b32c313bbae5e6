"""The protocol on both backends: files committed directly, and rows committed through Spark. The same tables of both."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rewindow.catalog.engine import RowsEngine
from rewindow.catalog.ledger import SparkLedger
from rewindow.catalog.names import TableName, output_name
from rewindow.catalog.sql import OWNER, make_table, owner
from rewindow.catalog.tables import CatalogTables
from rewindow.core.schema import Column
from rewindow.core.semantics import Semantics
from rewindow.core.work import Lane
from rewindow.delta.ledger import Ledger
from rewindow.delta.tables import changelog_path, output_path
from rewindow.delta.warehouse import METRICS_TABLE, DeltaTables
from rewindow.errors import ConfigError, InvariantError, NotNowError
from rewindow.machine import drive
from rewindow.plan.landings import log_shapes
from rewindow.plan.lineage import LedgerRow
from rewindow.plan.spec import RunRequest
from rewindow.plan.stages import JobCode, TablePaths, bind_job
from rewindow.runner import Engine, Job, Steps, steps
from rewindow.spark.engine import LocalEngine
from rewindow.travel import branch, promote, rewind
from rewindow.verify import verify
from tests.conftest import ROOT
from tests.crash import scene

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_numbers = count()


@dataclass
class Backend:
    """One way to commit: its tables, its engine, its names, and a ledger by name."""

    tables: Callable[[], DeltaTables]
    engine: Engine
    output: Callable[[str, str], str]
    ledger: Callable[[str], Ledger | SparkLedger]

    def job(self, lineage: str) -> Job:
        """Return the job bound to a lineage's tables."""
        tables = self.tables()
        feed = tables.feed(scene.FEED)
        code = JobCode(scene.topology, partial(log_shapes, dict(feed.definition.logs)), Semantics())
        paths = TablePaths(
            output=lambda topic: self.output(topic, lineage),
            changelog=partial(changelog_path, scene.JOB),
            metrics=METRICS_TABLE.path,
        )
        binding = bind_job(scene.JOB, feed, scene.topology(), code.load_logs(), asdict(code.semantics), paths)
        return Job(scene.JOB, code, binding, feed)

    def running(self, lineage: str, through: int | None = None) -> Steps:
        """Give the steps of one run by an attempt of its own, with a fresh look at the tables."""
        request = RunRequest(lineage=lineage, through_landing=through)
        return steps(self.job(lineage), request, scene.attempt(), self.engine, self.tables(), lambda _attempt: False)

    def run(self, lineage: str, *throughs: int) -> dict[str, str]:
        """Run up to each landing; return the hashes of the outputs."""
        for through in throughs:
            drive(self.running(lineage, through))
        return self.outputs(lineage)

    def outputs(self, lineage: str) -> dict[str, str]:
        """Return the content hashes of the output tables."""
        found = self.tables().hashes(scene.JOB, lineage)
        return {target: digest for target, digest in found.items() if target.startswith("output/")}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("protocol"))
    scene.land_all(place, 3)
    return place


@pytest.fixture(scope="module", params=["direct", "spark"])
def backend(
    request: pytest.FixtureRequest, spark: SparkSession, warehouse: str, tmp_path_factory: pytest.TempPathFactory
) -> Backend:
    if request.param == "direct":
        return Backend(
            lambda: DeltaTables(warehouse),
            LocalEngine(),
            lambda topic, lineage: output_path(f"out.{topic}", lineage),
            lambda name: Ledger(f"{warehouse}/rewindow/runs", name),
        )
    home = f"spark_catalog.protocol_{next(_numbers)}"
    for schema in (home, f"{home}_out"):
        spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path_factory.mktemp('schema')}'")
    tables = partial(CatalogTables, lambda: spark, home, warehouse, reads_directly=False)
    engine = RowsEngine(spark, tables().journal, slots=2, import_paths=[str(ROOT)], lane=Lane.AUTO)
    return Backend(
        tables,
        engine,
        lambda topic, lineage: output_name(f"{home}_out.{topic}", lineage, "spark_catalog"),
        lambda name: SparkLedger(lambda: spark, TableName.parse(f"{home}.rewindow_runs", ""), name),
    )


@pytest.fixture(scope="module")
def expected(warehouse: str) -> dict[str, str]:
    """Return the outputs of one clean run of files."""
    tables = DeltaTables(warehouse)
    drive(scene.running(tables, "clean"))
    return {t: digest for t, digest in tables.hashes(scene.JOB, "clean").items() if t.startswith("output/")}


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
    assert [one.body["said"] for one in mine.read()] == ["a", "b"]
    assert backend.ledger("other").read() == []


def test_runs_cut_otherwise_give_the_tables_of_one_run_of_files(backend: Backend, expected: dict[str, str]) -> None:
    assert backend.run("cut", 1, 3, scene.LANDINGS) == expected


@pytest.mark.parametrize("at", ["execute sub-topology 1", "stage", "commit", "publish output/hourly 2"])
def test_killed_before_a_step_the_next_call_makes_it_good(backend: Backend, expected: dict[str, str], at: str) -> None:
    lineage = "killed_" + re.sub(r"\W", "_", at)
    backend.run(lineage, 2)
    dying = backend.running(lineage, scene.LANDINGS)
    for step in dying:
        if step == at:
            break
    else:
        pytest.fail(f"there is no step {at}")
    assert backend.run(lineage, scene.LANDINGS) == expected


def test_who_was_fenced_commits_nothing(backend: Backend, expected: dict[str, str]) -> None:
    late = backend.running("fenced", scene.LANDINGS)
    while next(late) != "commit":
        pass
    assert backend.run("fenced", scene.LANDINGS) == expected
    with pytest.raises(NotNowError):
        drive(late)
    assert backend.outputs("fenced") == expected


def test_two_who_publish_at_once_add_nothing_twice(backend: Backend, expected: dict[str, str]) -> None:
    one = backend.running("two", scene.LANDINGS)
    while not next(one).startswith("publish output"):
        pass
    assert backend.run("two", scene.LANDINGS) == expected  # it recovers: it publishes what the first decided
    drive(one)
    assert backend.outputs("two") == expected


def test_a_branch_promoted_after_a_rewind_gives_the_tables_of_one_run(
    backend: Backend, expected: dict[str, str]
) -> None:
    backend.run("back-1", 1)
    after_one = backend.outputs("back-1")
    backend.run("back-1", 2)
    tables = backend.tables()
    first = tables.state(scene.JOB).lineage("back-1").runs[0].spec.name
    drive(rewind(scene.JOB, "back-1", first, tables))
    assert backend.outputs("back-1") == after_one
    drive(branch(scene.JOB, "its.branch-2", tables, parent="back-1", at=first))
    backend.run("its.branch-2", scene.LANDINGS)
    drive(promote(scene.JOB, "its.branch-2", backend.job("back-1").binding, tables, into="back-1"))
    assert backend.outputs("back-1") == expected
    for lineage in ("back-1", "its.branch-2"):
        tables.check_published(scene.JOB, tables.state(scene.JOB), lineage)


def test_a_branch_becomes_a_lineage_that_never_ran(backend: Backend, expected: dict[str, str]) -> None:
    drive(branch(scene.JOB, "first-of-all", backend.tables(), parent="never-ran"))
    backend.run("first-of-all", scene.LANDINGS)
    drive(promote(scene.JOB, "first-of-all", backend.job("never-ran").binding, backend.tables(), into="never-ran"))
    assert backend.outputs("never-ran") == expected


def test_a_committed_run_is_verified_and_leaves_nothing(backend: Backend) -> None:
    backend.run("proved", 2, scene.LANDINGS)
    tables, attempt = backend.tables(), scene.attempt("proof")
    run = tables.state(scene.JOB).lineage("proved").runs[-1]
    proof = drive(verify(backend.job("proved"), run, attempt, backend.engine, tables))
    assert proof.rows > 0
    assert not proof.differences
    if isinstance(tables, CatalogTables):
        assert tables.journal(scene.JOB).blocks([attempt.id]).count() == 0


def test_two_lineages_are_compared_a_part_of_the_keys_at_a_time(
    backend: Backend, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("catalog.tables", "delta.buckets"):
        monkeypatch.setattr(f"rewindow.{module}.BUCKET_ROWS", 5)
    backend.run("whole", scene.LANDINGS)
    backend.run("short", 2)
    tables = backend.tables()
    state = tables.state(scene.JOB)
    target = min(expected)
    one, other = (state.lineage(name).tables[target] for name in ("whole", "short"))
    keys = ["key"]
    alike = tables.compare(one, one, keys, epochs=(0, 9), samples=3)
    assert alike.is_none
    assert alike.equal > 0
    cut = tables.compare(one, other, keys, epochs=(0, 9), samples=3)
    assert cut.different + cut.only_first > 0
    assert cut.only_second == 0
    assert all(key.keys() == {"key"} and ours for key, ours, _theirs in cut.samples)


@pytest.mark.cluster
def test_two_lineages_of_one_table_name_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE SCHEMA spark_catalog.shared LOCATION '{tmp_path}'")
    names = {output_name("spark_catalog.shared.hourly", lineage, "") for lineage in ("fix-1", "fix_1", "fix.1")}
    (name,) = names
    for _ in range(2):
        make_table(spark, TableName.parse(name, ""), [Column("x", "long")], (), {OWNER: owner("hourly", "fix-1")})
    with pytest.raises(ConfigError, match="name another table or branch"):
        make_table(spark, TableName.parse(name, ""), [Column("x", "long")], (), {OWNER: owner("hourly", "fix_1")})


def test_names_of_a_catalog_are_validated_and_quoted() -> None:
    assert TableName.parse("main.shop.orders-2", "other").quoted == "`main`.`shop`.`orders-2`"
    assert str(TableName.parse("shop.orders", "main")) == "main.shop.orders"
    assert output_name("shop.orders", "fix", "main") == "main.shop.orders__fix"
    assert output_name("shop.orders", "backfill-2", "main") == "main.shop.orders__backfill_2"
    for wrong in ("orders", "a.b.c.d", "main.shop.or`ders", "main..orders", "main.shop.x; DROP TABLE y", "ü.b.c"):
        with pytest.raises(ConfigError, match="names no table"):
            TableName.parse(wrong, "main")
