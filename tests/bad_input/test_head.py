"""`rewindow head` shows rows with readable times, in the order of time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of


def test_the_first_and_the_last_rows_are_shown_in_the_order_of_time(template: Bench) -> None:
    all_rows = json.loads(template.run("head", "counts", "-n", "1000", "--json").out)["tables"][0]
    times = [row["_timestamp"] for row in all_rows["rows"]]
    assert times == sorted(times)
    assert all_rows["count"] == len(times) > 4
    first = json.loads(template.run("head", "alerts.totals", "-n", "2", "--json").out)["tables"][0]["rows"]
    last = json.loads(template.run("head", "totals", "-n", "2", "--last", "--json").out)["tables"][0]["rows"]
    assert first == all_rows["rows"][:2]
    assert last == all_rows["rows"][-2:]


def test_times_are_readable_and_the_title_says_how_many_rows_there_are(template: Bench) -> None:
    out = template.run("head", "counts", "--limit", "2").out
    assert out.startswith("alerts.totals: first 2 of ")
    assert "window start" not in out
    assert out.count("2023-11-14 ") == 6
    assert "main/1" in out
    assert "_offset" not in out


def test_a_job_that_never_ran_and_an_unknown_branch_have_no_rows(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    answer = bench.run("head", "counts", "--branch", "fix")
    assert answer.code == 0
    assert "alerts.totals does not exist yet: no run of counts has written it on branch fix." in answer.out
    assert json.loads(bench.run("head", "counts", "--branch", "fix", "--json").out)["tables"][0]["count"] is None


def test_a_name_that_is_neither_job_nor_table_is_refused_with_those_that_are(template: Bench) -> None:
    answer = template.run("head", "total")
    assert answer.code == 2
    assert "'total' is neither a job (counts) nor an output table (alerts.totals)" in answer.err


def test_the_version_is_printed_without_a_project(capsys: pytest.CaptureFixture[str]) -> None:
    from rewindow.app.cli.entry import run_command
    from rewindow.app.own_code import is_compiled

    assert run_command(["--version"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("rewindow 0.")
    assert ("compiled core" in out) is is_compiled()
    assert "pyspark " in out
    assert run_command([]) in {0, 2}
