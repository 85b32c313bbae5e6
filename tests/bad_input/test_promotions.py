"""A promotion that takes rows away says so, and so does what comes before and after it."""

from __future__ import annotations

import json

import pytest

from rewindow import Project
from tests.bad_input.chain import reads_totals
from tests.bad_input.scene import JOB, MODULE, SCORE, Bench, hour
from tests.refusals import refused


def test_a_promotion_that_takes_rows_away_says_how_many_and_how_it_is_undone(bench: Bench) -> None:
    (before,) = json.loads(bench.run("head", "counts", "--json").out)["tables"]
    bench.write("bench_job.py", MODULE.format(score=SCORE).replace('grace="5m"', 'grace="3d"'))
    branch = bench.run("backfill", "counts", "--from", "1", "--branch", "patient")
    assert "totals got no rows from its 24 records" in branch.out
    assert "`rewindow run counts --branch patient --final` closes all, and seals the branch" in branch.out
    promoted = bench.run("promote", "counts", "patient")
    assert promoted.code == 0, promoted
    assert f"totals: {before['count']} rows fewer than before, 0 in place of {before['count']}." in promoted.out
    back = bench.run("rewind", "counts", "--to", "main/2")
    assert back.code == 2
    assert "[run-not-on-branch]" in back.err
    bench.code(SCORE)
    for words in (("backfill", "counts", "--from", "1", "--branch", "undo"), ("promote", "counts", "undo", "--json")):
        answer = bench.run(*words)
        assert answer.code == 0, answer
    assert json.loads(answer.out)["fewer"] == {}
    (after,) = json.loads(bench.run("head", "counts", "--json").out)["tables"]
    assert [{**row, "_run": ""} for row in after["rows"]] == [{**row, "_run": ""} for row in before["rows"]]


def test_a_promotion_says_how_many_landings_wait_for_the_next_run(bench: Bench) -> None:
    def promoted(branch: str, *words: str) -> str:
        assert bench.run("backfill", "counts", "--from", "1", "--branch", branch).code == 0
        answer = bench.run("promote", "counts", branch, *words)
        assert answer.code == 0, answer
        return answer.out

    assert "wait" not in promoted("all")
    assert bench.run("land", "activity").code == 0
    assert json.loads(promoted("some", "--json"))["waiting"] == 1
    said = "1 landing waits, and its rows are not in main before the next run: `rewindow run counts`."
    assert said in promoted("more")
    bench.rows("h3", hour(3))
    assert bench.run("land", "activity").code == 0
    assert "2 landings wait, and their rows are not in main" in promoted("most")


def test_a_promotion_says_that_the_present_code_is_not_that_of_the_branch(bench: Bench) -> None:
    fixed = MODULE.format(score=SCORE).replace('grace="5m"', 'grace="6m"')
    bench.write("bench_job.py", fixed)
    for branch in ("same", "other"):
        assert bench.run("backfill", "counts", "--from", "1", "--branch", branch).code == 0
    assert "present code" not in bench.run("promote", "counts", "same").out
    bench.code(SCORE)
    promoted = bench.run("promote", "counts", "other")
    assert promoted.code == 0, promoted
    assert "The present code is not that of other/1: " in promoted.out
    assert "grace of closed" in promoted.out
    assert "which is refused (76) otherwise" in promoted.out
    assert bench.run("run", "counts").code == 76
    bench.write("bench_job.py", fixed)
    assert bench.run("run", "counts").code == 0


def test_a_run_says_that_its_branch_is_new_and_a_question_about_an_unknown_branch_names_the_known_ones(
    bench: Bench,
) -> None:
    said = "Branch fux is new, and starts with the first landing. `rewindow branch drop counts fux` removes it."
    assert said in bench.run("run", "counts", "--branch", "fux").out
    assert "is new" not in bench.run("run", "counts", "--branch", "fux").out
    for more in ((), ("--missing",)):
        asked = bench.run("why", "counts", "u1", "--branch", "fox", *more)
        assert asked.code == 2
        assert "[branch-not-run-yet]" in asked.err
        assert "'fox' yet (branches with runs: fux, main)" in asked.err


def test_the_table_of_another_job_is_refused_before_a_backfill_or_promotion_and_survives_a_reset(bench: Bench) -> None:
    bench.write("conf/jobs/sums.yaml", JOB.replace("job: counts", "job: sums").replace("alerts.totals", "sums.totals"))
    assert bench.run("run", "sums").code == 0
    before = json.loads(bench.run("head", "sums", "-n", "1000", "--json").out)
    bench.edit("conf/jobs/counts.yaml", "alerts.totals", "sums.totals")
    for words in (("backfill", "counts", "--from", "1", "--branch", "moved"), ("run", "counts")):
        answer = bench.run(*words)
        assert answer.code in (76, 78), answer
    assert "moved" not in bench.run("branch", "list", "counts").out
    bench.edit("conf/jobs/counts.yaml", "sums.totals", "alerts.totals")
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "moved").code == 0
    bench.edit("conf/jobs/counts.yaml", "alerts.totals", "sums.totals")
    answer = bench.run("promote", "counts", "moved")
    assert answer.code == 78, answer
    assert "[table-of-another-job]" in answer.err
    assert "is written by the job 'sums': name another table for 'counts'" in answer.err
    bench.edit("conf/jobs/counts.yaml", "sums.totals", "alerts.totals")
    assert bench.run("promote", "counts", "moved").code == 0
    assert bench.run("reset", "counts", "--yes").code == 0
    assert json.loads(bench.run("head", "sums", "-n", "1000", "--json").out) == before


