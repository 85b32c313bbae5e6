"""Expectations on the command line: warned, held and failed runs, and every mistake in `expect:`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

import rewindow
from rewindow.airflow.asset_events import has_event
from rewindow.contracts.exit_codes import ON_HOLD
from rewindow.errors import StorageError, UsageError
from rewindow.tables.delta.content_hash import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import FRESH, Bench, copy_of, hour

OUTPUTS = "  totals: {table: alerts.totals}\n"


def expecting(bench: Bench, *items: str) -> Bench:
    """Write expectations into the job's file."""
    listed = "".join(f"      - {item}\n" for item in items)
    bench.edit("conf/jobs/counts.yaml", OUTPUTS, f"  totals:\n    table: alerts.totals\n    expect:\n{listed}")
    return bench


def replayed(bench: Bench, code: int, *more: str):
    assert bench.run("land", "activity").code == 0
    answer = bench.run("run", "counts", *more)
    assert answer.code == code, answer.out + answer.err
    return answer


def table(bench: Bench, name: str):
    return read_rows(str(bench.warehouse / name))


def state(bench: Bench):
    return DeltaTables(str(bench.warehouse)).state("counts")


NOTHING_IS_NEW = "{rows: {max: 0}, on_fail: %s}"


def test_a_run_that_meets_all_is_published_and_its_results_are_stored(bench: Bench) -> None:
    expecting(bench, "unique: key", "not_null: [user, value]", "late: 100%", "{rows: {min: 1}, name: some}")
    replayed(bench, 0)
    commit = state(bench).branch("main").runs[-1].commit
    assert [(one.name, one.failed) for one in commit.expectations] == [
        ("unique key", 0),
        ("not_null user, value", 0),
        ("late", 0),
        ("some", 0),
    ]
    stored = table(bench, "rewindow/expectations").to_pylist()
    assert [(row["name"], row["is_met"], row["job"], row["branch"]) for row in stored] == [
        (one.name, True, "counts", "main") for one in commit.expectations
    ]
    assert {row["_run"] for row in stored} == {state(bench).branch("main").runs[-1].spec.run}


def test_results_are_those_without_expectations(template: Bench, tmp_path: Path) -> None:
    free, bound = copy_of(template, tmp_path / "a"), copy_of(template, tmp_path / "b")
    expecting(bound, "unique: key", NOTHING_IS_NEW % "warn", "{sql: SELECT * FROM previous_rows, on_fail: warn}")
    for bench in (free, bound):
        replayed(bench, 0)
    assert free.result() == bound.result()
    commits = [state(bench).branch("main").runs[-1].commit for bench in (free, bound)]
    digests = [{t: one.digest for t, one in commit.targets.items() if t != "expectations"} for commit in commits]
    assert digests[0] == digests[1]


def test_a_warning_is_published_and_told(bench: Bench) -> None:
    expecting(bench, NOTHING_IS_NEW % "warn")
    answer = replayed(bench, 0)
    assert "warn: totals: rows: " in answer.out
    assert "expected at most 0" in answer.out
    assert not state(bench).on_hold("main")
    shown = json.loads(bench.run("show", "counts", "--json").out)
    assert [(one["run"], one["expectation"], one["on_fail"]) for one in shown["unmet"]] == [("main/3", "rows", "warn")]
    assert "Expectations not met" in bench.run("show", "counts").out


