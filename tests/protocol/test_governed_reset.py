"""A job whose tables a catalog governs starts over: nothing of before stays, and nothing of before is added later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rewindow.control.branch import reset
from rewindow.tables.governed.warehouse import CatalogTables
from tests.protocol.pairs import Pair, make_pair

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOME = "spark_catalog.resetting"
OUTPUT = f"{HOME}.totals"


@pytest.fixture
def pair(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Return a pair after two runs and with a branch."""
    pair = make_pair(spark, tmp_path, HOME, monkeypatch)
    for number in range(2):
        pair.goes_on(number)
    for bench in pair.benches:
        answer = bench.run("backfill", "counts", "--from", "1", "--branch", "fix-1")
        assert answer.code == 0, answer.err
    return pair


def rows(spark: SparkSession) -> dict[str, int]:
    """Return how many rows of the job there are in each table."""
    of_job = {
        "totals": "true",
        "totals__fix_1": "true",
        "rewindow_quarantine": "name = 'counts'",
        "rewindow_metrics": "job = 'counts'",
    }
    return {name: spark.table(f"{HOME}.{name}").where(condition).count() for name, condition in of_job.items()}


def emptied(pair: Pair) -> list[list[str]]:
    """Start both jobs over; return the tables that were emptied, named alike."""
    named = []
    for answer in pair.answers("reset", "counts", "--yes", "--json"):
        assert answer.code == 0, answer.err
        tables = json.loads(answer.out)["emptied"]
        named.append([name.replace(f"{HOME}.", "alerts/") for name in tables])
    return [sorted(one.replace("fix_1", "fix-1") for one in names) for names in named]


def test_a_reset_empties_the_same_tables_and_the_job_makes_the_same_rows(pair: Pair, spark: SparkSession) -> None:
    assert all(rows(spark).values())
    files, governed = emptied(pair)
    assert governed == files
    assert set(rows(spark).values()) == {0}
    again = [answer.out for answer in pair.answers("reset", "counts", "--yes", "--json")]
    assert again[0] == again[1]
    pair.goes_on(2)
    assert pair.same("head", "counts", "-n", "100")["tables"][0]["count"] == spark.table(OUTPUT).count() > 0
    pair.same("head", "rewindow.quarantine", "-n", "100")
    assert pair.governed.run("show", "counts", "--hashes").code == 0


def test_nothing_of_before_a_reset_is_published_after_it(
    pair: Pair, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(CatalogTables, "publish", lambda *_of: iter(()))
        pair.goes_on(2)
    late = CatalogTables(lambda: spark, HOME, str(pair.governed.root / "heartbeats"))
    publishing = late.publish("counts", late.state("counts"), "main")
    assert next(publishing) == "publish output/totals 3"
    emptied(pair)
    for _step in publishing:  # Delta skips its commits
        pass
    assert set(rows(spark).values()) == {0}


def test_a_run_finishes_a_reset_that_was_killed(pair: Pair, spark: SparkSession) -> None:
    tables = CatalogTables(lambda: spark, HOME, str(pair.governed.root / "heartbeats"))
    steps = reset("counts", [OUTPUT], tables)
    while next(steps) != f"empty {OUTPUT}":
        pass
    steps.close()
    assert rows(spark)["totals"]
    assert pair.files.run("reset", "counts", "--yes").code == 0
    for bench in pair.benches:  # other columns than the emptied table has
        bench.edit(
            "bench_job.py", '.count(store="sums")', '.aggregate(lambda: 0, lambda _k, v, n: n + v, store="sums")'
        )
    pair.goes_on(2)
    pair.same("head", "counts", "-n", "100")
    assert rows(spark)["totals__fix_1"] == 0
