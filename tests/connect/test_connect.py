"""rewindow on a real Spark Connect server with a shared disk writes the same tables."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql.connect.session import SparkSession

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.spec import RunRequest
from rewindow.tables.governed.commit import commit_noted
from rewindow.tables.governed.ledger import Found, SparkLedger
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.own_table import OwnTable, rows_of
from tests.cli_process import command, done
from tests.conftest import ROOT, copy_project
from tests.daemons import build_wheel, connect_server, python_without_rewindow
from tests.end_to_end.flights import write_sources

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("connect")
    with connect_server(folder / "server", python_without_rewindow(folder / "python")) as url:
        yield url


@pytest.fixture(scope="module")
def root(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_project(tmp_path_factory.mktemp("project"))
    write_sources(root)
    build_wheel(ROOT, root / "dist")
    target = {"target": "connect", "warehouse": "warehouse", "connect": server, "cores": 2, "ships": ["dist/*.whl"]}
    (root / "conf" / "targets" / "connect.yaml").write_text(yaml.safe_dump(target))
    return root


def test_landing_and_running_through_spark_connect(root: Path, spark) -> None:
    done(command(root, "land", "flights", "--target", "connect"))
    done(command(root, "run", "quiet_carriers", "--target", "connect", "--branch", "there"))
    here = OpenProject.open(root)
    here.run("quiet_carriers", RunRequest(branch="here"))
    assert here.tables.hashes("quiet_carriers", "there") == here.tables.hashes("quiet_carriers", "here")


@pytest.fixture
def platform(root: Path, server: str) -> Callable[..., Any]:
    """Return a function that runs commands as on Databricks: the platform's session, no wheel, all tables in a catalog."""
    target = {"target": "rows", "warehouse": "heartbeats", "connect": "platform", "cores": 2, "source": "shuffle"}
    rows = {"commit": "spark", "staging": "rows", "catalog": "spark_catalog.rewindow"}
    (root / "conf" / "targets" / "rows.yaml").write_text(yaml.safe_dump({**target, **rows}))
    return lambda *words: done(command(root, *words, "--target", "rows", SPARK_REMOTE=server), seconds=900)


@pytest.mark.cluster
def test_landing_run_and_backfill_through_the_session_of_a_platform(
    root: Path, platform: Callable[..., Any], spark
) -> None:
    job = root / "conf" / "jobs" / "quiet_carriers.yaml"
    job.write_text(job.read_text().replace("table: flights.", "table: spark_catalog.flights."))
    platform("land", "flights")
    for through in ("2", "3"):
        platform("run", "quiet_carriers", "--through", through)
    output = platform("show", "quiet_carriers", "--hashes")
    (there,) = [table for table in output["tables"] if table["table"].startswith("output/")]
    assert there["path"] == "spark_catalog.flights.quiet_carriers"
    assert there["rows"] > 100
    assert platform("plan", "quiet_carriers")["lagging"] == {}
    listed = {one["job"]: one["status"] for one in platform("ls")["jobs"]}
    checked = platform("status", "quiet_carriers", "flights")
    assert (checked["well"], listed["quiet_carriers"]) == (True, checked["jobs"][0]["status"])
    assert {row["format"] for one in platform("upgrade", "--dry-run")["tables"] for row in one["rows"]} == {2}
    platform("backfill", "quiet_carriers", "--from", "3", "--branch", "again-1")
    (found,) = platform("diff", "quiet_carriers", "main", "again-1").values()  # exits with 1 if they differ
    assert found["equal"] > 0
    assert not list(root.glob("heartbeats/**/*.parquet")), "the driver's disk has no tables"
    job.write_text(job.read_text().replace("table: spark_catalog.flights.", "table: flights."))
    here = OpenProject.open(root)
    if not (Path(here.warehouse) / "logs").exists():
        here.land("flights")
    here.run("quiet_carriers", RunRequest(branch="files", through_landing=3))
    assert here.tables.hashes("quiet_carriers", "files")["output/quiet-carriers"][:16] == there["content"]


ASKS = """\
import sys
from rewindow.engine.spark.connect import connect_session
from rewindow.engine.spark.spark_calls import mapped
from rewindow.errors import RewindowError

session = connect_session(sys.argv[1], cores=1, conf={})
try:
    with mapped():
        session.sql("SHOW TBLPROPERTIES spark_catalog.default.nowhere").collect()
except RewindowError as error:
    print("refused:", error)
"""


