"""A job whose tables a catalog governs starts over: nothing of before stays, and nothing of before is added later."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from rewindow.control.branch import reset
from rewindow.tables.governed.warehouse import CatalogTables
from tests.protocol.pairs import Pair, make_pair

# `test_governed_commands` has a part of it that is played more often.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

HOME = "spark_catalog.resetting"
OUTPUT = f"{HOME}.totals"


@pytest.fixture(scope="module")
def pair(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Return a pair after two runs and with a branch. Each test begins where the one before ended."""
    with pytest.MonkeyPatch.context() as patch:
        pair = make_pair(spark, tmp_path_factory.mktemp("pair"), HOME, patch)
        for number in range(2):
            pair.goes_on(number)
        for bench in pair.benches:
            answer = bench.run("backfill", "counts", "--from", "1", "--branch", "fix-1")
            assert answer.code == 0, answer.err
        yield pair


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


def test_nothing_of_before_a_reset_is_published_after_it(pair: Pair, spark: SparkSession) -> None:
    with pytest.MonkeyPatch.context() as killed:
        killed.setattr(CatalogTables, "publish", lambda *_of: iter(()))
        pair.goes_on(2)
    assert all(rows(spark).values())
    late = CatalogTables(lambda: spark, HOME, str(pair.governed.root / "heartbeats"))
    publishing = late.publish("counts", late.state("counts"), "main")
    assert next(publishing) == "publish output/totals 3"
    files, governed = emptied(pair)
    assert governed == files
    for _step in publishing:  # Delta skips its commits
        pass
    assert set(rows(spark).values()) == {0}


def test_a_job_makes_its_rows_again_after_a_reset(pair: Pair, spark: SparkSession) -> None:
    again = [answer.out for answer in pair.answers("reset", "counts", "--yes", "--json")]
    assert again[0] == again[1], "there is nothing to start over"
    pair.goes_on(3)
    assert pair.same("head", "counts", "-n", "100")["tables"][0]["count"] == spark.table(OUTPUT).count() > 0
    pair.same("head", "rewindow.quarantine", "-n", "100")
    answer = pair.governed.run("show", "counts", "--hashes")
    assert answer.code == 0, answer.err


def test_a_run_finishes_a_reset_that_was_killed(pair: Pair, spark: SparkSession) -> None:
    tables = CatalogTables(lambda: spark, HOME, str(pair.governed.root / "heartbeats"))
    steps = reset("counts", [OUTPUT], tables)
    while next(steps) != f"empty {OUTPUT}":
        pass
    steps.close()
    assert rows(spark)["totals"]
    assert pair.files.run("reset", "counts", "--yes").code == 0
    for bench in pair.benches:  # other columns than the emptied table has
        counted = '.aggregate(lambda: 0.0, lambda _key, value, total: total + value, store="sums")'
        bench.edit("bench_job.py", '.count(store="sums")', counted)
    pair.goes_on(4)
    pair.same("head", "counts", "-n", "100")
    assert rows(spark)["totals__fix_1"] == 0
