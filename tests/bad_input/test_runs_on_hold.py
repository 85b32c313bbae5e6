"""Runs on hold: what readers and commands see of them, and how they are accepted or rewound."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import rewindow
from rewindow.airflow.task_results import has_event, reason_of
from rewindow.contracts.exit_codes import ON_HOLD
from tests.bad_input.chain import reads_totals
from tests.bad_input.expecting import NOTHING_IS_NEW, expecting, replayed, state
from tests.bad_input.scene import FRESH, Bench, copy_of, hour
from tests.refusals import refused, told


@pytest.fixture(scope="module")
def held_template(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A project whose third run is on hold."""
    bench = copy_of(template, tmp_path_factory.mktemp("held") / "project")
    expecting(bench, NOTHING_IS_NEW % "hold")
    replayed(bench, ON_HOLD)
    return bench


@pytest.fixture
def held(held_template: Bench, tmp_path: Path) -> Bench:
    return copy_of(held_template, tmp_path / "held")


def shown(bench: Bench, words: str) -> dict[str, Any]:
    """Return the only table that `head` shows."""
    (table,) = bench.json(f"head {words} -n 1000")["tables"]
    return dict(table)


def test_a_run_on_hold_is_committed_and_not_published(template: Bench, held: Bench) -> None:
    assert shown(held, "counts")["count"] == shown(template, "counts")["count"]
    for line in ("run counts", "publish counts", "resume counts"):  # a scheduler that calls again is told again
        assert held.run(*line.split()).code == ON_HOLD
    told((finding.message for finding in held.findings("counts")), "run-on-hold", run="main/3", more="")
    for line in ("plan counts", "show counts", "ls", "head counts"):
        assert "main/3" in held.done(line).out
    verdict = held.json("report counts")["verdict"]
    assert [one["code"] for one in verdict[:2]] == ["headline-on-hold", "verdict-runs-on-hold"]


def test_the_reason_that_a_task_fails_with_names_the_run_and_the_commands(held: Bench) -> None:
    answer = held.run("run", "counts", "--json")
    assert answer.code == ON_HOLD
    reason = reason_of(answer.values)
    assert re.findall(r"`rewindow (\w+) ([^`]*)`", reason) == [
        ("publish", "counts --accept --run main/3"),
        ("rewind", "counts --to main/2"),
    ]
    assert reason_of({"error": "no such job", "exit_code": 78}) == "no such job"


def twins(template: Bench, held: Bench, folder: Path, hours: int) -> Bench:
    """Replay some more hours with and without expectations. Return the project without."""
    free = copy_of(template, folder / "free")
    free.done("land activity", "run counts")
    for number in range(FRESH + 1, FRESH + 1 + hours):
        for bench in (free, held):
            bench.rows(f"h{number}", hour(number))
        replayed(free, 0)
        replayed(held, ON_HOLD)
    return free


def test_an_accepted_run_is_published_as_if_nothing_had_held_it(template: Bench, held: Bench, tmp_path: Path) -> None:
    free = twins(template, held, tmp_path, 1)
    names = [run.spec.name for run in state(held).on_hold("main")]
    assert names == ["main/3", "main/4"]
    held.refuses("publish counts --accept", "held-runs-several", count=2)
    codes = [held.run(*f"publish counts --accept --run {name}".split()).code for name in names]
    assert codes == [ON_HOLD, 0]
    assert held.json("publish counts --accept --run main/4")["accepted"] is None, "it is accepted already"
    assert held.result() == free.result()
    held.done("verify counts main/4", "republish counts --all")
    assert held.result() == free.result()


def test_what_a_run_on_hold_has_lost_is_made_again(template: Bench, held: Bench, tmp_path: Path) -> None:
    free = twins(template, held, tmp_path, 0)
    published = {Path(uri).name for uri in DeltaTable(held.warehouse / "alerts/totals").file_uris()}
    for file in (held.warehouse / "alerts/totals").glob("*.parquet"):
        if file.name not in published:
            file.unlink()
    held.refuses("head counts --held", "held-rows-unreadable", run="main/3")
    assert held.run(*["publish", "counts", "--accept", "--run", "main/3"]).code == 74, (
        "it is accepted, and published later"
    )
    held.done("republish counts")
    assert held.result() == free.result()


