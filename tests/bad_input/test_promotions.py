"""A promotion that takes rows away says so, and so does what comes before and after it."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import Project
from tests.bad_input.chain import reads_totals
from tests.bad_input.scene import JOB, MODULE, SCORE, Bench, hour, topology
from tests.refusals import containing, fixes, refused, told


def rows_of(bench: Bench, job: str) -> list[dict[str, Any]]:
    (table,) = bench.json(f"head {job} -n 1000")["tables"]
    return [{name: value for name, value in row.items() if name != "_run"} for row in table["rows"]]


def test_a_promotion_that_takes_rows_away_says_how_many_and_how_it_is_undone(bench: Bench) -> None:
    before = rows_of(bench, "counts")
    bench.write("bench_job.py", MODULE.format(score=SCORE).replace('grace="5m"', 'grace="3d"'))
    bench.done("backfill counts --from 1 --branch patient")
    assert bench.json("promote counts patient")["fewer"] == {"totals": [len(before), 0]}
    bench.refuses("rewind counts --to main/2", "run-not-on-branch", run="main/2")
    bench.code(SCORE)
    bench.done("backfill counts --from 1 --branch undo")
    assert bench.json("promote counts undo")["fewer"] == {}
    assert rows_of(bench, "counts") == before


def test_a_promotion_says_how_many_landings_wait_for_the_next_run(bench: Bench) -> None:
    def waiting(branch: str) -> int:
        bench.done(f"backfill counts --from 1 --branch {branch}")
        return int(bench.json(f"promote counts {branch}")["waiting"])

    assert waiting("all") == 0
    bench.done("land activity")
    assert waiting("some") == 1


def test_a_promotion_says_that_the_present_code_is_not_that_of_the_branch(bench: Bench) -> None:
    fixed = MODULE.format(score=SCORE).replace('grace="5m"', 'grace="6m"')
    bench.write("bench_job.py", fixed)
    bench.done("backfill counts --from 1 --branch same", "backfill counts --from 1 --branch other")
    assert bench.json("promote counts same")["other_code"] == []
    bench.code(SCORE)
    assert bench.json("promote counts other")["other_code"] != []
    bench.refuses("run counts", "job-changed-since-checkpoint")
    bench.write("bench_job.py", fixed)
    bench.done("run counts")


def test_a_run_says_that_its_branch_is_new_and_a_question_about_an_unknown_branch_names_the_known_ones(
    bench: Bench,
) -> None:
    drop = "branch drop counts fux"
    assert [fixes(bench.done("run counts --branch fux").out) for _ in range(2)] == [[drop], []]
    refusal = bench.refuses("why counts u1 --branch fox --missing", "branch-not-run-yet", branch="fox")
    assert "fux, main" in str(refusal.facts["hint"])


def test_the_table_of_another_job_is_refused_before_a_backfill_or_promotion_and_survives_a_reset(bench: Bench) -> None:
    bench.write("conf/jobs/sums.yaml", JOB.replace("job: counts", "job: sums").replace("alerts.totals", "sums.totals"))
    bench.done("run sums")
    before = rows_of(bench, "sums")
    bench.edit("conf/jobs/counts.yaml", "alerts.totals", "sums.totals")
    for line in ("backfill counts --from 1 --branch moved", "run counts"):
        assert bench.run(*line.split()).code in (76, 78)
    bench.edit("conf/jobs/counts.yaml", "sums.totals", "alerts.totals")
    bench.done("backfill counts --from 1 --branch moved")
    bench.edit("conf/jobs/counts.yaml", "alerts.totals", "sums.totals")
    bench.refuses("promote counts moved", "table-of-another-job", other="sums", job="counts")
    bench.edit("conf/jobs/counts.yaml", "sums.totals", "alerts.totals")
    bench.done("promote counts moved", "reset counts --yes")
    assert rows_of(bench, "sums") == before


def test_a_ledger_that_names_the_table_of_another_job_changes_no_row_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("conf/jobs/sums.yaml", JOB.replace("job: counts", "job: sums").replace("alerts.totals", "sums.totals"))
    bench.done("run sums")
    before = rows_of(bench, "sums")
    files = set((bench.warehouse / "sums" / "totals").rglob("*.parquet"))
    monkeypatch.setattr("rewindow.app.branches.JobBranches._check_owners", lambda *_: None)  # as an earlier version
    bench.edit("conf/jobs/counts.yaml", "alerts.totals", "sums.totals")
    bench.done("backfill counts --from 1 --branch moved")
    bench.refuses("promote counts moved", "table-of-another-job", other="sums")
    bench.edit("conf/jobs/counts.yaml", "sums.totals", "alerts.totals")
    for line in ("gc counts --keep 0d", "republish counts --all", "reset counts --yes"):
        bench.run(*line.split())
    assert rows_of(bench, "sums") == before
    assert set((bench.warehouse / "sums" / "totals").rglob("*.parquet")) == files
    bench.done("run counts")


def test_a_dropped_branch_whose_rows_were_deleted_is_not_read_as_one_without_rows(bench: Bench) -> None:
    bench.done("backfill counts --from 1 --branch tried", "branch drop counts tried")
    (table,) = bench.json("head counts --branch tried")["tables"]
    assert table["count"]
    bench.done("gc counts --keep 0s")
    for line in ("head counts --branch tried", "diff counts main tried", "republish counts --branch tried"):
        bench.refuses(line, "branch-dropped", branch="tried")
    with refused("branch-dropped"):
        Project.load(bench.root).output("totals", branch="tried").to_arrow()


@pytest.mark.parametrize(
    ("line", "cannot"),
    [
        ("promote counts tried", "cannot be promoted"),
        ("rewind counts --to main/1 --branch tried", "cannot be rewound"),
        ("run counts --branch tried", "takes no more runs"),
        ("backfill counts --from 1 --branch tried", "takes no more runs"),
        ("promote counts other --into tried", "takes no branch"),
    ],
)
def test_a_dropped_branch_is_refused_with_what_was_asked_for(bench: Bench, line: str, cannot: str) -> None:
    bench.done("backfill counts --from 1 --branch tried", "branch drop counts tried")
    bench.done("backfill counts --from 2 --branch other", "land activity", "run counts")
    bench.refuses(line, "branch-closed", branch="tried", standing="dropped", cannot=cannot)


def test_a_reset_names_what_has_landed_and_replayed_the_rows_that_are_gone(bench: Bench) -> None:
    reads_totals(bench)
    bench.done("land totals", "run seen")
    assert bench.json("reset counts --yes")["outdated"] == [{"feed": "totals", "keep": 0, "jobs": ["seen"]}]
    assert bench.json("reset seen --yes")["outdated"] == []


def test_a_rewind_names_what_has_landed_and_replayed_the_rows_that_are_gone(bench: Bench) -> None:
    reads_totals(bench)
    assert bench.json("rewind counts --to main/2")["outdated"] == []
    bench.rows("h3", hour(3))
    bench.done("run counts --land", "land totals", "run seen")
    assert bench.json("rewind counts --to main/1")["outdated"] == [{"feed": "totals", "keep": 1, "jobs": ["seen"]}]
    assert "`--keep 1`" in bench.run("land", "totals").err
    findings = [finding.message for finding in bench.findings()]
    told(findings, "removed-runs-replayed-by-jobs", which="the job seen has", source="counts")
    assert bench.json("run seen")["run"] is None
    assert bench.json("land totals --new-generation --keep 1")["landings"] == []
    assert bench.run("run", "seen").code == 66
    bench.done("run counts", "land totals")
    assert bench.run("run", "seen").code == 66
    bench.done("rewind seen --to 0", "run seen")
    assert bench.json("rewind counts --to 0")["outdated"] == [{"feed": "totals", "keep": 0, "jobs": ["seen"]}]


def test_a_job_that_has_replayed_rows_of_replaced_runs_is_not_well(bench: Bench) -> None:
    reads_totals(bench)
    bench.done("land totals", "run seen", "backfill counts --from 1 --branch fix")
    assert [bench.findings(name) for name in ("seen", "idle")] == [[], []]
    bench.done("promote counts fix")
    (finding,) = bench.findings("seen")
    assert (finding.message.code, finding.message.facts) == ("removed-runs-replayed", {"job": "counts"})
    (entry,) = [one for one in bench.json("ls")["jobs"] if one["job"] == "seen"]
    assert (entry["status"], entry["exit_code"]) == ("broken", 66)
    bench.done("status idle", "land totals --new-generation", "rewind seen --to 0", "run seen", "status seen")


TOPPED = topology(
    """
