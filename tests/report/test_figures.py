"""The figures of a report are those that an independent count of the records gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewindow.streams.metrics import GRACE_BOUNDS_MS
from tests.bad_input.scene import Bench, copy_of
from tests.refusals import fixes
from tests.report.project import GRACE, HOURS, OUTPUTS, SIZE, count, records


def reported(bench: Bench, *words: str) -> dict[str, Any]:
    answer = bench.run("report", "counts", *words, "--json")
    assert answer.code == 0, answer.err
    found: dict[str, Any] = json.loads(answer.out)
    return found


def of_node(found: dict[str, Any], node: str) -> dict[str, Any]:
    (one,) = [one for one in found["lateness"] if one["node"] == node]
    return one


def drops(found: dict[str, Any]) -> dict[tuple[str, str], int]:
    return {(one["kind"], one["where"]): one["records"] for one in found["drops"]}


def test_late_and_skipped_records_equal_an_independent_count(project: Bench) -> None:
    found, counted = reported(project), count(range(HOURS))
    assert counted.late > 5
    assert counted.skipped > 1
    assert drops(found)["late", "sums"] == counted.late
    assert drops(found)["skipped", "sums"] == counted.skipped
    assert found["progress"]["records"] == sum(len(records(hour)) for hour in range(HOURS))
    assert [run["records"] for run in found["runs"]] == [len(records(hour)) for hour in range(HOURS)]


def test_the_grace_that_records_needed_equals_an_independent_count(project: Bench) -> None:
    one, counted = of_node(reported(project), "sums"), count(range(HOURS))
    assert (one["records"], one["late"], one["grace_ms"]) == (counted.taken, counted.late, GRACE)
    assert one["needed_ms"] == max(counted.needed)
    for bucket in one["buckets"]:
        below = max((bound for bound in GRACE_BOUNDS_MS if bound < bucket["up_to_ms"]), default=0)
        assert bucket["records"] == sum(below < needed <= bucket["up_to_ms"] for needed in counted.needed)
    assert sum(bucket["records"] for bucket in one["buckets"]) == len(counted.needed)


def test_a_thousand_runs_and_each_of_them_give_the_same_totals(project: Bench) -> None:
    whole = reported(project)
    single = [reported(project, "--run", str(number)) for number in range(1, HOURS + 1)]
    assert [one["runs"][0]["run"] for one in single] == [run["run"] for run in whole["runs"]]
    for key, total in drops(whole).items():
        assert sum(drops(one).get(key, 0) for one in single) == total
    for node in ("sums", "visits", "hops"):
        for figure in ("records", "late"):
            assert sum(of_node(one, node)[figure] for one in single) == of_node(whole, node)[figure]
        buckets = [bucket for one in single for bucket in of_node(one, node)["buckets"]]
        for bucket in of_node(whole, node)["buckets"]:
            mine = [one["records"] for one in buckets if one["up_to_ms"] == bucket["up_to_ms"]]
            assert sum(mine) == bucket["records"]
    since = reported(project, "--since", "main/4")
    assert since["progress"]["records"] == sum(one["progress"]["records"] for one in single[3:])


@pytest.mark.parametrize("hours", [2, HOURS])
def test_the_open_windows_of_a_suppress_are_those_of_an_independent_count(project: Bench, hours: int) -> None:
    found, counted = reported(project, "--run", str(hours)), count(range(hours))
    shown = [one for one in found["open_windows"]["shown"] if one["store"] == "closed"]
    wanted: dict[int, int] = {}
    for _, start in counted.open:
        wanted[start] = wanted.get(start, 0) + 1
    assert {one["window"][0]: one["keys"] for one in shown} == wanted
    assert all(one["closes_at_ms"] == one["window"][1] + GRACE == one["window"][0] + SIZE + GRACE for one in shown)


def test_the_open_windows_are_those_that_a_final_run_emits(project: Bench, tmp_path: Path) -> None:
    found = reported(project)
    bench = copy_of(project, tmp_path / "final")
    answer = bench.run("run", "counts", "--final", "--json")
    assert answer.code == 0, answer.err
    emitted = json.loads(answer.out)["targets"]
    by_output = dict.fromkeys(OUTPUTS, 0)
    store_of = {"closed": "totals", "ended": "visited", "hops": "hopped"}
    for one in found["open_windows"]["shown"]:
        by_output[store_of[one["store"]]] += one["keys"]
    assert found["open_windows"]["windows"] == len(found["open_windows"]["shown"])
    assert by_output == {topic: emitted[f"output/{topic}"] for topic in OUTPUTS}
    assert min(by_output.values()) > 0
    after = reported(bench)
    assert after["open_windows"]["results"] == 0
    assert (after["verdict"][0]["level"], after["verdict"][0]["code"]) == ("good", "headline-final")


def test_punctuations_and_clocks_are_those_of_the_metrics(project: Bench) -> None:
    found = reported(project)
    metrics = json.loads(project.run("show", "counts", "--json").out)["metrics"]
    calls = {one["reason"]: one["total"] for one in metrics if one["metric"] == "punctuate"}
    assert {one["clock"]: one["calls"] for one in found["schedules"]} == calls
    assert sum(one["stream_calls"] for one in found["clocks"]) == calls["STREAM_TIME"] > 0
    assert sum(one["wall_calls"] for one in found["clocks"]) == calls["WALL_CLOCK_TIME"] > 0
    newest = max(row["t"] for hour in range(HOURS) for row in records(hour))
    assert found["clocks"][-1]["stream_time_ms"] == newest


def test_what_waits_and_why_a_window_is_open_is_said(project: Bench, tmp_path: Path) -> None:
    bench = copy_of(project, tmp_path / "behind")
    bench.rows(f"h{HOURS}", records(HOURS))
    assert bench.run("land", "activity").code == 0
    found = reported(bench)
    assert (found["verdict"][0]["level"], found["verdict"][0]["code"]) == ("warning", "headline-behind")
    assert found["progress"]["waiting_records"] == len(records(HOURS))
    first = found["open_windows"]["shown"][0]
    assert (first["cause"], fixes(first["why"])) == ("not_replayed", ["run counts"])
    assert found["outlook"]["next_run"].startswith(f"Run main/{HOURS + 1} takes epoch {HOURS + 1} of feed")


def test_a_refused_run_is_the_headline(project: Bench, tmp_path: Path) -> None:
    bench = copy_of(project, tmp_path / "refused")
    bench.edit("bench_job.py", "row.x * 2", "row.x * 3")
    bench.rows(f"h{HOURS}", records(HOURS))
    assert bench.run("land", "activity").code == 0
    refused = bench.run("run", "counts")
    found = reported(bench)
    assert (found["verdict"][0]["level"], found["verdict"][0]["code"]) == ("bad", "headline-refused")
    said = found["outlook"]["refused"].removesuffix(f" (exit code {refused.code})")
    assert refused.err.strip() == f"rewindow: {said}\n[job-changed-since-checkpoint]"


def test_a_changed_function_a_branch_and_a_verification_are_reported(project: Bench, tmp_path: Path) -> None:
    bench = copy_of(project, tmp_path / "changed")
    bench.edit("bench_job.py", 'grace="5m"', 'grace="1h"')
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    found = reported(bench, "--branch", "fix", "--diff", "main", "--verify")
    assert found["changes"]["since"] is None
    assert found["verification"] == {"checked": ["fix/1"], "differences": []}
    compared = {one["output"]: one for one in found["diff"]["outputs"]}
    told = json.loads(bench.run("diff", "counts", "fix", "main", "--json").out)
    for output, one in told.items():
        for figure in ("equal", "different", "only_first", "only_second"):
            assert compared[output][figure] == one[figure]
    assert compared["totals"]["different"] > 0
    assert found["replaced"] is None
    assert bench.run("promote", "counts", "fix").code == 0
    after = reported(bench)["replaced"]
    assert (after["before"], after["now"]) == (f"main/1 to main/{HOURS}", "fix/1")
    assert any(line.startswith("grace of ") and line.endswith("5m -> 1h") for line in after["lines"])
    rows = {one["what"]: one for one in after["rows"]}["totals"]
    assert rows["before"] != rows["now"]
    assert any("grace of sums changed" in line for line in found["diff"]["code"])
