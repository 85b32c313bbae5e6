"""Over Spark Connect, Delta's own note of a commit tells whether an append landed; without one, the history does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from rewindow.control.plan.job_state import LedgerRow
from rewindow.tables.governed.commit_history import commit_noted
from rewindow.tables.governed.ledger import SparkLedger
from rewindow.tables.governed.ledger_folds import Found
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.own_table import OwnTable, rows_of
from tests.daemons import connect_server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("noted")
    with connect_server(folder / "server", Path(sys.executable)) as url:
        session = SparkSession.builder.remote(url).create()
        yield session
        session.stop()


@pytest.fixture
def table(session: Any) -> OwnTable:
    return OwnTable(lambda: session, TableName("spark_catalog", f"noted_{next(_NUMBERS)}", "any"))


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


def test_a_ledger_reads_no_history_after_an_append_that_was_noted(
    table: OwnTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SparkLedger(table, "job", lambda _name: Found([]))
    ledger.keep(keeps=True)
    monkeypatch.setattr(OwnTable, "token_of", _refuse)
    assert ledger.append([LedgerRow(1, "NOTE", {"said": "a"})])
    assert ledger.append([LedgerRow(2, "NOTE", {"said": "b"})])
    assert [one.body["said"] for one in ledger.read()] == ["a", "b"]


@pytest.mark.parametrize("refused", ["cloneSession", "note"])
def test_a_platform_that_refuses_costs_a_look_at_the_history(
    table: OwnTable, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    if refused == "note":
        monkeypatch.setattr("rewindow.tables.governed.commit_history._NOTE", "spark.not.a setting")
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
