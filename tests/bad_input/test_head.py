"""`rewindow head` shows rows with readable times, in the order of time."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow.app.cli.printing import Printer
from rewindow.app.result_lines import as_assignments
from tests.bad_input.scene import JOB, Bench, hour


def test_the_first_and_the_last_rows_are_shown_in_the_order_of_time(template: Bench) -> None:
    all_rows = template.json("head counts -n 1000")["tables"][0]
    times = [row["_timestamp"] for row in all_rows["rows"]]
    assert times == sorted(times)
    assert all_rows["count"] == len(times) > 4
    first = template.json("head alerts.totals -n 2")["tables"][0]["rows"]
    last = template.json("head totals -n 2 --last")["tables"][0]["rows"]
    assert first == all_rows["rows"][:2]
    assert last == all_rows["rows"][-2:]


def test_times_are_readable_and_the_title_says_how_many_rows_there_are(template: Bench) -> None:
    out = template.run("head", "counts", "--limit", "2").out
    assert out.startswith("alerts.totals: first 2 of ")
    assert "window start" not in out
    assert out.count("2023-11-14 ") == 6
    assert "main/1" in out
    assert "_offset" not in out


def test_a_job_that_never_ran_has_no_rows(bench: Bench) -> None:
    bench.write("conf/jobs/other.yaml", JOB.replace("counts", "other").replace("alerts.totals", "alerts.other"))
    assert bench.json("head other")["tables"][0]["count"] is None


def test_a_table_that_the_job_names_since_is_not_taken_for_the_one_that_has_the_rows(bench: Bench) -> None:
    bench.edit("conf/jobs/counts.yaml", "alerts.totals", "alerts.sums")
    assert [one["table"] for one in bench.json("head counts")["tables"]] == ["alerts.totals"]


def test_the_version_is_printed_without_a_project(capsys: pytest.CaptureFixture[str]) -> None:
    from rewindow.app.cli.entry import run_command

    assert run_command(["--version"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("rewindow 0.")
    assert "pyspark " in out
    assert run_command([]) in {0, 2}


def test_quarantined_records_are_shown_with_their_reasons(bench: Bench) -> None:
    def shown(more: str = "") -> dict[str, Any]:
        (table,) = bench.json(f"head rewindow.quarantine{more}")["tables"]
        return dict(table)

    assert shown()["count"] in (0, None)
    bench.edit("conf/feeds/activity.yaml", "timestamp: t,", "timestamp: t, invalid_timestamp: skip,")
    bench.edit(
        "conf/jobs/counts.yaml", "on_code_change: accept\n", "on_code_change: accept\non_error: {scores: quarantine}\n"
    )
    bench.code("def score(row):\n    return 1 // (row.x - 3)\n")
    bench.rows("h3", [*hour(3), {**hour(3)[0], "t": -5}])
    bench.done("land activity", "run counts")
    rows = shown()["rows"]
    assert [(row["name"], row["node"]) for row in rows] == [("counts", "scores")] * 2 + [("activity", None)]
    assert ["ZeroDivisionError" in row["reason"] for row in rows] == [True, True, False]
    assert {row["_run"] for row in rows} == {"main/3", None}
    for name, mine in (("counts", rows[:2]), ("activity", rows[2:])):
        of_name = shown(f" --of {name}")
        assert [row["reason"] for row in of_name["rows"]] == [row["reason"] for row in mine]
    bench.refuses("head rewindow.quarantine --of count", "job-or-feed-unknown", name="count")
    bench.refuses("head rewindow.quarantine --branch again", "quarantine-branch-without-job")
    bench.refuses("head counts --of counts", "of-without-quarantine", name="counts")
    bench.done("backfill counts --from 1 --branch again")
    for more, runs in (
        ("", {"main/3", "again/1"}),
        (" --branch main", {"main/3"}),
        (" --branch again", {"again/1"}),
    ):
        of_runs = shown(f" --of counts{more}")
        assert {row["_run"] for row in of_runs["rows"]} == runs
    bench.done("branch drop counts again", "rewind counts --to main/2")
    assert {row["_run"] for row in shown()["rows"]} == {"main/3 (taken back)", "again/1 (taken back)", None}


def test_a_store_without_the_key_has_no_entries(template: Bench) -> None:
    shown = template.json("state show counts sums --key zed")
    assert shown == {"entries": [], "count": 0}
    shown = template.json("state show counts sums --key user=ann")
    assert {entry["user"] for entry in shown["entries"]} == {"ann"}


AWKWARD = "line\nbreak [red]x[/red] [/nothing] \x1b[31m \u00e9"
SHOWN = "line\\nbreak [red]x[/red] [/nothing] \\x1b[31m \u00e9"


def test_a_table_shows_line_breaks_and_brackets_of_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    Printer().table("[t]", [{"[note]": AWKWARD, "n": 1}])
    title, names, _, row = (line.strip() for line in capsys.readouterr().out.splitlines())
    assert (title, names.split()[0]) == ("[t]", "[note]")
    assert row.partition(" │")[0].rstrip() == SHOWN


def test_a_row_in_a_sentence_stays_on_its_line() -> None:
    assert as_assignments({"note": AWKWARD, "n": 1}) == f"note={SHOWN}, n=1"