def test_a_failed_run_is_not_committed_and_fails_again_until_something_changes(bench: Bench) -> None:
    expecting(bench, "{range: {column: value, max: 0}}")
    before = [row.kind for row in DeltaTables(str(bench.warehouse)).ledger_rows("counts")]
    rows = table(bench, "alerts/totals").num_rows
    for _ in range(2):
        answer = replayed(bench, 65)
        assert "run main/3 of counts does not meet an expectation" in answer.err
        assert "totals: range value: " in answer.err
        assert "rows have value out of bounds, expected at most 0; first: user=" in answer.err
        assert "Nothing was committed" in answer.err
    after = [row.kind for row in DeltaTables(str(bench.warehouse)).ledger_rows("counts")]
    assert after == [*before, "PLAN", "PLAN"]
    assert table(bench, "alerts/totals").num_rows == rows
    bench.edit("conf/jobs/counts.yaml", "max: 0", "max: 1000")
    assert replayed(bench, 0).out.count("completes the plan of an attempt that did not finish") == 1


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
    found = json.loads(bench.run("status", "--json").out)
    assert "on_hold" in json.dumps(found)
    verdict = json.loads(bench.run("report", "counts", "--json").out)["verdict"]
    assert "on hold" in verdict[0]["text"]
    assert "`rewindow publish counts --accept --run main/3`" in verdict[1]["text"]


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
    assert (refused.code, "3 runs are on hold" in refused.err) == (2, True)
    codes = [held.run("publish", "counts", "--accept", "--run", name).code for name in names]
    assert codes == [ON_HOLD, ON_HOLD, 0]
    assert held.run("publish", "counts", "--accept", "--run", "main/5").code == 0, "it is accepted already"
    assert held.result() == free.result()
    assert held.run("verify", "counts", "main/4").code == 0
    assert held.run("republish", "counts", "--all").code == 0
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


def test_a_branch_on_hold_is_not_promoted(bench: Bench) -> None:
    expecting(bench, NOTHING_IS_NEW % "hold")
    answer = bench.run("backfill", "counts", "--from", "1", "--branch", "fix")
    assert answer.code == ON_HOLD, answer.err
    refused = bench.run("promote", "counts", "fix")
    assert refused.code == 76
    assert "`rewindow publish counts --branch fix --accept --run fix/1`" in refused.err
    assert bench.run("publish", "counts", "--branch", "fix", "--accept").code == 0
    assert bench.run("promote", "counts", "fix").code == 0


def test_a_change_of_expectations_needs_no_approval(bench: Bench) -> None:
    bench.edit("conf/jobs/counts.yaml", "on_code_change: accept\n", "")
    expecting(bench, "unique: key")
    replayed(bench, 0)
    bench.rows("more", hour(FRESH + 1))
    bench.edit("conf/jobs/counts.yaml", "- unique: key", "- not_null: user")
    replayed(bench, 0)
    bench.rows("most", hour(FRESH + 2))
    bench.edit("conf/jobs/counts.yaml", "    expect:\n      - not_null: user\n", "")
    replayed(bench, 0)
    assert bench.run("verify", "counts", "main/3", "main/4", "main/5").code == 0
    assert table(bench, "rewindow/expectations").num_rows == 2


def test_the_rows_of_the_run_before_are_those_of_one_run(bench: Bench) -> None:
    query = "{sql: SELECT _run FROM previous_rows WHERE _run <> (SELECT max(_run) FROM previous_rows), on_fail: fail}"
    expecting(bench, query, "{name: two, sql: SELECT DISTINCT _run FROM previous_rows UNION SELECT 0, on_fail: warn}")
    replayed(bench, 0)
    two = state(bench).branch("main").runs[-1].commit.expectations[1]
    assert two.failed == 2, two


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


def test_python_gives_the_results(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(bench.root))
    expecting(bench, NOTHING_IS_NEW % "hold")
    project = rewindow.Project.load(bench.root)
    run = project.run("counts", land=True)
    assert (run.name, run.is_published, [one.is_met for one in run.expectations]) == ("main/3", False, [False])
    assert [one.is_published for one in project.runs("counts")] == [True, True, False]
    assert "not published" in run._repr_html_()
    with pytest.raises(UsageError, match="the rows of run main/3 are not published"):
        run.output().to_arrow()
    names = set(project.output("counts").to_arrow()["_run"].to_pylist())
    assert names <= {"main/1", "main/2"}
    done = project.publish("counts", accept=True)
    assert done["accepted"] == "main/3"
    assert "Accepted run main/3" in repr(done)
    assert "main/3" in run.output().to_arrow()["_run"].to_pylist()
    assert [one.is_published for one in project.runs("counts")] == [True, True, True]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_the_rows_of_the_run_before_are_found_after_optimize_and_vacuum(bench: Bench, *, is_deleted: bool) -> None:
    replayed(bench, 0)
    bench.rows("next", hour(FRESH + 1))
    committed = state(bench).branch("main").runs[-1]
    output = DeltaTable(str(bench.warehouse / "alerts" / "totals"))
    output.optimize.compact()
    output.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert bench.run("land", "activity").code == 0
    expecting(bench, "{name: all, sql: SELECT * FROM previous_rows, on_fail: warn}")
    if is_deleted:
        before = Path.glob(bench.warehouse / "alerts" / "totals", "*.parquet")
        for file in before:
            file.unlink()
        with pytest.raises(StorageError):
            list(DeltaTables(str(bench.warehouse)).run_batches(committed, "output/totals", ["user"]))
        return
    replayed(bench, 0)
    observed = state(bench).branch("main").runs[-1].commit.expectations[0]
    assert observed.failed == committed.commit.targets["output/totals"].rows > 0