def test_a_ledger_that_names_the_table_of_another_job_changes_no_row_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("conf/jobs/sums.yaml", JOB.replace("job: counts", "job: sums").replace("alerts.totals", "sums.totals"))
    assert bench.run("run", "sums").code == 0
    before = json.loads(bench.run("head", "sums", "-n", "1000", "--json").out)
    files = set((bench.warehouse / "sums" / "totals").rglob("*.parquet"))
    monkeypatch.setattr("rewindow.app.branches.JobBranches._check_owners", lambda *_: None)  # as an earlier version
    bench.edit("conf/jobs/counts.yaml", "alerts.totals", "sums.totals")
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "moved").code == 0
    answer = bench.run("promote", "counts", "moved")
    assert answer.code == 78, answer
    assert "[table-of-another-job]" in answer.err
    assert "is written by the job 'sums'" in answer.err
    bench.edit("conf/jobs/counts.yaml", "sums.totals", "alerts.totals")
    for words in (("gc", "counts", "--keep", "0d"), ("republish", "counts", "--all"), ("reset", "counts", "--yes")):
        bench.run(*words)
        assert json.loads(bench.run("head", "sums", "-n", "1000", "--json").out) == before, words
    assert set((bench.warehouse / "sums" / "totals").rglob("*.parquet")) == files
    assert bench.run("run", "counts").code == 0


def test_a_dropped_branch_whose_rows_were_deleted_is_not_read_as_one_without_rows(bench: Bench) -> None:
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "tried").code == 0
    assert bench.run("branch", "drop", "counts", "tried").code == 0
    assert json.loads(bench.run("head", "counts", "--branch", "tried", "--json").out)["tables"][0]["count"]
    assert bench.run("gc", "counts", "--keep", "0s").code == 0
    for words in (("head", "counts"), ("diff", "counts", "main", "tried"), ("republish", "counts")):
        answer = bench.run(*words, *(() if words[0] == "diff" else ("--branch", "tried")))
        assert answer.code == 2, answer
        assert "[branch-dropped]" in answer.err
        assert "'tried'" in answer.err
    with refused("branch-dropped"):
        Project.load(bench.root).output("totals", branch="tried").to_arrow()


def test_a_reset_names_what_has_landed_and_replayed_the_rows_that_are_gone(bench: Bench) -> None:
    reads_totals(bench)
    for words in (("land", "totals"), ("run", "seen")):
        answer = bench.run(*words)
        assert answer.code == 0, answer
    begun = bench.run("reset", "counts", "--yes")
    assert (
        "Feed totals reads this job's output, and it holds rows of runs that are gone. Run this job, and land them again: "
        "`rewindow land totals --new-generation`. Then the job seen has to replay them, as the next `rewindow run` says."
    ) in begun.out, begun
    assert bench.run("run", "counts").code == 0
    again = json.loads(bench.run("reset", "counts", "--yes", "--json").out)
    assert again["outdated"] == [{"feed": "totals", "keep": 0, "jobs": ["seen"]}]
    assert "reads this job" not in bench.run("reset", "seen", "--yes").out


def test_a_rewind_names_what_has_landed_and_replayed_the_rows_that_are_gone(bench: Bench) -> None:
    reads_totals(bench)
    assert "reads this job" not in bench.run("rewind", "counts", "--to", "main/2").out
    bench.rows("h3", hour(3))
    for words in (("run", "counts", "--land"), ("land", "totals"), ("run", "seen")):
        answer = bench.run(*words)
        assert answer.code == 0, answer
    back = bench.run("rewind", "counts", "--to", "main/1")
    assert (
        "Feed totals reads this job's output, and its landings after 1 hold rows of runs that are gone. Land them again: "
        "`rewindow land totals --new-generation --keep 1`. Then the job seen has to replay them, as the next `rewindow run` says."
    ) in back.out, back
    again = json.loads(bench.run("rewind", "counts", "--to", "main/1", "--json").out)
    assert again["outdated"] == [{"feed": "totals", "keep": 1, "jobs": ["seen"]}]
    for words in (("land", "totals"), ("status",)):
        answer = bench.run(*words)
        assert "With `--keep 1`, landings up to 1 stay as they are" in answer.out + answer.err, answer
    told = bench.run("status").out
    assert "feed totals: the job seen has replayed rows of runs that counts no longer has" in " ".join(told.split()), (
        told
    )
    nothing = bench.run("run", "seen")
    assert (nothing.code, nothing.out.startswith("Nothing to run: ")) == (0, True), nothing
    assert "no longer has: `rewindow land totals` says how to land them again.\n" in nothing.out
    landed = bench.run("land", "totals", "--new-generation", "--keep", "1")
    assert "Feed totals: generation 2 keeps landings 1 to 1, and nothing is new to land.\n" in landed.out, landed
    assert bench.run("run", "seen").code == 66
    for words in (("run", "counts"), ("land", "totals")):
        answer = bench.run(*words)
        assert answer.code == 0, answer
    assert bench.run("run", "seen").code == 66
    for words in (("rewind", "seen", "--to", "0"), ("run", "seen")):
        answer = bench.run(*words)
        assert answer.code == 0, answer
    assert "reads this job" not in bench.run("rewind", "counts", "--to", "main/4").out
    last = bench.run("rewind", "counts", "--to", "0").out
    assert (
        "and it holds rows of runs that are gone. Run this job, and land them again: `rewindow land totals --new-g"
        in last
    )