hours = builder.stream("events").group_by_key().windowed_by(TimeWindows.of("30m", grace="5m"))
counts = hours.aggregate({aggregates}, store="sums")
counts.suppress(until_window_closes(), name="closed").to_stream().select("{selected}").to("totals")
"""
)


def _topped(bench: Bench, aggregates: str, selected: str) -> None:
    bench.write("bench_job.py", TOPPED.replace("{aggregates}", aggregates).replace("{selected}", selected))


@pytest.mark.parametrize("selected", ["n", "n, top"])
def test_a_branch_whose_stores_have_other_columns_is_promoted_and_goes_on(bench: Bench, selected: str) -> None:
    _topped(bench, '{"n": Count()}', "n")
    bench.done("reset counts --yes", "run counts")
    _topped(bench, '{"n": Count(), "top": Max("x")}', selected)
    backfill = "backfill counts --from 1 --branch topped"
    bench.done(backfill if selected == "n" else "run counts --branch topped --through 2")
    if "top" in selected:
        bench.refuses(backfill, "branch-not-promotable", reason=containing("top (long) is new"))
        bench.refuses("promote counts topped", "promoted-columns-differ", changes="top (long) is new")
        bench.edit("conf/jobs/counts.yaml", "alerts.totals", "alerts.topped")
    bench.done("promote counts topped", "run counts --land", "republish counts", "gc counts --keep 0d")
    replayed = rows_of(bench, "counts")
    bench.rows("h3", hour(3))
    bench.done("run counts --land", "status")
    goes_on = rows_of(bench, "counts")
    assert len(goes_on) > len(replayed)
    bench.done("reset counts --yes", "run counts")
    assert rows_of(bench, "counts") == goes_on