def test_a_query_that_a_server_refuses_prints_no_stack_trace(server: str) -> None:
    answer = subprocess.run([sys.executable, "-c", ASKS, server], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("refused: ")
    assert "TABLE_OR_VIEW_NOT_FOUND" not in answer.stderr


def test_a_server_that_does_not_answer_is_named(root: Path) -> None:
    target = yaml.safe_load((root / "conf" / "targets" / "connect.yaml").read_text())
    absent = {**target, "target": "absent", "connect": "sc://127.0.0.1:1/;token=secret"}
    (root / "conf" / "targets" / "absent.yaml").write_text(yaml.safe_dump(absent))
    output = done(command(root, "run", "quiet_carriers", "--target", "absent", "--branch", "nowhere"), 78)
    assert "127.0.0.1:1 cannot be used" in output["error"]
    assert "secret" not in output["error"]


# Delta's own note of a commit tells whether an append landed; without one, the history does.

NUMBERS = count(1)


@pytest.fixture(scope="module")
def session(server: str) -> Iterator[Any]:
    session = SparkSession.builder.remote(server).create()
    yield session
    session.stop()


@pytest.fixture
def table(session: Any) -> OwnTable:
    return OwnTable(lambda: session, TableName("spark_catalog", f"noted_{next(NUMBERS)}", "any"))


def row(name: str) -> Any:
    return rows_of({"name": [name], "seq": [1], "kind": ["NOTE"], "body": ["{}"], "recorded_at": [0]}, 1)


def by_another_thread(session: Any) -> None:
    """Commit to some other table in the session of the command."""
    session.sql("CREATE SCHEMA IF NOT EXISTS spark_catalog.other")
    session.range(1).write.format("delta").mode("append").saveAsTable("spark_catalog.other.one")


def test_an_append_that_delta_skips_is_not_taken_for_one_that_landed(session: Any, table: OwnTable) -> None:
    assert table.append(row("a"), "app", 1)
    assert not table.append(row("a"), "app", 1)
    assert table.append(row("a"), "app", 2)
    assert table.frame().count() == 2


@pytest.mark.cluster
def test_a_commit_by_another_thread_is_not_taken_for_the_append(session: Any, table: OwnTable) -> None:
    by_another_thread(session)
    table.append(row("a"), "app", 1)

    def skipped(own: Any) -> None:
        by_another_thread(session)
        own.createDataFrame(row("a")).write.format("delta").mode("append").option("txnAppId", "app").option(
            "txnVersion", 1
        ).saveAsTable(table.name.quoted)
        by_another_thread(session)

    assert not commit_noted(session, skipped)


@pytest.mark.cluster
def test_a_ledger_reads_no_history_after_an_append_that_was_noted(
    table: OwnTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SparkLedger(table, "job", lambda _name: Found([]))
    ledger.keep(keeps=True)
    monkeypatch.setattr(OwnTable, "token_of", _refuse)
    assert ledger.append([LedgerRow(1, "NOTE", {"said": "a"})])
    assert ledger.append([LedgerRow(2, "NOTE", {"said": "b"})])
    assert [one.body["said"] for one in ledger.read()] == ["a", "b"]


@pytest.mark.cluster
@pytest.mark.parametrize("refused", ["cloneSession", "note"])
def test_a_platform_that_refuses_costs_a_look_at_the_history(
    table: OwnTable, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    if refused == "note":
        monkeypatch.setattr("rewindow.tables.governed.commit._NOTE", "spark.not.a setting")
    else:
        monkeypatch.setattr(SparkSession, refused, _refuse)
    looks = _counted(monkeypatch)
    ledger = SparkLedger(table, "job", lambda _name: Found([]))
    ledger.keep(keeps=True)
    assert ledger.append([LedgerRow(1, "NOTE", {"said": "a"})])
    assert looks == [1]


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    looks: list[int] = []
    token_of: Callable[..., Any] = OwnTable.token_of
    monkeypatch.setattr(OwnTable, "token_of", lambda *given: looks.append(1) or token_of(*given))
    return looks


def _refuse(*_: Any, **__: Any) -> Any:
    raise RuntimeError("not on this platform")