def test_a_job_that_has_replayed_rows_of_replaced_runs_is_not_well(bench: Bench) -> None:
    reads_totals(bench)
    for words in (("land", "totals"), ("run", "seen")):
        assert bench.run(*words).code == 0
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    assert [bench.run("status", name).code for name in ("seen", "idle")] == [0, 0]
    assert bench.run("promote", "counts", "fix").code == 0
    answer = bench.run("status", "seen")
    said = "this job has replayed rows of runs that counts no longer has, and the next landing is refused (66)"
    assert answer.code == 1, answer
    assert f"broken: job seen: {said}: `rewindow land totals`. It says how to land them again." in " ".join(
        answer.out.split()
    ), answer.out
    (entry,) = [one for one in json.loads(bench.run("ls", "--json").out)["jobs"] if one["job"] == "seen"]
    assert (entry["status"], entry["detail"], entry["exit_code"]) == ("broken", said, 66)
    assert bench.run("status", "idle").code == 0
    assert bench.run("land", "totals", "--new-generation").code == 0
    for words in (("rewind", "seen", "--to", "0"), ("run", "seen"), ("status", "seen")):
        answer = bench.run(*words)
        assert answer.code == 0, answer


TOPPED = """\
from rewindow import Count, Max, StreamsBuilder, TimeWindows, until_window_closes


def build_topology():
    builder = StreamsBuilder()
    hours = builder.stream("events").group_by_key().windowed_by(TimeWindows.of("30m", grace="5m"))
    counts = hours.aggregate({aggregates}, store="sums")
    counts.suppress(until_window_closes(), name="closed").to_stream().select("{selected}").to("totals")
    return builder.build()
"""


def _topped(bench: Bench, aggregates: str, selected: str) -> None:
    bench.write("bench_job.py", TOPPED.replace("{aggregates}", aggregates).replace("{selected}", selected))


def _rows(bench: Bench) -> list[str]:
    said = json.loads(bench.run("head", "counts", "-n", "1000", "--json").out)
    rows = [{name: value for name, value in row.items() if name != "_run"} for row in said["tables"][0]["rows"]]
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.parametrize("selected", ["n", "n, top"])
def test_a_branch_whose_stores_have_other_columns_is_promoted_and_goes_on(bench: Bench, selected: str) -> None:
    _topped(bench, '{"n": Count()}', "n")
    assert bench.run("reset", "counts", "--yes").code == 0
    assert bench.run("run", "counts").code == 0
    _topped(bench, '{"n": Count(), "top": Max("x")}', selected)
    backfill = ("backfill", "counts", "--from", "1", "--branch", "topped")
    made = bench.run(*(backfill if selected == "n" else ("run", "counts", "--branch", "topped", "--through", "2")))
    assert made.code == 0, made
    if "top" in selected:
        assert "alerts/totals: top (long) is new" in bench.run(*backfill).err
        answer = bench.run("promote", "counts", "topped")
        assert answer.code == 76, answer
        assert "[promoted-columns-differ]" in answer.err
        assert (
            "present ones: top (long) is new. Name another table for totals in conf/jobs/counts.yaml, then"
            in answer.err
        )
        bench.edit("conf/jobs/counts.yaml", "alerts.totals", "alerts.topped")
    assert bench.run("promote", "counts", "topped").code == 0
    for words in (("land", "activity"), ("run", "counts"), ("republish", "counts"), ("gc", "counts", "--keep", "0d")):
        answer = bench.run(*words)
        assert answer.code == 0, answer
    replayed = _rows(bench)
    bench.rows("h3", hour(3))
    assert bench.run("run", "counts", "--land").code == 0
    assert bench.run("status").code == 0
    goes_on = _rows(bench)
    assert len(goes_on) > len(replayed)
    assert bench.run("reset", "counts", "--yes").code == 0
    assert bench.run("run", "counts").code == 0
    assert _rows(bench) == goes_on
