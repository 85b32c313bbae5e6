"""Errors in real workers give one clear message with the fix and its exit code. The tables stay unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rewindow.tables.delta.table_rows import content_hash
from tests.bad_input import workers
from tests.bad_input.cases import Case
from tests.bad_input.scene import FEED, TARGET, Bench, copy_of, hour, without_spark
from tests.bad_input.workers import make_template, on_spark, with_code, with_shuffle_reader
from tests.conftest import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ALWAYS = [workers.FAILS[0], workers.FAILS[-1], workers.ENDS[0], *workers.BUILDS]
"""Cases that run with `make test`. The others run with `make cluster`."""
CASES = [
    *workers.FAILS,
    *workers.ENDS,
    *workers.BUILDS,
    *map(with_shuffle_reader, [workers.FAILS[0], workers.FAILS[-1], workers.ENDS[1], *workers.BUILDS]),
]


def marked(cases: list[Case]) -> list[object]:
    """Mark most cases so that `make test` skips them."""
    names = {case.name for case in ALWAYS}
    marks = [() if case.name in names else (pytest.mark.cluster,) for case in cases]
    return [pytest.param(case, id=case.name, marks=mark) for case, mark in zip(cases, marks, strict=True)]


@pytest.fixture(scope="module")
def template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with on_spark(spark):
        yield make_template(tmp_path_factory.mktemp("workers") / "project")


@pytest.fixture(scope="module")
def clean(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> str:
    return finished(copy_of(template, tmp_path_factory.mktemp("clean") / "project"))


def finished(bench: Bench, code: str = workers.GOOD) -> str:
    """Run the job with correct code and return the hash of its output."""
    with_code(bench, code)
    bench.done("run counts")
    return output(bench)


def output(bench: Bench) -> str:
    return content_hash(str(bench.warehouse / "alerts" / "totals"))


@pytest.mark.parametrize("case", marked(CASES))
def test_an_error_is_reported_and_changes_nothing(case: Case, template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    before, decided = output(bench), bench.decided()
    case.given(bench)
    answer = bench.run(*case.command.split())
    answer.refused(case.code, **case.facts)
    assert len(answer.err) < 4_000
    assert bench.decided() == decided
    assert output(bench) == before


@pytest.mark.parametrize("case", marked(workers.ENDS))
def test_after_a_worker_was_killed_the_next_run_gives_the_clean_tables(
    case: Case, template: Bench, clean: str, tmp_path: Path
) -> None:
    bench = copy_of(template, tmp_path / "project")
    case.given(bench)
    bench.refuses("run counts", case.code)
    assert finished(bench) == clean


@pytest.mark.cluster
@pytest.mark.parametrize("case", [*workers.FINE, with_shuffle_reader(workers.FINE[-1])], ids=lambda case: case.name)
def test_harmless_cases_succeed(case: Case, template: Bench, clean: str, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    case.given(bench)
    answer = bench.done("run counts")
    assert output(bench) == clean
    assert "LOUD" not in answer.out + answer.err


@pytest.mark.cluster
def test_a_worker_at_its_memory_limit_ends_the_run_and_prints_one_object(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "project")
    bench.write("conf/feeds/activity.yaml", FEED)
    bench.write("conf/targets/local.yaml", TARGET)
    with_code(
        bench, "kept = []\ndef score(row):\n    print('LOUD')\n    kept.append(bytearray(300_000_000))\n    return 'x'"
    )
    bench.rows("h0", hour(0))
    with without_spark():
        bench.done("land activity")
    limited = f"{TARGET}{workers.BY_SPARK}spark: {{spark.executor.pyspark.memory: 1200m}}\n"
    bench.write("conf/targets/local.yaml", limited)
    words = [sys.executable, "-m", "rewindow", "run", "counts", "--json", "--project", str(bench.root)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    said = json.loads(ended.stdout)
    assert (ended.returncode, said["code"]) == (71, "node-out-of-memory")
    assert "Traceback" not in ended.stderr
