"""What a page says first, and that it says nothing that its figures do not show."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from rewindow.app.open_project import OpenProject
from rewindow.app.report import Wanted
from rewindow.app.report import report as collect
from rewindow.report.figures import STEPS
from rewindow.report.page import page
from tests.bad_input.scene import Bench, copy_of
from tests.refusals import told
from tests.report.project import HOURS, records


def reported(bench: Bench, *words: str) -> dict[str, Any]:
    answer = bench.run("report", "counts", *words, "--json")
    assert answer.code == 0, answer.err
    found: dict[str, Any] = json.loads(answer.out)
    return found


def said(found: dict[str, Any]) -> Sequence[str]:
    return [one["text"] for one in found["verdict"]]


def test_the_steps_of_the_last_runs_are_told_apart(project: Bench) -> None:
    found = reported(project)
    steps = {one["step"]: one for one in found["cost"]["steps"]}
    assert tuple(steps) == STEPS
    assert {one["runs"] for one in steps.values()} == {HOURS}
    parts = sum(steps[step]["seconds"] for step in STEPS if step != "publish")
    assert abs(parts - found["cost"]["seconds"]) < 1e-6
    assert all(one["seconds"] >= one["median_seconds"] >= 0 for one in steps.values())


def test_steps_of_which_delta_keeps_no_commit_are_left_out(project: Bench, tmp_path: Path) -> None:
    bench = copy_of(project, tmp_path / "cleaned")
    metrics = bench.warehouse / "rewindow/metrics"
    DeltaTable(str(metrics)).create_checkpoint()
    for commit in sorted((metrics / "_delta_log").glob("0*.json"))[:-2]:
        commit.unlink()
    steps = {one["step"]: one["runs"] for one in reported(bench)["cost"]["steps"]}
    assert steps == {"execute": 2, "stage": 2, "audit and commit": HOURS, "publish": 2}


def test_a_comparison_is_part_of_the_verdict(project: Bench, tmp_path: Path) -> None:
    bench = copy_of(project, tmp_path / "compared")
    assert bench.run("backfill", "counts", "--from", "3", "--branch", "same").code == 0
    (line,) = [one for one in reported(bench, "--diff", "same")["verdict"] if one["code"] == "verdict-branch-equal"]
    assert "epochs 3 to 5" in line["text"]
    bench.edit("bench_job.py", 'grace="5m"', 'grace="1h"')
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    found = reported(bench, "--diff", "fix")
    (line,) = [one for one in said(found) if one.startswith("Differs from branch fix in epochs 1 to 5: ")]
    for one in found["diff"]["outputs"]:
        keys = one["different"] + one["only_first"] + one["only_second"]
        assert (f"{one['output']} in {keys:,} key" in line) is bool(keys)


def test_drops_of_several_nodes_are_no_share_of_the_records(project: Bench) -> None:
    found = reported(project)
    taken = sum(len(records(hour)) for hour in range(HOURS))
    for one in found["drops"]:
        if one["kind"] == "late" and one["where"] == "hops":
            assert one["share"] is None  # an hour has four windows, for each of which a record may be late
        else:
            assert one["share"] == one["records"] / taken
    (line,) = [one for one in said(found) if one.startswith("Dropped: ")]
    skipped = [one for one in found["drops"] if one["kind"] == "skipped"]
    assert f"{sum(one['records'] for one in skipped)} skipped in 3 nodes, at most {skipped[0]['records']} in " in line


def test_a_run_that_others_follow_has_no_landings_behind_that_they_took(project: Bench) -> None:
    found = reported(project, "--run", "2")
    assert found["progress"]["waiting_landings"] == 0
    assert {one["cause"] for one in found["open_windows"]["shown"]} == {"later_runs"}


def test_the_timeline_of_one_run_covers_its_simulated_time(project: Bench) -> None:
    (clock,) = reported(project, "--run", "1")["clocks"]
    first = min(row["t"] for row in records(0))
    assert 0 < clock["simulated_ms"] <= clock["stream_time_ms"] - first
    text = page(collect(OpenProject.open(project.root), "counts", Wanted("main", run="1")))
    assert f"stream time: {clock['stream_calls']} calls</text>" in text


def test_runs_that_were_not_read_are_not_said_to_have_dropped_nothing(project: Bench) -> None:
    from rewindow.control.health.job_health import JobHealth
    from rewindow.report.gather_report import verdict

    found = collect(OpenProject.open(project.root), "counts", Wanted("main"))
    health = JobHealth(range(0), 0, None, held=(), slowest=(), stalled=(), on_hold=(), lagging={}, is_sealed=False)
    long = dataclasses.replace(
        found, progress=dataclasses.replace(found.progress, runs=8_760), drops=[], detailed_runs=400
    )
    lines = verdict(long, health, is_newest=True)
    told([one.text for one in lines], "verdict-nothing-dropped", where=" in the last 400 runs")
    not_read = dataclasses.replace(found.open_windows, shown=[], windows=0, not_read=["closed"])
    section = page(dataclasses.replace(found, open_windows=not_read)).partition('<section id="windows"')[2]
    assert "closed" in section.partition("</section>")[0]
    assert "<table" not in section.partition("</section>")[0]
