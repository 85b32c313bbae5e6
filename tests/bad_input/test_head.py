"""`rewindow head` shows rows with readable times, in the order of time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.bad_input.scene import JOB, Bench, copy_of, hour


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


def test_a_branch_that_the_job_does_not_have_is_refused(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    for words in (("head", "counts"), ("head", "rewindow.quarantine", "--of", "counts"), ("republish", "counts")):
        answer = bench.run(*words, "--branch", "fix")
        assert answer.code == 2
        assert "[branch-not-run-yet]" in answer.err
        assert "job 'counts' has no runs on branch 'fix' yet (branches with runs: main)" in answer.err


def test_a_job_that_never_ran_has_no_rows(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.write("conf/jobs/other.yaml", JOB.replace("counts", "other").replace("alerts.totals", "alerts.other"))
    answer = bench.run("head", "other")
    assert answer.code == 0
    assert "alerts.other does not exist yet: no run of other has written it on branch main." in answer.out
    assert json.loads(bench.run("head", "other", "--json").out)["tables"][0]["count"] is None


def test_a_table_that_is_gone_is_not_one_that_was_never_written(bench: Bench) -> None:
    shutil.rmtree(bench.warehouse / "alerts/totals")
    answer, shown = bench.run("head", "counts"), bench.run("show", "counts")
    assert answer.code == 74, answer
    assert "[published-table-changed]" in answer.err
    assert "alerts/totals is gone" in answer.err
    assert answer.err == shown.err


def test_a_table_that_the_job_names_since_is_not_taken_for_the_one_that_has_the_rows(bench: Bench) -> None:
    bench.edit("conf/jobs/counts.yaml", "alerts.totals", "alerts.sums")
    out = bench.run("head", "counts").out
    assert "alerts.totals: " in out
    assert "alerts.sums" not in out


def test_a_name_that_is_neither_job_nor_table_is_refused_with_those_that_are(template: Bench) -> None:
    answer = template.run("head", "total")
    assert answer.code == 2
    assert "[name-not-found]" in answer.err
    assert "'total' is neither a job (counts) nor an output table (alerts.totals)" in answer.err
    for misspelt, meant in (("cuonts", "counts"), ("total", "totals"), ("alert.totals", "alerts.totals")):
        assert f"did you mean `{meant}`? name one of these" in template.run("head", misspelt).err
    assert "did you mean" not in template.run("head", "zzz").err


def test_the_version_is_printed_without_a_project(capsys: pytest.CaptureFixture[str]) -> None:
    from rewindow.app.cli.entry import run_command

    assert run_command(["--version"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("rewindow 0.")
    assert "pyspark " in out
    assert run_command([]) in {0, 2}


def test_quarantined_records_are_shown_with_their_reasons(bench: Bench) -> None:
    assert bench.run("head", "rewindow.quarantine").out == "rewindow.quarantine has no rows.\n"
    bench.edit("conf/feeds/activity.yaml", "timestamp: t,", "timestamp: t, invalid_timestamp: skip,")
    bench.edit(
        "conf/jobs/counts.yaml", "on_code_change: accept\n", "on_code_change: accept\non_error: {scores: quarantine}\n"
    )
    bench.code("def score(row):\n    return 1 // (row.x - 3)\n")
    bench.rows("h3", [*hour(3), {**hour(3)[0], "t": -5}])
    landed = bench.run("land", "activity")
    assert "(1 quarantined: `rewindow head rewindow.quarantine --of activity`)" in landed.out
    assert bench.run("run", "counts").code == 0
    shown = json.loads(bench.run("head", "rewindow.quarantine", "--json").out)["tables"][0]
    assert shown["count"] == len(shown["rows"]) == 3
    assert [(row["name"], row["node"]) for row in shown["rows"]] == [("counts", "scores")] * 2 + [("activity", None)]
    assert "ZeroDivisionError" in shown["rows"][0]["reason"]
    assert "negative" in shown["rows"][2]["reason"] or "-5" in shown["rows"][2]["reason"]
    table = bench.run("head", "rewindow.quarantine").out
    assert table.startswith("rewindow.quarantine: 3 rows")
    assert "2023-11-15 " in table
    assert {row["_run"] for row in shown["rows"]} == {"main/3", None}
    for name, rows in (("counts", shown["rows"][:2]), ("activity", shown["rows"][2:])):
        (one,) = json.loads(bench.run("head", "rewindow.quarantine", "--of", name, "-n", "5", "--json").out)["tables"]
        assert (one["count"], [row["reason"] for row in one["rows"]]) == (len(rows), [row["reason"] for row in rows])
    refused = bench.run("head", "rewindow.quarantine", "--of", "count")
    assert (refused.code, "[of-name-unknown]" in refused.err) == (2, True), refused
    assert "did you mean `counts`?" in refused.err
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "again").code == 0
    for branch, count, runs in ((None, 6, {"main/3", "again/1"}), ("main", 2, {"main/3"}), ("again", 4, {"again/1"})):
        words = ["head", "rewindow.quarantine", "--of", "counts", *([] if branch is None else ["--branch", branch])]
        answer = json.loads(bench.run(*words, "--json").out)
        assert (answer["branch"], answer["tables"][0]["count"]) == (branch, count)
        assert {row["_run"] for row in answer["tables"][0]["rows"]} == runs
    refused = bench.run("head", "rewindow.quarantine", "--branch", "again")
    assert (refused.code, "[quarantine-branch-without-job]" in refused.err) == (2, True), refused
    assert bench.run("branch", "drop", "counts", "again").code == 0
    refused = bench.run("head", "counts", "--of", "counts")
    assert (refused.code, "[of-without-quarantine]" in refused.err) == (2, True), refused
    assert "'counts'" in refused.err
    assert bench.run("rewind", "counts", "--to", "main/2").code == 0
    rewound = json.loads(bench.run("head", "rewindow.quarantine", "--json").out)["tables"][0]
    assert {row["_run"] for row in rewound["rows"]} == {"main/3 (taken back)", "again/1 (taken back)", None}


def test_a_store_without_the_key_says_so(template: Bench) -> None:
    answer = template.run("state", "show", "counts", "sums", "--key", "zed")
    assert (answer.code, answer.out) == (0, "Store sums has no entry with user=zed.\n")
    assert json.loads(template.run("state", "show", "counts", "sums", "--key", "zed", "--json").out) == {
        "entries": [],
        "count": 0,
    }
    assert "ann" in template.run("state", "show", "counts", "sums", "--key", "user=ann").out