def test_a_branch_on_hold_is_neither_compared_nor_promoted(bench: Bench) -> None:
    expecting(bench, NOTHING_IS_NEW % "hold")
    assert bench.run(*["backfill", "counts", "--from", "1", "--branch", "fix"]).code == ON_HOLD
    compared = bench.run(*["diff", "counts", "main", "fix", "--json"])
    (of_totals,) = compared.values.values()
    assert (compared.code, of_totals["epochs"]) == (ON_HOLD, None)
    assert [one["run"] for one in of_totals["on_hold"]] == ["fix/1"]
    difference = rewindow.Project.load(bench.root).diff("counts", "fix")
    assert not difference.are_equal, "nobody knows"
    assert ([one["run"] for one in difference.on_hold], list(difference.compared.epochs)) == (["fix/1"], [])
    for words in ("counts --diff fix", "counts --branch fix --diff main"):
        found = bench.json(f"report {words}")
        assert "verdict-branch-on-hold" in [sentence["code"] for sentence in found["verdict"]]
        assert [one["run"] for one in found["diff"]["on_hold"]] == ["fix/1"]
    page = bench.root / "report.html"
    bench.done(f"report counts --diff fix --out {page}")
    assert "Run fix/1 is on hold" in page.read_text(encoding="utf-8")
    assert "separately" not in page.read_text(encoding="utf-8")
    bench.refuses("promote counts fix", "promoted-run-on-hold", run="fix/1")
    held_rows = shown(bench, "counts --held --branch fix")["rows"]
    assert {row["_run"] for row in held_rows} == {"fix/1"}
    bench.done("publish counts --branch fix --accept")
    (of_totals,) = bench.json("diff counts main fix").values()
    assert (of_totals["epochs"], of_totals["on_hold"]) == ([1, 2], [])
    bench.done("promote counts fix")


def test_json_says_what_is_on_hold_and_what_was_accepted(bench: Bench) -> None:
    expecting(bench, NOTHING_IS_NEW % "hold", "unique: key")
    ran = replayed(bench, ON_HOLD, "--json").values
    assert ran["run"] == "main/3"
    assert [(one["name"], one["on_fail"], one["failed"]) for one in ran["expectations"]] == [
        ("rows", "hold", 1),
        ("unique key", "fail", 0),
    ]
    assert [(one["run"], one["before"], one["behind"]) for one in ran["on_hold"]] == [("main/3", "main/2", [])]
    assert {one["run"] for one in ran["published"]} == {"main/2"}, "what readers see is the run before"
    assert not has_event({}, ran)
    done = bench.json("publish counts --accept")
    assert (done["accepted"], done["on_hold"], done["job"], done["branch"]) == ("main/3", [], "counts", "main")
    assert {one["run"] for one in done["published"]} == {"main/3"}
    assert has_event({}, done)
    assert not has_event({}, bench.json("publish counts --accept"))


def test_why_a_row_is_missing_names_the_run_on_hold(held_template: Bench) -> None:
    accept = "rewindow publish counts --accept --run main/3"
    told(held_template.why("counts zoe"), "rows-on-hold", run="main/3", accept=accept)


def test_a_feed_of_outputs_says_that_the_run_it_waits_for_is_on_hold(bench: Bench) -> None:
    reads_totals(bench)
    bench.done("land totals", "run seen")
    expecting(bench, NOTHING_IS_NEW % "hold")
    replayed(bench, ON_HOLD)
    landed = bench.said("land totals")
    assert not landed["landings"]
    told([landed["waiting"]], "source-run-on-hold", run="main/3")
    told(bench.why("seen.seen zoe"), "source-rows-on-hold", run="main/3", job="counts")


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
    assert set(project.output("counts").to_arrow()["_run"].to_pylist()) <= {"main/1", "main/2"}
    assert project.publish("counts", accept=True)["accepted"] == "main/3"
    assert "main/3" in run.output().to_arrow()["_run"].to_pylist()
    assert [one.is_published for one in project.runs("counts")] == [True, True, True]


def test_the_rows_of_a_run_on_hold_are_those_that_publishing_adds(held: Bench) -> None:
    before, rows = shown(held, "counts"), shown(held, "counts --held")
    assert (rows["table"], rows["hold"]["run"], rows["count"]) == ("alerts.totals", "main/3", len(rows["rows"]))
    assert shown(held, "alerts.totals --held --last") == rows
    (first,) = held.json("head counts --held -n 2")["tables"]
    assert first["rows"] == rows["rows"][:2]
    held.done("publish counts --accept")
    after = shown(held, "counts")
    assert [row for row in after["rows"] if row["_run"] == "main/3"] == rows["rows"]
    assert after["count"] == before["count"] + rows["count"]
