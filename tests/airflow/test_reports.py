"""Which report a task writes, and its address. No Airflow needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewindow.airflow.process import Command
from rewindow.airflow.reports import address_of, check_reports, folder_of, report_of, write_report
from rewindow.errors import RewindowError
from tests.bad_input.scene import Bench, copy_of, without_spark
from tests.refusals import refused

RAN = {"run": "main/3", "summary": {"job": "counts", "branch": "main", "run": "main/3"}}


@pytest.fixture
def bench(two_hours: Bench, tmp_path: Path) -> Iterator[Bench]:
    with without_spark():
        yield copy_of(two_hours, tmp_path / "project")


def test_there_is_a_report_on_each_run_and_backfill_that_did_something(bench: Bench) -> None:
    def printed(*words: str) -> object:
        answer = bench.run(*words, "--json")
        assert answer.code == 0, answer.err
        return report_of(json.loads(answer.out))

    assert printed("run", "counts", "--land") == ("counts/main.html", ["report", "counts", "--branch", "main"])
    assert printed("run", "counts") is None, "there was nothing to do"
    options = ["report", "counts", "--branch", "fix", "--diff", "main"]
    assert printed("backfill", "counts", "--from", "1", "--branch", "fix") == ("counts/fix.html", options)
    for words in (["promote", "counts", "fix"], ["verify", "counts"], ["land", "activity"], ["gc", "counts"]):
        assert printed(*words) is None, words


def test_a_report_is_in_the_warehouse_and_its_link_is_where_a_server_shows_it(bench: Bench) -> None:
    folder = folder_of(str(bench.root), "local")
    assert folder == f"{bench.warehouse}/rewindow/reports"
    assert address_of(folder, "counts/main.html", None) == f"file://{folder}/counts/main.html"
    assert address_of(folder, "a/b.html", "https://reports.shop/") == "https://reports.shop/a/b.html"
    assert address_of("s3://events/w/rewindow/reports", "a/b.html", None) == "s3://events/w/rewindow/reports/a/b.html"
    bench.write("conf/targets/lake.yaml", LAKE)
    assert folder_of(str(bench.root), "lake") is None, "a report of governed tables would start Spark"
    with refused("reports-place-unknown", given="always"):
        check_reports("always")


def test_a_report_that_cannot_be_written_says_why(bench: Bench, tmp_path: Path) -> None:
    said: list[str] = []

    def start(line: list[str]) -> Command:
        assert line[4:9] == ["report", "counts", "--branch", "main", "--out"]
        code = 'import sys; print(\'{"error": "the disk is full", "code": "disk-full"}\'); sys.exit(74)'
        return Command([line[0], "-c", code], folder=str(tmp_path))

    where = {"project": str(bench.root), "target": "local"}
    with pytest.raises(RewindowError, match="the disk is full") as caught:
        write_report(RAN, where, None, start, said.append)
    assert caught.value.code == "disk-full"
    assert said == []


LAKE = """\
target: lake
warehouse: /tmp
connect: platform
cores: 2
source: shuffle
commit: spark
staging: rows
catalog: main.rewindow
"""
