"""Runs on hold: what readers and commands see of them, and how they are accepted or rewound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rewindow
from rewindow.airflow.task_results import has_event, reason_of
from rewindow.contracts.exit_codes import ON_HOLD
from tests.bad_input.chain import reads_totals
from tests.bad_input.expecting import NOTHING_IS_NEW, expecting, replayed, state, table
from tests.bad_input.scene import FRESH, Bench, copy_of, hour
from tests.refusals import refused


def test_a_run_on_hold_is_committed_and_not_published(bench: Bench) -> None:
    expecting(bench, NOTHING_IS_NEW % "hold")
    before = table(bench, "alerts/totals").num_rows
    answer = replayed(bench, ON_HOLD)
    assert "staged for alerts/totals, not published" in answer.out
    assert "Run main/3 is on hold" in answer.out
    assert "`rewindow publish counts --accept --run main/3`" in answer.out
    assert table(bench, "alerts/totals").num_rows == before
    assert bench.run("run", "counts").code == ON_HOLD, "a scheduler that calls again is told again"
    assert bench.run("publish", "counts").code == ON_HOLD
    said = {
        words: bench.run(*words.split()) for words in ("plan counts", "show counts", "ls", "status", "resume counts")
    }
    assert [answer.code for answer in said.values()] == [0, 0, 0, 1, ON_HOLD]
    assert all("main/3" in answer.out and "on hold" in answer.out for answer in said.values())
    head = bench.run("head", "counts").out
    assert "Run main/3 is on hold, so its rows, and those of the runs behind it, are not in alerts.totals" in " ".join(
        head.split()
    )
    found = json.loads(bench.run("status", "--json").out)
    assert "on_hold" in json.dumps(found)
    verdict = json.loads(bench.run("report", "counts", "--json").out)["verdict"]
    assert verdict[0]["text"].startswith(
        "A run is on hold, and its rows are not published; but for them complete through 2"
    )
    assert "`rewindow publish counts --accept --run main/3`" in verdict[1]["text"]


def test_accepting_without_a_run_on_hold_says_that_nothing_was_accepted(template: Bench) -> None:
    answer = template.run("publish", "counts", "--accept")
    assert answer.code == 0, answer
    assert answer.out == (
        "No run of counts is on hold on branch main, so nothing was accepted.\n"
        "Everything that is committed on branch main of counts is published.\n"
    )
    assert "on hold" not in template.run("publish", "counts").out


def test_the_reason_that_a_task_fails_with_names_the_run_and_the_commands(template: Bench, tmp_path: Path) -> None:
    held = copy_of(template, tmp_path / "project")
    expecting(held, NOTHING_IS_NEW % "hold")
    held.rows(f"h{FRESH}", hour(FRESH))
    assert held.run("land", "activity").code == 0
    answer = held.run("run", "counts", "--json")
    assert answer.code == ON_HOLD
    reason = reason_of(json.loads(answer.out))
    assert reason.startswith("Run main/3 is on hold, so its rows are not published: ")
    assert reason.endswith(
        "Publish it: `rewindow publish counts --accept --run main/3`. Or remove it: `rewindow rewind counts --to main/2`."
    )
    assert reason_of({"error": "no such job", "exit_code": 78}) == "no such job"


def test_an_accepted_run_is_published_as_if_nothing_had_held_it(template: Bench, tmp_path: Path) -> None:
    free, held = copy_of(template, tmp_path / "a"), copy_of(template, tmp_path / "b")
    expecting(held, NOTHING_IS_NEW % "hold")
    for number in (FRESH, FRESH + 1, FRESH + 2):
        for bench in (free, held):
            bench.rows(f"h{number}", hour(number))
        replayed(free, 0)
        replayed(held, ON_HOLD)
    names = [run.spec.name for run in state(held).on_hold("main")]
    assert names == ["main/3", "main/4", "main/5"]
    refused = held.run("publish", "counts", "--accept")
    assert (refused.code, "[held-runs-several]" in refused.err) == (2, True)
    assert "3 runs are on hold" in refused.err
    codes = [held.run("publish", "counts", "--accept", "--run", name).code for name in names]
    assert codes == [ON_HOLD, ON_HOLD, 0]
    again = held.run("publish", "counts", "--accept", "--run", "main/5")
    assert again.code == 0, "it is accepted already"
    assert "Run main/5 of counts is not on hold." in again.out
    assert held.result() == free.result()
    assert held.run("verify", "counts", "main/4").code == 0
    assert held.run("republish", "counts", "--all").code == 0
    assert held.result() == free.result()


def test_what_a_run_on_hold_has_lost_is_made_again(template: Bench, tmp_path: Path) -> None:
    free, held = copy_of(template, tmp_path / "a"), copy_of(template, tmp_path / "b")
    expecting(held, NOTHING_IS_NEW % "hold")
    known = {*(held.warehouse / "alerts/totals").glob("*.parquet")}
    for number in (FRESH, FRESH + 1):
        for bench in (free, held):
            bench.rows(f"h{number}", hour(number))
        replayed(free, 0)
        replayed(held, ON_HOLD)
    for file in {*(held.warehouse / "alerts/totals").glob("*.parquet")} - known:
        file.unlink()
    shown = held.run("head", "counts", "--held")
    assert (shown.code, "Repeat its run: `rewindow republish counts`" in shown.err) == (74, True)
    accepted = held.run("publish", "counts", "--accept", "--run", "main/3")
    assert (accepted.code, "The run is accepted, and is published then" in accepted.err) == (74, True), accepted.err
    repaired = held.run("republish", "counts")
    assert (repaired.code, "Run main/4 of counts was replayed" in repaired.out) == (0, True), repaired.err
    assert held.run("head", "counts", "--held").code == 0
    assert held.run("publish", "counts", "--accept", "--run", "main/4").code == 0
    assert held.result() == free.result()


def test_a_run_on_hold_that_is_rewound_was_never_seen(bench: Bench) -> None:
    clean = bench.result()
    expecting(bench, NOTHING_IS_NEW % "hold")
    replayed(bench, ON_HOLD)
    assert bench.run("rewind", "counts", "--to", "main/2").code == 0
    assert {name: clean[name] for name in clean if name.startswith("output")} == {
        name: one for name, one in bench.result().items() if name.startswith("output")
    }
    bench.edit("conf/jobs/counts.yaml", "on_fail: hold", "on_fail: warn")
    replayed(bench, 0)


def test_a_branch_on_hold_is_neither_compared_nor_promoted(bench: Bench) -> None:
    expecting(bench, NOTHING_IS_NEW % "hold")
    answer = bench.run("backfill", "counts", "--from", "1", "--branch", "fix")
    assert answer.code == ON_HOLD, answer.err
    assert answer.out.endswith("\nThen compare: rewindow diff counts main fix\n")
    compared = bench.run("diff", "counts", "main", "fix")
    assert compared.code == ON_HOLD
    assert compared.out == (
        "Nothing to compare yet. Run fix/1 is on hold, so neither its rows nor those of later runs are published: "
        "`rewindow head counts --branch fix --held` shows its rows, "
        "`rewindow publish counts --branch fix --accept --run fix/1` publishes them.\n"
    )
    (told,) = json.loads(bench.run("diff", "counts", "main", "fix", "--json").out).values()
    assert (told["equal"], told["epochs"], [one["run"] for one in told["on_hold"]]) == (0, None, ["fix/1"])
    asked = rewindow.Project.load(bench.root).diff("counts", "fix")
    assert not asked.are_equal, "nobody knows"
    assert ([one["run"] for one in asked.on_hold], list(asked.compared.epochs), asked.code) == (["fix/1"], [], ())
    held = "Run fix/1 is on hold, so neither its rows nor those of later runs are published: "
    for words in (("counts", "--diff", "fix"), ("counts", "--branch", "fix", "--diff", "main")):
        found = json.loads(bench.run("report", *words, "--json").out)
        told = [one["text"] for one in found["verdict"] if "ompare" in one["text"]]
        shows = "`rewindow head counts --branch fix --held` shows its rows"
        publishes = "`rewindow publish counts --branch fix --accept --run fix/1` publishes them"
        assert told == [f"Nothing to compare yet. {held}{shows}, {publishes}"]
        assert [one["run"] for one in found["diff"]["on_hold"]] == ["fix/1"]
        page = bench.root / "report.html"
        assert bench.run("report", *words, "--out", str(page)).code == 0
        assert page.read_text(encoding="utf-8").count(held) == 2
        assert "separately" not in page.read_text(encoding="utf-8")
    refused = bench.run("promote", "counts", "fix")
    assert refused.code == 76
    assert "[promoted-run-on-hold]" in refused.err
    assert "`rewindow publish counts --branch fix --accept --run fix/1`" in refused.err
    assert bench.run("publish", "counts", "--branch", "fix", "--accept").code == 0
    assert bench.run("diff", "counts", "main", "fix").out.startswith("Compared epochs 1 to 2")
    (told,) = json.loads(bench.run("diff", "counts", "main", "fix", "--json").out).values()
    assert (told["epochs"], told["on_hold"]) == ([1, 2], [])
    assert rewindow.Project.load(bench.root).diff("counts", "fix").are_equal
    assert bench.run("promote", "counts", "fix").code == 0


def test_json_says_what_is_on_hold_and_what_was_accepted(bench: Bench) -> None:
    expecting(bench, NOTHING_IS_NEW % "hold", "unique: key")
    ran = json.loads(replayed(bench, ON_HOLD, "--json").out)
    assert ran["run"] == "main/3"
    assert [(one["name"], one["on_fail"], one["failed"]) for one in ran["expectations"]] == [
        ("rows", "hold", 1),
        ("unique key", "fail", 0),
    ]
    assert [(one["run"], one["before"], one["behind"]) for one in ran["on_hold"]] == [("main/3", "main/2", [])]
    assert {one["run"] for one in ran["published"]} == {"main/2"}, "what readers see is the run before"
    assert not has_event({}, ran)
    done = json.loads(bench.run("publish", "counts", "--accept", "--json").out)
    assert (done["accepted"], done["on_hold"], done["job"], done["branch"]) == ("main/3", [], "counts", "main")
    assert {one["run"] for one in done["published"]} == {"main/3"}
    assert has_event({}, done)
    again = json.loads(bench.run("publish", "counts", "--accept", "--json").out)
    assert again["accepted"] is None
    assert not has_event({}, again)


def test_why_a_row_is_missing_names_the_run_on_hold(bench: Bench) -> None:
    expecting(bench, NOTHING_IS_NEW % "hold")
    replayed(bench, ON_HOLD)
    assert "`rewindow publish counts --accept --run main/3`" in bench.run("why", "counts", "zoe", "--missing").out


def test_a_feed_of_outputs_says_that_the_run_it_waits_for_is_on_hold(bench: Bench) -> None:
    reads_totals(bench)
    for words in (("land", "totals"), ("run", "seen")):
        assert bench.run(*words).code == 0
    expecting(bench, NOTHING_IS_NEW % "hold")
    replayed(bench, ON_HOLD)
    landed = bench.run("land", "totals")
    assert (landed.code, landed.out) == (
        0,
        "Feed totals: nothing new to land: run main/3 of its job is on hold, and what follows is not published.\n",
    )
    told = bench.run("why", "seen.seen", "zoe", "--missing").out
    assert "- Run main/3 of counts, whose output the feed lands, is on hold, so its rows are not landed: " in told


def test_python_gives_the_results(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(bench.root))
    expecting(bench, NOTHING_IS_NEW % "hold")
    project = rewindow.Project.load(bench.root)
    run = project.run("counts", land=True)
    assert (run.name, run.is_published, [one.is_met for one in run.expectations]) == ("main/3", False, [False])
    assert [one.is_published for one in project.runs("counts")] == [True, True, False]
    assert "not published" in run._repr_html_()
    with refused("run-not-published", run="main/3"):
        run.output().to_arrow()
    names = set(project.output("counts").to_arrow()["_run"].to_pylist())
    assert names <= {"main/1", "main/2"}
    done = project.publish("counts", accept=True)
    assert done["accepted"] == "main/3"
    assert "Accepted run main/3" in repr(done)
    assert "main/3" in run.output().to_arrow()["_run"].to_pylist()
    assert [one.is_published for one in project.runs("counts")] == [True, True, True]


def shown(bench: Bench, *words: str) -> dict[str, Any]:
    """Return the only table that `head` shows."""
    answer = bench.run("head", *words, "-n", "1000", "--json")
    assert answer.code == 0, answer
    (one,) = json.loads(answer.out)["tables"]
    found: dict[str, Any] = one
    return found


def test_the_rows_of_a_run_on_hold_are_those_that_publishing_adds(bench: Bench) -> None:
    expecting(bench, NOTHING_IS_NEW % "hold")
    before = shown(bench, "counts")
    replayed(bench, ON_HOLD)
    held = shown(bench, "counts", "--held")
    assert (held["table"], held["hold"]["run"], held["count"]) == ("alerts.totals", "main/3", len(held["rows"]))
    assert shown(bench, "alerts.totals", "--held", "--last") == held
    first, last = (
        json.loads(bench.run("head", "counts", "--held", "-n", "2", *way, "--json").out) for way in ((), ("--last",))
    )
    assert (first["tables"][0]["rows"], last["tables"][0]["rows"]) == (held["rows"][:2], held["rows"][-2:])
    told = bench.run("head", "counts", "--held", "-n", "2").out
    assert "Run main/3 is on hold, so its rows are not published:" in told
    assert "Publish it: `rewindow publish counts --accept --run main/3`." in told
    assert f"alerts.totals: first 2 of {held['count']} rows, not published" in told
    assert "`rewindow head counts --held` shows its rows" in " ".join(bench.run("head", "counts").out.split())
    assert bench.run("publish", "counts", "--accept").code == 0
    added = [row for row in shown(bench, "counts")["rows"] if row["_run"] == "main/3"]
    assert added == held["rows"]
    assert shown(bench, "counts")["count"] == before["count"] + held["count"]


def test_the_rows_of_a_branch_on_hold_are_shown_before_those_behind_it(bench: Bench) -> None:
    expecting(bench, NOTHING_IS_NEW % "hold")
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == ON_HOLD
    assert bench.run("land", "activity").code == 0
    assert bench.run("run", "counts", "--branch", "fix").code == ON_HOLD
    held = shown(bench, "counts", "--held", "--branch", "fix")
    assert {row["_run"] for row in held["rows"]} == {"fix/1"}
    assert "Behind it, and not published either: fix/2" in bench.run("head", "counts", "--held", "--branch", "fix").out


def test_without_a_run_on_hold_its_rows_cannot_be_shown(bench: Bench) -> None:
    for words, code, says in (
        (
            ("counts", "--branch", "fix"),
            1,
            "no run of counts is on hold on branch fix: `rewindow head counts --branch fix` shows",
        ),
        (("counts",), 1, "no run of counts is on hold on branch main: `rewindow head counts` shows what is published"),
        (("rewindow.quarantine",), 2, "--held shows rows of a job's outputs"),
        (("counts", "--of", "counts"), 2, "omit --of"),
        (("cuonts",), 2, "'cuonts' is neither a job"),
    ):
        answer = bench.run("head", *words, "--held")
        assert answer.code == code, answer
        assert says in answer.err
