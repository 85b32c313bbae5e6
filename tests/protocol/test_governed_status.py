"""`status` and `upgrade` of tables that a catalog governs: they say what they say of files, and read all ledgers together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rewindow.tables.governed.feeds import CatalogFeedTables
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.paths import JOURNAL, LANDINGS, METRICS, RUNS
from tests.bad_input.scene import FEED, JOB, SCORE, Bench, goes_on, hour
from tests.bad_input.statuses import alerts, only, status

# `test_governed_commands` has a part of it that is played more often.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

HOME = "spark_catalog.alerting"
OWN = f"{HOME}.rewindow_ledger"
TARGET = (
    f"target: local\nwarehouse: heartbeats\ncores: 2\nsource: shuffle\ncommit: spark\nstaging: rows\ncatalog: {HOME}\n"
)


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a project without landings whose tables are in a schema of their own, read through the session of all tests."""
    spark.sql(f"CREATE SCHEMA {HOME} LOCATION '{tmp_path / 'tables'}'")
    monkeypatch.setattr("rewindow.app.open_project.open_session", lambda *_of, **_options: spark)
    bench = Bench(tmp_path / "project")
    bench.write("conf/targets/local.yaml", TARGET)
    bench.write("conf/feeds/activity.yaml", FEED)
    bench.write("conf/jobs/counts.yaml", JOB.replace("alerts.totals", f"{HOME}.totals"))
    bench.code(SCORE)
    bench.rows("h0", hour(0))
    return bench


def spark_jobs(spark: SparkSession, call: Callable[[], object]) -> int:
    """Return how many Spark jobs a call makes."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    call()
    return int(scheduler.numTotalJobs() - before)


def test_status_and_upgrade_of_governed_tables(
    bench: Bench, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "The warehouse is empty." in bench.run("upgrade", "--dry-run").out
    empty = bench.run("status")
    assert (empty.code, f"Nothing was landed in the schema {HOME} yet." in empty.out) == (0, True)

    goes_on(bench)
    feeds, jobs = status(bench)
    assert (feeds["activity"]["findings"], jobs["counts"]["findings"]) == ([], [])
    assert (feeds["activity"]["landings"], feeds["activity"]["rows"]) == (1, 12)
    counts = jobs["counts"]
    assert (counts["records"], counts["late_share"], counts["runs"], counts["waiting"]) == (12, 0.0, 1, 0)
    assert (counts["state_files"], counts["journal_files"], counts["files_per_run"]) == (None, None, None)
    assert counts["state_bytes"] > 0
    of_one = spark_jobs(spark, lambda: status(bench))

    bench.rows("h1", hour(1))
    alerts(bench, "freshness: 2h, late: 1%, size: 1GiB, files: 1")
    bench.write("conf/jobs/more.yaml", JOB.replace("alerts.totals", f"{HOME}.more").replace("job: counts", "job: more"))
    with monkeypatch.context() as killed:  # a landing and a run that are killed once they are committed
        killed.setattr(CatalogFeedTables, "publish_steps", lambda *_of: iter(()))
        killed.setattr(CatalogTables, "publish", lambda *_of: iter(()))
        goes_on(bench)
        feeds, jobs = status(bench, code=1)
    assert only(feeds["activity"])["message"] == "logs lag behind the ledger: events by 1 landing"
    found = {one["about"]: one for one in jobs["counts"]["findings"]}
    levels = {about: one["level"] for about, one in found.items()}
    assert levels == {"lagging": "broken", "freshness": "alert", "files": "note"}
    assert (jobs["counts"]["lagging"], "is not checked" in found["files"]["message"]) == ({"output/totals": 1}, True)
    assert (jobs["more"]["status"], jobs["more"]["waiting"], jobs["more"]["findings"]) == ("never_run", 2, [])

    bench.edit("conf/jobs/counts.yaml", "freshness: 2h, ", "")
    goes_on(bench)
    of_two = spark_jobs(spark, lambda: status(bench))
    assert of_two == of_one, "one query reads all ledgers, and a job without runs has no tables to look at"

    answer = bench.run("upgrade", "--dry-run")
    assert (answer.code, "There is nothing to convert." in answer.out) == (0, True)
    spark.sql(f"INSERT INTO {OWN} (name, kind, attempt, body) VALUES ('more', 'report', 'a', '{{\"format\": 3}}')")
    answer = bench.run("upgrade", "--json")
    tables = {one["table"]: one for one in json.loads(answer.out)["tables"]}
    formats = {table: [row["format"] for row in one["rows"]] for table, one in tables.items()}
    assert formats == {LANDINGS: [2], RUNS: [2], JOURNAL: [2, 3], METRICS: [2]}
    assert (answer.code, tables[JOURNAL]["refused"], tables[RUNS]["path"]) == (76, ["more"], OWN)
    spark.sql(f"INSERT INTO {OWN} (name, kind, attempt, body) VALUES ('more', 'report', 'a', '{{\"format')")
    answer = bench.run("upgrade")
    assert (answer.code, "1 row of more (kind report) of format unknown" in answer.err) == (74, True)
