"""What the first rows of a catalog's ledgers give is stored beside them: it saves time, and decides nothing (ADR-138)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rewindow.control.branch import rewind
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_fold import fold
from rewindow.control.plan.spec import MAIN
from rewindow.errors import InvariantError
from rewindow.tables.governed import ledger
from rewindow.tables.governed.own_rows import feed_name
from rewindow.tables.governed.own_table import FOLD, OwnTable
from rewindow.tables.shared.ledger import check_stored
from rewindow.tables.shared.stored_feeds import check_stored_feed
from tests.crash import scene
from tests.protocol import backends
from tests.protocol.backends import SEED, Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

NAMES = (scene.JOB, feed_name(scene.FEED))
MARK = f"rewindow.fold.{scene.JOB}"


@pytest.fixture(autouse=True)
def after_each_second_append(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "EVERY", 2)


@pytest.fixture
def backend(spark: SparkSession, tmp_path: Path) -> Backend:
    """Return a catalog in which the first three landings are replayed, one by one."""
    backend = backends.through_spark(spark, tmp_path, most_here=10_000)
    for number in (1, 2, 3):
        drive(backend.landing_of_scene(SEED, number))
        backend.run(MAIN, number)
    return backend


def stored(backend: Backend) -> dict[str, int]:
    """Return the number of rows of each stored fold."""
    found = backend.tables().own.folds.read(NAMES, with_reports=False)
    return {name: one.kept.fold.rows for name, one in found.items() if one.kept}


def goes_on(backend: Backend, expected: dict[str, str]) -> None:
    """Make the last landing and run, and compare outputs and ledgers with those of the backend of files."""
    drive(backend.landing_of_scene(SEED, scene.LANDINGS))
    assert backend.run(MAIN, scene.LANDINGS) == expected
    for name in NAMES:
        ledger = backend.tables().own.ledger(name)
        rows = list(ledger.read_afresh())
        assert list(ledger.read()) == rows
        assert [row.seq for row in rows] == [*range(1, len(rows) + 1)]
    tables = backend.tables()
    assert tables.state(scene.JOB) == fold(list(tables.ledger_rows(scene.JOB)))
    check_stored(scene.JOB, tables.ledger_rows(scene.JOB))
    check_stored_feed(scene.FEED, tables.feed_rows(scene.FEED))


def test_a_command_reads_the_rows_after_the_folds(
    backend: Backend, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stored(backend).keys() == {*NAMES}
    read: list[Any] = []
    texts = OwnTable.texts

    def reading(table: OwnTable, condition: Callable[[], Any]) -> Any:
        found = texts(table, condition)
        read.extend(found)
        return found

    monkeypatch.setattr(OwnTable, "texts", reading)
    tables = backend.tables()
    with tables.command(feed=scene.FEED, job=scene.JOB):
        state = tables.state(scene.JOB)
        assert len(tables.feed(scene.FEED).landings) == len(state.committed) == 3
    assert sum(row["kind"] == FOLD for row in read) == 2
    assert sum(row["seq"] is not None for row in read) <= 2 * ledger.EVERY
    monkeypatch.undo()
    goes_on(backend, expected)


def _alter_mark(backend: Backend, how: str) -> str:
    return f"ALTER VIEW {backend.tables().own.table.view.quoted} {how}"


def _lose_mark(backend: Backend) -> str:
    return _alter_mark(backend, f"UNSET TBLPROPERTIES ('{MARK}')")


def _raise_mark(backend: Backend) -> str:
    return _alter_mark(backend, f"SET TBLPROPERTIES ('{MARK}' = '[99, 0]')")


def _spoil_mark(backend: Backend) -> str:
    return _alter_mark(backend, f"SET TBLPROPERTIES ('{MARK}' = 'x')")


def _drop_view(backend: Backend) -> str:
    return f"DROP VIEW {backend.tables().own.table.view.quoted}"


def _tear(backend: Backend) -> str:
    table = backend.tables().own.table.name.quoted
    return f"UPDATE {table} SET body = substr(body, 1, 99) WHERE kind = '{FOLD}'"


def _delete(backend: Backend) -> str:
    return f"DELETE FROM {backend.tables().own.table.name.quoted} WHERE kind = '{FOLD}'"


def test_whatever_is_lost_of_them_nothing_else_is(
    spark: SparkSession, backend: Backend, expected: dict[str, str]
) -> None:
    for lose in (_raise_mark, _spoil_mark, _lose_mark, _tear, _delete, _drop_view):
        spark.sql(lose(backend))
        tables = backend.tables()
        with tables.command(feed=scene.FEED, job=scene.JOB):
            assert len(tables.feed(scene.FEED).landings) == len(tables.state(scene.JOB).committed) == 3, lose
    goes_on(backend, expected)


def test_a_log_that_somebody_dropped_gets_the_rows_of_landings_that_a_fold_covers(
    spark: SparkSession, backend: Backend, expected: dict[str, str]
) -> None:
    spark.sql(f"DROP TABLE {backend.tables().log_name(scene.FEED, scene.TOPIC).quoted}")
    goes_on(backend, expected)
    assert backend.rows_of(scene.FEED).num_rows == sum(len(epoch.records) for epoch in scene.epochs(SEED))


def test_a_restored_table_has_the_folds_of_its_version(
    spark: SparkSession, backend: Backend, expected: dict[str, str]
) -> None:
    name = backend.tables().own.table.name.quoted
    (version,) = spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").select("version").collect()
    before = stored(backend)
    tables = backend.tables()
    first = tables.state(scene.JOB).branch(MAIN).runs[0].spec.name
    drive(rewind(scene.JOB, MAIN, first, tables))
    backend.run(MAIN, 2, 3)
    assert stored(backend)[scene.JOB] > before[scene.JOB]
    spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF {version['version']}")
    tables = backend.tables()
    assert stored(backend).get(scene.JOB, before[scene.JOB]) == before[scene.JOB]
    assert tables.state(scene.JOB) == fold(list(tables.own.ledger(scene.JOB).read_afresh()))


def test_a_fold_that_is_not_what_the_rows_give_is_named_with_the_fix(backend: Backend, spark: SparkSession) -> None:
    tables = backend.tables()
    kept, _ = tables.own.ledger(scene.JOB).later()
    assert kept is not None
    lines = [json.dumps({**json.loads(kept.fold.lines[0]), "committed": 0}), *kept.fold.lines[1:]]
    wrong = ledger.KeptFold(
        ledger.StoredFold(kept.fold.rows, kept.fold.token, frozenset(), lines), kept.appends + 1, kept.recorded
    )
    tables.own.folds.write(scene.JOB, wrong, 0)
    rows = backend.tables().ledger_rows(scene.JOB)
    with pytest.raises(InvariantError, match=r"Run `DELETE FROM .* WHERE name = 'fold:totals'`: the next commands"):
        check_stored(scene.JOB, rows)
