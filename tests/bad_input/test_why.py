"""`rewindow why` names what is behind a row, or says why there is none."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest
from deltalake import DeltaTable

from rewindow.app.cli.entry import run_command
from tests.bad_input.chain import READER
from tests.bad_input.scene import USERS, Bench, goes_on, hour
from tests.ingest.local_engine import HOUR, T0
from tests.refusals import containing, told

MINUTE = 60_000


def why(bench: Bench, words: str) -> dict[str, Any]:
    return bench.json(f"why {words}")


def test_a_row_names_its_records_its_run_and_when_it_was_sent(template: Bench) -> None:
    for user in USERS:
        found = why(template, f"alerts.totals {user}")
        row, run = found["row"], found["run"]
        assert (row["user"], found["job"], run["run"]) == (user, "counts", "main/2")
        assert len(found["records"]) == row["value"]
        for record in found["records"]:
            assert row["window_start"] <= record["timestamp_ms"] < row["window_end"]
            assert record["record"]["user"] == user
            assert record["landing"] in (1, 2)
        assert run["code"] is not None
        assert found["sent"]["is_held"]
        assert found["sent"]["record"]["timestamp_ms"] >= row["window_end"] + 5 * MINUTE
        assert found["is_reproduced"]
        assert found["is_exact"]


def test_a_window_chooses_among_the_rows_of_a_key(template: Bench) -> None:
    newest = why(template, "totals ann")
    assert newest["row_count"] > 1
    assert newest["row"] == newest["rows"][0]
    oldest = newest["rows"][-1]
    found = why(template, "counts user=ann --window 2023-11-14T22:00:00Z")
    assert oldest["window_start"] == T0
    assert found["row"] == oldest
    assert found["row_count"] == 1
    answer = template.run("why", "counts", '{"user": "ann"}', "--run", "main/2", "--json")
    assert answer.values["row"] == newest["row"]


def test_a_late_record_is_named_with_its_lateness(bench: Bench) -> None:
    late = T0 + 2 * MINUTE
    bench.rows("h8", [*hour(4), {"user": "ann", "t": late, "got": T0 + 4 * HOUR + 1, "x": 99}])
    goes_on(bench)
    (dropped,) = why(bench, "alerts.totals ann --window 2023-11-14T22:00:00Z")["late"]
    assert dropped["record"]["record"]["x"] == 99
    assert dropped["reason"] == "window-closed"
    assert dropped["behind_ms"] > 2 * HOUR


def test_a_row_of_a_branch_is_explained_too(bench: Bench) -> None:
    bench.done("backfill counts --from 1 --branch fix")
    found = why(bench, "alerts.totals ann --branch fix")
    assert found["run"]["run"].startswith("fix/")
    assert found["is_reproduced"]


def test_a_missing_row_may_have_been_landed_but_not_run(bench: Bench) -> None:
    bench.done("land activity")
    found = bench.said("why totals bob --window 2023-11-15T00:00:00Z --missing")
    assert found["why"] == "not_taken"
    told(found["reasons"], "records-taken-later", fix=containing("`rewindow run counts`"))


def test_without_a_window_the_open_windows_of_the_key_are_named(template: Bench) -> None:
    newest = why(template, "totals bob")["row"]["window_start"]
    found = why(template, "totals bob --missing")
    assert found["why"] == "open"
    (window,) = found["open_windows"]
    assert window["start_ms"] == found["window_start_ms"] == T0 + HOUR + 30 * MINUTE > newest
    assert found["clock_ms"] < window["closes_at_ms"] == found["closes_at_ms"] == window["end_ms"] + 5 * MINUTE
    assert window["records"] == len(found["records"]) == 2
    assert why(template, "totals bob --missing --window 2023-11-14T23:30:00Z")["why"] == "open"


def test_a_key_with_a_row_is_not_missing(bench: Bench) -> None:
    assert why(bench, "totals ann --window 2023-11-14T22:00:00Z --missing")["why"] == "exists"
    bench.rows("h8", [{"user": "cyd", "t": T0 + 9 * HOUR, "got": T0 + 9 * HOUR + 1, "x": 1}])
    goes_on(bench)
    found = why(bench, "totals ann --missing")
    assert (found["why"], found["open_windows"]) == ("exists", [])


def test_an_option_that_is_read_as_a_part_of_the_key_is_named(template: Bench) -> None:
    answer = template.run("why", "--project", str(template.root), "totals", "--", "-1", "--missing")
    refusal = answer.refused("key-word-without-column", word="-1")
    (fix,) = re.findall(r"`rewindow (.*)`", refusal.message)
    with template.code_is_imported():
        assert run_command(fix.split()) == 0


def test_a_window_that_no_landed_record_reaches_is_said_to_be_ahead(template: Bench) -> None:
    assert why(template, "totals zoe --missing")["records"] == []
    found = template.said("why totals ann --window 2023-11-20T10:00:00Z --missing")
    assert found["why"] == "never_landed"
    told(found["reasons"], "feed-complete-through", then=containing("begins"))


def test_the_quarantine_is_named_only_for_a_key_that_has_rows_in_it(bench: Bench) -> None:
    bench.edit("conf/feeds/activity.yaml", "timestamp: t,", "timestamp: t, invalid_timestamp: skip,")
    bench.rows("h8", [*hour(4), {"user": "zoe", "t": None, "got": T0 + 4 * HOUR, "x": 1}])
    bench.done("land activity")
    for user, count in (("zoe", 1), ("max", 0), ("1", 0)):  # 1 is in another column
        reasons = why(bench, f"totals {user} --missing")["reason_codes"]
        assert reasons.count("key-in-quarantine") == count


def test_records_without_a_key_are_counted_and_how_to_see_them_is_said(bench: Bench) -> None:
    bench.rows("h8", [{"user": None, "t": T0 + 4 * HOUR + n, "got": T0 + 4 * HOUR + n, "x": n} for n in range(3)])
    goes_on(bench)
    for word in ("", "null", "user=null"):
        found = bench.run("why", "totals", word, "--missing", "--json").said
        assert found["why"] == "no_key", word
        told(found["reasons"], "null-keys-by-run", runs="3 in run main/3")
        told(found["reasons"], "how-to-see-dropped", how=containing("`dropped: quarantine`"))
    bench.rows("h9", [{"user": "null", "t": T0 + 5 * HOUR, "got": T0 + 5 * HOUR, "x": 1}])
    bench.done("land activity")
    assert why(bench, "totals null --missing")["why"] == "not_taken"


def test_a_row_without_a_key_is_found_by_an_empty_key(bench: Bench) -> None:
    def copied(word: str, *more: str) -> dict[str, Any]:
        return bench.run("why", "copies", word, *more, "--json").values

    job = "job: copies\ntopology: copies:build\nfeed: activity\noutputs: {copied: {table: alerts.copied}}\n"
    bench.write("conf/jobs/copies.yaml", job)
    bench.write("copies.py", READER.replace("totals", "events").replace("seen", "copied"))
    bench.rows("h8", [{"user": None, "t": T0 + 4 * HOUR, "got": T0 + 4 * HOUR, "x": 7}])
    bench.done("land activity", "run copies")
    for word in ("", "null", '{"user": null}'):
        assert (copied(word)["row"]["user"], copied(word)["row"]["x"]) == (None, 7), word
    assert copied("null", "--missing")["why"] == "exists"
    bench.rows("h9", [{"user": "null", "t": T0 + 5 * HOUR, "got": T0 + 5 * HOUR, "x": 8}])
    bench.done("land activity", "run copies")
    for word, x in (("user=", 7), ('{"user": null}', 7), ("null", 8), ('{"user": "null"}', 8)):
        assert copied(word)["row"]["x"] == x, word


def test_a_row_that_another_hand_deleted_is_not_said_to_have_been_never_sent(bench: Bench) -> None:
    DeltaTable(str(bench.warehouse / "alerts/totals")).delete("user = 'ann'")
    for words in ("totals ann --missing", "totals ann"):
        bench.refuses(f"why {words}", "published-table-changed", fix=containing("`rewindow republish counts`"))


def test_a_key_that_looks_like_another_column_is_a_value_if_it_was_landed(bench: Bench) -> None:
    bench.rows("h8", [{"user": "colour=red", "t": T0 + 4 * HOUR, "got": T0 + 4 * HOUR + 1, "x": 1}])
    bench.done("land activity")
    assert why(bench, "totals colour=red --missing")["why"] == "not_taken"
    assert why(bench, "totals user=big=red --missing")["why"] == "never_landed"


def test_an_unknown_run_names_the_runs_or_says_that_there_is_none(bench: Bench) -> None:
    asks = ("why totals ann --run main/9", "rewind counts --to main/9")
    for line in asks:
        assert "main/1, main/2" in str(bench.refuses(line, "run-unknown").facts["choices"])
    bench.done("rewind counts --to 0")
    for line in asks:
        assert "any more" in str(bench.refuses(line, "run-unknown").facts["choices"])
    shutil.rmtree(bench.warehouse)
    bench.done("land activity")
    for line in asks:
        assert "yet" in str(bench.refuses(line, "run-unknown").facts["choices"])
        assert "branch 'fix'" in bench.run(*line.split(), "--branch", "fix").err


SUMS = '.aggregate(lambda: 0, lambda key, value, total: total + value, store="sums", value=int)'
SUPPRESS = 'suppress(until_window_closes(), name="closed")'
STRADDLES = "why totals ann --window 2023-11-14T23:30:00Z"
"""Asks for a window whose records one run took and whose row the next run wrote."""


@pytest.fixture
def summed(bench: Bench) -> Bench:
    """A job whose results depend on the user function, with one run."""
    bench.done("rewind counts --to 0")
    bench.edit("bench_job.py", '.count(store="sums")', SUMS)
    bench.done("run counts")
    return bench


def test_a_row_that_depends_on_state_of_other_code_names_the_change(summed: Bench) -> None:
    summed.edit("bench_job.py", "row.x * 2", "row.x * 3")
    goes_on(summed)
    summed.refuses(STRADDLES, "row-of-two-versions", changes=containing("score in bench_job.py changed"))
    summed.done("why totals ann", "backfill counts --from 1 --branch fix", "promote counts fix", STRADDLES)


def test_other_code_that_gives_the_same_row_is_noted(bench: Bench) -> None:
    bench.edit("bench_job.py", "row.x * 2", "row.x * 3")
    told(bench.said("why totals ann")["notes"], "code-changed-same-row", run="main/2")


def test_a_removed_suppress_is_named_though_runs_resume_without_it(summed: Bench) -> None:
    goes_on(summed)
    summed.edit("bench_job.py", 'counts.suppress(until_window_closes(), name="closed")', "counts")
    summed.refuses(STRADDLES, "row-of-other-code", changes=containing("suppress closed is removed"))
