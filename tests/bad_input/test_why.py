"""`rewindow why` names what is behind a row, or says why there is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.bad_input.chain import READER
from tests.bad_input.scene import USERS, Bench, copy_of, goes_on, hour
from tests.ingest.local_engine import HOUR, T0

MINUTE = 60_000


def why(bench: Bench, *words: str, code: int = 0) -> dict[str, Any]:
    answer = bench.run("why", *words, "--json")
    assert answer.code == code, answer
    found: dict[str, Any] = json.loads(answer.out)
    return found


def says(bench: Bench, *words: str) -> str:
    answer = bench.run("why", *words)
    assert answer.code == 0, answer
    return answer.out


def test_a_row_names_its_records_its_run_and_when_it_was_sent(template: Bench) -> None:
    for user in USERS:
        found = why(template, "alerts.totals", user)
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
    newest = why(template, "totals", "ann")
    assert newest["row_count"] > 1
    assert newest["row"] == newest["rows"][0]
    oldest = newest["rows"][-1]
    found = why(template, "counts", "user=ann", "--window", "2023-11-14T22:00:00Z")
    assert oldest["window_start"] == T0
    assert found["row"] == oldest
    assert found["row_count"] == 1
    assert why(template, "counts", '{"user": "ann"}', "--run", "main/2")["row"] == newest["row"]


def test_a_late_record_is_named_with_its_lateness(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    late = T0 + 2 * MINUTE
    bench.rows("h8", [*hour(4), {"user": "ann", "t": late, "got": T0 + 4 * HOUR + 1, "x": 99}])
    assert bench.run("land", "activity").code == 0
    assert bench.run("run", "counts").code == 0
    words = ("alerts.totals", "ann", "--window", "2023-11-14T22:00:00Z")
    (dropped,) = why(bench, *words)["late"]
    assert dropped["record"]["record"]["x"] == 99
    assert dropped["reason"] == "window-closed"
    assert dropped["behind_ms"] > 2 * HOUR
    said = bench.run("why", *words).out
    assert "Dropped, so not in the row: 1 record" in said
    assert "window-closed" in said
    assert "Replaying these records alone gives the same row." in said


def test_a_row_of_a_branch_is_explained_too(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    found = why(bench, "alerts.totals", "ann", "--branch", "fix")
    assert found["run"]["run"].startswith("fix/")
    assert found["is_reproduced"]


def test_a_missing_row_is_still_open(template: Bench) -> None:
    newest = max(why(template, "totals", user)["row"]["window_start"] for user in USERS)
    found = why(template, "totals", "bob", "--window", "2023-11-14T23:30:00Z", "--missing")
    assert found["window_start_ms"] > newest
    assert found["why"] == "open"
    assert found["closes_at_ms"] == found["window_start_ms"] + 35 * MINUTE
    assert found["clock_ms"] < found["closes_at_ms"]
    assert any("short" in reason for reason in found["reasons"])
    assert found["records"]


def test_a_missing_row_may_have_been_landed_but_not_run(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.rows("h2", hour(2))
    assert bench.run("land", "activity").code == 0
    found = why(bench, "totals", "bob", "--window", "2023-11-15T00:00:00Z", "--missing")
    assert found["why"] == "not_taken"
    assert "rewindow run counts" in found["reasons"][0]


def test_a_key_that_was_never_landed_is_said_to_be(template: Bench) -> None:
    found = why(template, "totals", "zoe", "--missing")
    assert (found["why"], found["records"]) == ("never_landed", [])
    assert "no record of the key was ever landed" in found["headline"]


def test_without_a_window_the_open_windows_of_the_key_are_named(template: Bench) -> None:
    newest = why(template, "totals", "bob")["row"]["window_start"]
    found = why(template, "totals", "bob", "--missing")
    assert found["why"] == "open"
    (window,) = found["open_windows"]
    assert window["start_ms"] == found["window_start_ms"] == T0 + HOUR + 30 * MINUTE > newest
    assert found["clock_ms"] < window["closes_at_ms"] == found["closes_at_ms"] == window["end_ms"] + 5 * MINUTE
    assert window["records"] == len(found["records"]) == 2
    said = says(template, "totals", "bob", "--missing")
    assert "the window from 2023-11-14 23:30:00Z is open until 2023-11-15 00:05:00Z." in said
    assert "Of another window there is a row of the key, written by run main/2" in said


def test_a_key_with_a_row_is_not_missing(template: Bench, tmp_path: Path) -> None:
    assert why(template, "totals", "ann", "--window", "2023-11-14T22:00:00Z", "--missing")["why"] == "exists"
    bench = copy_of(template, tmp_path / "project")
    bench.rows("h8", [{"user": "cyd", "t": T0 + 9 * HOUR, "got": T0 + 9 * HOUR + 1, "x": 1}])
    goes_on(bench)
    found = why(bench, "totals", "ann", "--missing")
    assert (found["why"], found["open_windows"]) == ("exists", [])
    assert found["reasons"][-1] == "No other window of the key is open"


def test_a_wrong_key_or_window_is_refused_with_what_to_do(template: Bench) -> None:
    for words, said in (
        (("totals", "colour=red", "user=ann"), "the key has the columns user"),
        (("totals", "colour=red", "size=1"), "name each once, as in `rewindow why alerts.totals user="),
        (("totals", "ann", "bob"), "names no column: write COLUMN=VALUE for each of user, as in `rewindow why"),
        (("nothing", "ann"), "neither a job"),
        (("rewindow.quarantine", "ann"), "`rewindow head rewindow.quarantine` shows them"),
        (("rewindow/quarantine", "ann", "--missing"), "`rewindow head rewindow.quarantine` shows them"),
        (("totals", "ann", "--run", "9"), "does not exist"),
    ):
        answer = template.run("why", *words)
        assert answer.code == 2, answer
        assert said in answer.err, answer


def test_an_option_that_is_read_as_a_part_of_the_key_is_named(template: Bench) -> None:
    answer = template.run("why", "--project", str(template.root), "totals", "--", "-1", "--missing")
    assert answer.code == 2, answer
    assert "--missing is read as a part of the key, because it follows `--`. Write options before that: " in answer.err
    assert "`rewindow why alerts.totals --missing " in answer.err
    assert " -- -1` [" in answer.err


def test_a_window_that_no_landed_record_reaches_is_said_to_be_ahead(template: Bench) -> None:
    found = why(template, "totals", "ann", "--window", "2023-11-20T10:00:00Z", "--missing")
    assert found["why"] == "never_landed"
    assert found["headline"] == "no landed record reaches the window from 2023-11-20 10:00:00Z yet"
    assert found["reasons"][0].startswith("Feed activity is complete through 2023-11-14 23:")
    assert found["reasons"][0].endswith("the window begins later: its records may still be landed")
    assert not any("no records of earlier times" in reason for reason in found["reasons"])


def test_the_quarantine_is_named_only_for_a_key_that_has_rows_in_it(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    feed = (bench.root / "conf/feeds/activity.yaml").read_text(encoding="utf-8")
    bench.write("conf/feeds/activity.yaml", feed.replace("timestamp: t,", "timestamp: t, invalid_timestamp: skip,"))
    bench.rows("h8", [*hour(4), {"user": "zoe", "t": None, "got": T0 + 4 * HOUR, "x": 1}])
    assert bench.run("land", "activity").code == 0
    for user, count in (("zoe", 1), ("max", 0), ("1", 0)):  # 1 is in another column
        reasons = why(bench, "totals", user, "--missing")["reasons"]
        named = [reason for reason in reasons if "quarantine" in reason]
        reason = "1 row with this key is in the quarantine, because of: no timestamp"
        assert named == [f"{reason} (`rewindow head rewindow.quarantine --of activity`)"] * count


def test_records_without_a_key_are_counted_and_how_to_see_them_is_said(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    found = why(bench, "totals", "", "--missing")
    assert (found["why"], found["headline"]) == ("no_key", "no run of counts has skipped a record without a key")
    bench.rows("h8", [{"user": None, "t": T0 + 4 * HOUR + n, "got": T0 + 4 * HOUR + n, "x": n} for n in range(3)])
    goes_on(bench)
    for word in ("", "null", "user=null", '{"user": null}'):
        found = why(bench, "totals", word, "--missing")
        assert found["headline"] == "3 records without a key were skipped, so alerts.totals has no row of them", word
        assert found["reasons"][0].endswith("it skips records without a key: 3 in run main/3")
        assert "`dropped: quarantine` in conf/jobs/counts.yaml" in found["reasons"][1]
        assert found["reasons"][2].startswith("A key is written user=VALUE, as in `rewindow why alerts.totals user=")
        assert "3 records without a key were skipped" in bench.run("why", "totals", word).err
    bench.rows("h9", [{"user": "null", "t": T0 + 5 * HOUR, "got": T0 + 5 * HOUR, "x": 1}])
    assert bench.run("land", "activity").code == 0
    assert why(bench, "totals", "null", "--missing")["why"] == "not_taken"


def test_a_row_without_a_key_is_found_by_an_empty_key(bench: Bench) -> None:
    job = "job: copies\ntopology: copies:build\nfeed: activity\noutputs: {copied: {table: alerts.copied}}\n"
    bench.write("conf/jobs/copies.yaml", job)
    bench.write("copies.py", READER.replace("totals", "events").replace("seen", "copied"))
    bench.rows("h8", [{"user": None, "t": T0 + 4 * HOUR, "got": T0 + 4 * HOUR, "x": 7}])
    assert bench.run("land", "activity").code == 0
    answer = bench.run("run", "copies")
    assert answer.code == 0, answer
    for word in ("", "null", "user=null", '{"user": null}'):
        found = why(bench, "copies", word)
        assert (found["row"]["user"], found["row"]["x"]) == (None, 7), word
        assert why(bench, "copies", word, "--missing")["why"] == "exists", word
    bench.rows("h9", [{"user": "null", "t": T0 + 5 * HOUR, "got": T0 + 5 * HOUR, "x": 8}])
    assert bench.run("land", "activity").code == 0
    assert bench.run("run", "copies").code == 0
    for word, x in (("user=", 7), ('{"user": null}', 7), ("null", 8), ("user=null", 8), ('{"user": "null"}', 8)):
        assert why(bench, "copies", word)["row"]["x"] == x, word


def test_a_row_that_another_hand_deleted_is_not_said_to_have_been_never_sent(bench: Bench) -> None:
    DeltaTable(str(bench.warehouse / "alerts/totals")).delete("user = 'ann'")
    for words in (("totals", "ann", "--missing"), ("totals", "ann")):
        answer = bench.run("why", *words)
        assert answer.code == 74, answer
        assert "[published-table-changed]" in answer.err
        assert "`rewindow republish counts`" in answer.err


def test_a_column_that_the_key_does_not_have_is_not_taken_as_a_value(template: Bench, tmp_path: Path) -> None:
    for more in ((), ("--missing",)):
        answer = template.run("why", "totals", "colour=red", *more)
        assert answer.code == 2, answer
        assert "[key-column-unknown]" in answer.err
        assert "the key of alerts.totals has no column 'colour': it is the column 'user'" in answer.err
        _, _, example = answer.err.partition("as in `rewindow ")
        assert template.run(*example.partition("`")[0].split()).code == 0
    bench = copy_of(template, tmp_path / "project")
    bench.rows("h8", [{"user": "colour=red", "t": T0 + 4 * HOUR, "got": T0 + 4 * HOUR + 1, "x": 1}])
    assert bench.run("land", "activity").code == 0
    assert why(bench, "totals", "colour=red", "--missing")["why"] == "not_taken"
    assert why(bench, "totals", "user=big=red", "--missing")["why"] == "never_landed"


def test_a_row_that_is_not_there_is_another_outcome_than_a_wrong_call(template: Bench) -> None:
    for words, said in (
        (("totals", "zoe"), "`rewindow why alerts.totals zoe --missing` says why"),
        (("totals", "ann", "--window", "2030-01-01"), "it has windows from"),
        (("totals", "null"), "no run of counts has skipped a record without a key"),
        (("totals", "ann", "--run", "main/1", "--window", "2023-11-14T23:00:00Z"), "run main/1 wrote no row"),
    ):
        answer = template.run("why", *words)
        assert answer.code == 1, answer
        assert said in answer.err, answer
    assert why(template, "totals", "zoe", "--missing")["why"] == "never_landed"


def test_only_a_command_that_shows_the_quarantine_recommends_it(template: Bench) -> None:
    assert "or rewindow.quarantine" not in template.run("why", "nothing", "ann").err
    assert "or rewindow.quarantine [name-not-found]" in template.run("head", "nothing").err
    assert template.run("head", "rewindow.quarantine").code == 0


def test_an_unknown_run_names_the_runs_or_says_that_there_is_none(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    asks = (("why", "totals", "ann", "--run", "main/9"), ("rewind", "counts", "--to", "main/9"))
    for words in asks:
        assert "The last runs of branch 'main' are main/1, main/2: choose one of them" in bench.run(*words).err
    assert bench.run("rewind", "counts", "--to", "0").code == 0
    for words in asks:
        assert "There is no run on branch 'main' any more, so there is none to name" in bench.run(*words).err
    shutil.rmtree(bench.warehouse)
    assert bench.run("land", "activity").code == 0
    for words, says in zip(asks, ("run `rewindow run counts` first", "(there is no run yet)"), strict=True):
        answer = bench.run(*words)
        assert answer.code == 2, answer
        assert "[run-unknown]" in answer.err
        assert (
            "run 'main/9' does not exist. There is no run on branch 'main' yet, so there is none to name" in answer.err
        )
        answer = bench.run(*words, "--branch", "fix")
        assert answer.code == 2, answer
        assert "branch 'fix'" in answer.err
        assert says in answer.err


def test_a_row_of_other_code_is_not_guessed(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    module = (bench.root / "bench_job.py").read_text(encoding="utf-8")
    bench.write(
        "bench_job.py",
        module.replace(
            '.map_values(lambda row: score(row), name="scores")', '.filter(lambda key, row: row.x > 90, name="scores")'
        ),
    )
    answer = bench.run("why", "totals", "ann")
    assert answer.code == 76, answer
    assert "[row-of-other-code]" in answer.err