MISTAKES = {
    "a column that does not exist": ("not_null: usr", "output 'totals' has no column 'usr': did you mean `user`?"),
    "a range of text": ("range: {column: value, min: few}", "'few' is no value of column 'value', which is long"),
    "a value of another type": ("values: {column: value, allowed: [true]}", "True is no value of column 'value'"),
    "bounds the wrong way around": ("range: {column: value, min: 9, max: 1}", "min 9 is above max 1: swap them"),
    "no column of the query": ("sql: SELECT usr FROM new_rows", "the query cannot be executed"),
    "no query": ("sql: DROP TABLE new_rows", "only SELECT ... and WITH ... are queries"),
    "a clock": ("sql: SELECT * FROM new_rows WHERE now() > 0", "now gives another value in each attempt"),
    "two in one": ("{unique: key, late: 1%}", "unique and late are two expectations"),
    "none": ("{on_fail: warn}", "there is no expectation: write one of not_null, unique, range"),
    "an unknown key": ("{unique: key, on_fial: warn}", "on_fial is not a known key: did you mean `on_fail`?"),
    "an unknown word": ("{unique: key, on_fail: stop}", "on_fail must be 'warn', 'hold' or 'fail'"),
    "no bound": ("rows: {}", "there is no bound: write min, max or both"),
    "a share": ("late: 0.5", "is not a share"),
    "no columns": ("unique: []", "names no columns"),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("command", ["plan counts", "run counts", "ls"])
def test_a_mistake_is_named_with_its_line(bench: Bench, name: str, command: str) -> None:
    item, says = MISTAKES[name]
    expecting(bench, item)
    answer = bench.run(*command.split())
    told = answer.out + answer.err
    if command == "ls":
        assert answer.code == 0
        told = json.dumps(json.loads(bench.run("ls", "--json").out))
        says = json.dumps(says)[1:-1]
    else:
        assert answer.code == 78, told
    assert "conf/jobs/counts.yaml, line " in told
    assert says in told, told


def test_two_expectations_have_two_names(bench: Bench) -> None:
    expecting(bench, "unique: key", "unique: key")
    answer = bench.run("plan", "counts")
    assert answer.code == 78
    assert (
        "conf/jobs/counts.yaml, line 9: two expectations are named 'unique key': give one of them a `name:`"
        in answer.err
    )


def test_a_query_that_fails_on_rows_ends_the_run(bench: Bench) -> None:
    expecting(bench, '{name: broken, sql: "SELECT 1 / (value - value) FROM new_rows"}')
    answer = replayed(bench, 65)
    assert "totals: broken: the query fails on the rows of this run" in answer.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["publish", "counts", "--run", "1"], "--run works only with --accept"),
        (["publish", "counts", "--branch", "nobody"], "there is no branch 'nobody'"),
        (["publish", "counts", "--accept", "--run", "main/9"], "run 'main/9' does not exist"),
    ],
)
def test_publish_names_what_is_wrong(bench: Bench, words: list[str], says: str) -> None:
    answer = bench.run(*words)
    assert (answer.code, says in answer.err) == (2, True), answer.err
