"""The report names runs on hold first, then what was published although it did not meet an expectation."""

from __future__ import annotations

import json
from pathlib import Path

from rewindow.report.page import page
from rewindow.report.report_facts import Level
from tests.bad_input.scene import Bench, copy_of, hour
from tests.report.project import HOURS


def expecting(project: Bench, root: Path, *items: str) -> Bench:
    bench = copy_of(project, root / "project")
    listed = "".join(f"      - {item}\n" for item in items)
    bench.edit(
        "conf/jobs/counts.yaml",
        "  totals: {table: alerts.totals}\n",
        f"  totals:\n    table: alerts.totals\n    expect:\n{listed}",
    )
    bench.rows("new", hour(HOURS))
    assert bench.run("land", "activity").code == 0
    return bench


def reported(bench: Bench) -> dict[str, object]:
    answer = bench.run("report", "counts", "--json")
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


def test_a_run_on_hold_is_the_headline_until_it_is_accepted(project: Bench, tmp_path: Path) -> None:
    bench = expecting(project, tmp_path, '{name: "<b>none</b>", rows: {max: 0}, on_fail: hold}', "unique: key")
    assert bench.run("run", "counts").code == 79
    held = reported(bench)
    headline, first, *_ = held["verdict"]
    assert headline["level"] == Level.WARNING
    assert (headline["code"], first["code"]) == ("headline-on-hold", "verdict-runs-on-hold")
    assert [one["became"] for one in held["expectations"]] == ["on hold", "met"]
    text = (bench.run("report", "counts", "--out", str(tmp_path / "held.html")), (tmp_path / "held.html").read_text())[
        1
    ]
    assert '<section id="expectations"' in text
    assert "&lt;b&gt;none&lt;/b&gt;" in text
    assert "<b>none" not in text
    assert bench.run("publish", "counts", "--accept").code == 0
    accepted = reported(bench)
    assert accepted["verdict"][0]["code"] != "headline-on-hold"
    assert accepted["verdict"][1]["code"] == "verdict-expectations-not-met"
    assert [one["became"] for one in accepted["expectations"]] == ["accepted", "met"]


def test_what_is_met_is_said_in_one_sentence(project: Bench, tmp_path: Path) -> None:
    bench = expecting(project, tmp_path, "unique: key", "late: 100%")
    assert bench.run("run", "counts").code == 0
    assert "verdict-expectations-met" in [one["code"] for one in reported(bench)["verdict"]]


def test_without_expectations_there_is_no_section(project: Bench) -> None:
    from rewindow.app.open_project import OpenProject
    from rewindow.app.report import Wanted
    from rewindow.app.report import report as collect

    assert 'id="expectations"' not in page(collect(OpenProject.open(project.root), "counts", Wanted("main")))
