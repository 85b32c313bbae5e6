"""A topology that changed is refused by `run` and `plan` at once, not only when new data has landed."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.bad_input.scene import Bench

WINDOW = 'TimeWindows.of("30m", grace="5m")'


@pytest.mark.parametrize("words", ["run counts", "plan counts", "run counts --through 1", "plan counts --through 2"])
def test_without_new_data_a_changed_topology_is_refused(bench: Bench, words: str) -> None:
    assert bench.run(*words.split()).code == 0
    bench.edit("bench_job.py", WINDOW, WINDOW.replace("30m", "60m"))
    refused = bench.run(*words.split())
    assert refused.code == 76
    assert "[job-changed-since-checkpoint]" in refused.err
    assert "job 'counts' has changed since the checkpoint of run main/2" in refused.err
    bench.edit("bench_job.py", WINDOW.replace("30m", "60m"), WINDOW)
    assert bench.run(*words.split()).code == 0


def test_a_change_that_the_job_accepts_is_planned_and_shown(bench: Bench) -> None:
    bench.edit("bench_job.py", "row.x * 2", "row.x * 3")
    shown = bench.run("plan", "counts")
    assert (shown.code, "Its next run accepts that:" in shown.out) == (0, True)
    assert "score" in json.dumps(json.loads(bench.run("plan", "counts", "--json").out)["changed"])


def test_a_change_that_only_the_call_accepts_is_refused_by_the_next_run(bench: Bench) -> None:
    assert bench.run("run", "counts").code == 0
    job = bench.root / "conf/jobs/counts.yaml"
    job.write_text(job.read_text() + "semantics: {stream_time_from: watermark}\n")
    assert bench.run("run", "counts").code == 76
    shown = bench.run("run", "counts", "--accept-changes")
    assert shown.code == 0, shown
    said = "Its next run accepts that only with `--accept-changes`, because nothing was run that accepts it:"
    assert said in " ".join(shown.out.split())
    assert bench.run("run", "counts").code == 76


def test_a_change_that_the_job_accepts_needs_no_option_although_the_call_had_it(bench: Bench) -> None:
    assert bench.run("run", "counts").code == 0
    bench.edit("bench_job.py", "row.x * 2", "row.x * 3")
    shown = bench.run("run", "counts", "--accept-changes")
    assert (shown.code, "Its next run accepts that:" in " ".join(shown.out.split())) == (0, True), shown
    assert bench.run("run", "counts").code == 0


@pytest.mark.parametrize("bound", ["", "--through 1", "--through 2099-01-01", "--final"])
def test_plan_ends_with_the_code_with_which_run_would_refuse(bench: Bench, bound: str) -> None:
    for file in (bench.warehouse / "alerts/totals").glob("*.parquet"):
        file.unlink()
    asked = [bench.run(command, "counts", *bound.split()) for command in ("plan", "run")]
    assert [answer.code for answer in asked] == [74, 74]
    assert asked[0].err == asked[1].err
    assert "[published-table-changed]" in asked[0].err
    assert "rewindow republish counts" in asked[0].err


def test_plan_and_run_refuse_other_landings_alike(bench: Bench) -> None:
    """The feed was landed anew: what the branch replayed may be outdated, whatever time bounds the request."""
    bench.edit("conf/feeds/activity.yaml", "partitions: 2", "partitions: 3")
    assert bench.run("land", "activity", "--new-generation").code == 0
    for bound in ((), ("--through", "2099-01-01"), ("--through", "1999-01-01")):
        codes = [bench.run(command, "counts", *bound).code for command in ("plan", "run")]
        assert codes == [66, 66], bound


def test_plan_and_run_refuse_tables_that_the_run_may_not_write_alike(bench: Bench) -> None:
    """The ledgers are deleted; then the table belongs to another job."""
    for folder in ("rewindow", "logs", "state"):
        shutil.rmtree(bench.warehouse / folder)
    assert bench.run("land", "activity").code == 0
    asked = [bench.run(command, "counts") for command in ("plan", "run")]
    assert [answer.code for answer in asked] == [76, 76]
    assert "[table-rows-of-no-ledger]" in asked[0].err
    assert "'counts'" in asked[0].err
    assert asked[0].err == asked[1].err

    bench.write("conf/jobs/others.yaml", (bench.root / "conf/jobs/counts.yaml").read_text().replace("counts", "others"))
    asked = [bench.run(command, "others") for command in ("plan", "run")]
    assert [answer.code for answer in asked] == [78, 78]
    assert asked[0].err == asked[1].err


def test_planning_changes_nothing(bench: Bench) -> None:
    assert bench.run("land", "activity").code == 0
    before = bench.files()
    assert bench.run("plan", "counts", "--branch", "trial").code == 0
    assert bench.run("plan", "counts").code == 0
    assert bench.files() == before


def test_what_a_failed_attempt_accepted_is_not_accepted_of_a_second_edit(bench: Bench) -> None:
    bench.edit("conf/jobs/counts.yaml", "on_code_change: accept\n", "")
    assert bench.run("land", "activity").code == 0
    bench.code("def score(row):\n    return 1 / 0\n")
    assert bench.run("run", "counts", "--accept-changes").code == 65
    assert bench.run("run", "counts").code == 65  # the same code: this goes on with the plan that accepted it
    bench.code("def score(row):\n    return 1\n")
    refused = bench.run("run", "counts")
    assert refused.code == 76, refused
    assert "--accept-changes" in refused.err
    assert bench.run("run", "counts", "--accept-changes").code == 0
