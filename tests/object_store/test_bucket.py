"""Warehouses in a bucket, with moto as the server: the same commands work, and the tables have the same rows.

Tasks run in this process; `test_spark.py` uses Spark's workers.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest

from rewindow.airflow.log_watermarks import complete_through
from rewindow.control.plan.job_state import LedgerRow
from rewindow.errors import ConfigError
from rewindow.storage.locations import use
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import RUNS
from tests.bad_input.scene import FEED, Bench, hour, without_spark
from tests.conftest import ROOT
from tests.object_store.scene import HOURS, THERE, content, done, make
from tests.object_store.server import BUCKET, OVERWRITES, client, objects, s3_server

pytestmark = pytest.mark.slow

MADE = "feed: made\npartitions: 2\nlogs: {totals: {source: {job: counts, output: totals}, key: key, timestamp: _timestamp}}\n"

KILLED = """
import os, signal, sys
from rewindow.control.plan.spec import RunRequest
from rewindow.app.open_project import OpenProject
from tests.bad_input.scene import without_spark

def on_step(step):
    if step.startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

sys.path.insert(0, sys.argv[1])
with without_spark():
    OpenProject.open(sys.argv[1], "bucket").run("counts", RunRequest(branch="killed"), on_step)
"""


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]) -> Iterator[tuple[Bench, str]]:
    """Land hours locally and in the bucket; replay them in one run locally, and one by one in the bucket."""
    bench, warehouse = make(tmp_path_factory.mktemp("bench") / "project", settings)
    with without_spark():
        for number in range(HOURS):
            bench.rows(f"h{number}", hour(number))
            for target in ((), THERE):
                done(bench.run("land", "activity", "--json", *target))
            done(bench.run("run", "counts", "--json", "--log-format", "json", *THERE))
        done(bench.run("run", "counts", "--json"))
        yield bench, warehouse


def test_several_runs_in_a_bucket_equal_one_run_on_a_disk(replayed: tuple[Bench, str]) -> None:
    bench, warehouse = replayed
    assert content(warehouse) == content(str(bench.warehouse))
    assert not any("s3:" in str(path) for path in bench.root.rglob("*")), "nothing is written to the local disk"


def test_a_sensor_reads_the_watermark_of_the_log(replayed: tuple[Bench, str]) -> None:
    here, there = (complete_through(str(replayed[0].root), target, "activity") for target in ("local", "bucket"))
    assert here == there
    assert here is not None


def test_a_table_that_only_spark_can_read_is_rejected(replayed: tuple[Bench, str]) -> None:
    bench, _ = replayed
    bench.write(
        "conf/feeds/raw.yaml", FEED.replace("activity", "raw").replace("path: raw, format: parquet", "table: a.b")
    )
    bench.write("conf/feeds/made.yaml", MADE)
    for feed in ("raw", "made"):
        bench.run("land", feed, *THERE).refused("table-in-bucket-needs-spark")


@pytest.mark.cluster
def test_history_can_be_rewritten_in_a_bucket(replayed: tuple[Bench, str]) -> None:
    bench, warehouse = replayed
    before = content(warehouse)

    def call(*words: str) -> Any:
        return done(bench.run(*words, *THERE, "--json"))

    assert call("verify", "counts", "2") == {"main/2": {}}
    assert call("backfill", "counts", "--from", "2", "--branch", "fix")["stands_on"] == "main/1"
    compared = call("diff", "counts", "main", "fix")
    assert all(not one["different"] and one["equal"] for one in compared.values())
    assert call("promote", "counts", "fix")["at"].startswith("fix/")
    assert content(warehouse) == before
    assert call("rewind", "counts", "--to", "1")["rewound"]
    assert call("run", "counts")["epochs"] == [2, 2]
    assert call("state", "show", "counts", "sums", "--limit", "2")
    call("gc", "counts", "--keep", "0s")
    call("gc", "activity", "--keep", "0s")
    assert content(warehouse) == before


def test_deleted_files_are_written_again(replayed: tuple[Bench, str], settings: dict[str, str]) -> None:
    bench, warehouse = replayed
    before = content(warehouse)
    state = DeltaTables(warehouse).state("counts")
    last = state.branch("main").runs[-1]
    folder = table_path(warehouse, last.spec.binding.tables["output/totals"].path).removeprefix("s3://")
    system = client(settings)
    deleted_files = [
        path for path, _ in objects(settings, folder.partition("/")[2]) if f"/{last.commit.attempt}-" in path
    ]
    assert deleted_files
    for path in deleted_files:
        system.delete_file(path)
    for command in ("run", "show"):
        answer = bench.run(command, "counts", *THERE)
        assert answer.code == 74, answer.out
        assert "alerts/totals lacks" in answer.err
    done(bench.run("republish", "counts", "--json", *THERE))
    assert content(warehouse) == before


def test_a_killed_run_is_taken_over(replayed: tuple[Bench, str]) -> None:
    bench, warehouse = replayed
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(bench.root), "commit"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "lib"), str(ROOT)])},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    done(bench.run("run", "counts", "--branch", "killed", "--json", *THERE))
    assert content(warehouse, "killed") == content(str(bench.warehouse))


def test_of_concurrent_writers_one_commits_each_number(settings: dict[str, str]) -> None:
    writers, numbers = 4, 5
    warehouse = f"s3://{BUCKET}/{uuid4().hex[:8]}"
    use(warehouse, settings)
    start = Barrier(writers)

    def write(writer: int) -> list[bool]:
        ledger, won = Ledger(table_path(warehouse, RUNS), "contest"), []
        for number in range(1, numbers + 1):
            start.wait()
            won.append(ledger.append([LedgerRow(number, "NOTE", {"writer": writer})]))
        return won

    with ThreadPoolExecutor(writers) as threads:
        won = list(threads.map(write, range(writers)))
    rows = Ledger(table_path(warehouse, RUNS), "contest").read()
    assert [row.seq for row in rows] == [*range(1, numbers + 1)]
    for row in rows:
        assert [one[row.seq - 1] for one in won] == [writer == row.body["writer"] for writer in range(writers)]


def test_a_store_without_put_if_absent_gets_no_ledger(tmp_path: Path) -> None:
    with s3_server(tmp_path, OVERWRITES) as settings:
        warehouse = f"s3://{BUCKET}/w"
        use(warehouse, settings)
        with pytest.raises(ConfigError, match="If-None-Match"):
            Ledger(table_path(warehouse, RUNS), "job").append([LedgerRow(1, "NOTE", {})])
        assert [*objects(settings, "w")] == [], "no object is written"


def test_no_object_contains_a_secret(replayed: tuple[Bench, str], settings: dict[str, str]) -> None:
    found = [*objects(settings, replayed[1].removeprefix(f"s3://{BUCKET}/"))]
    assert len(found) > HOURS
    for path, data in found:
        assert b"canary" not in data, path
