"""Reads of tables that a catalog governs say what those of files say: one call of each. `make cluster` plays the rest."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.bad_input.statuses import status
from tests.protocol.pairs import Pair, make_pair

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def pair(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        pair = make_pair(spark, tmp_path_factory.mktemp("pair"), "spark_catalog.commands", patch)
        pair.goes_on(0)
        yield pair


def test_what_is_read_of_governed_tables_is_what_is_read_of_files(pair: Pair) -> None:
    assert pair.same("state", "show", "counts", "sums")
    (shown,) = pair.same("head", "counts", "-n", "100")["tables"]
    row = shown["rows"][-1]
    feeds, jobs = status(pair.governed)
    assert (feeds["activity"]["findings"], jobs["counts"]["findings"]) == ([], [])
    assert pair.same_why(row)["is_reproduced"]


@pytest.mark.cluster
def test_a_governed_job_starts_over(pair: Pair) -> None:
    before = pair.same("head", "counts", "-n", "100")
    for answer in pair.answers("reset", "counts", "--yes"):
        assert answer.code == 0, answer.err
    assert not pair.same("head", "counts")["tables"][0]["rows"]
    for answer in pair.answers("run", "counts"):
        assert answer.code == 0, answer.err
    (again,), (shown,) = pair.same("head", "counts", "-n", "100")["tables"], before["tables"]
    assert [row["value"] for row in again["rows"]] == [row["value"] for row in shown["rows"]]
