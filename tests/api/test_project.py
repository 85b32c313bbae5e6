"""A project used from Python: the commands as methods, and their results as values."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import rewindow
from rewindow import errors
from rewindow.app.api.results import outcome_of_landing
from rewindow.control.ingest.landing_report import LandReport
from rewindow.control.plan.spec import RunRequest
from tests.api.shop import edit, new_shop, replace
from tests.refusals import containing, refused


def test_a_project_is_loaded_landed_and_run(shop):
    assert shop.jobs.names == ["daily_orders"]
    assert [feed.status for feed in shop.feeds] == ["never_landed"]
    assert shop.land("orders")["rows"] == 10
    run = shop.run("daily_orders")
    assert (run.name, run.is_new, run.epochs, run.records, run.rows) == (
        "main/1",
        True,
        (1, 3),
        {"orders": 10},
        {"daily-orders": 5},
    )
    assert run.dropped == {"late": {"window-closed": 1}}
    assert [job.status for job in shop.jobs] == ["fresh"]


def test_the_rows_of_an_output_are_those_that_head_prints(landed):
    rows = landed.run("daily_orders").output("daily-orders").to_arrow()
    assert rows.column_names == [
        "customer",
        "window_start",
        "window_end",
        "orders",
        "amount",
        "_timestamp",
        "_run",
    ]
    assert rows.to_pylist()[0] == {
        "customer": "bob",
        "window_start": datetime(2026, 1, 5, tzinfo=UTC),
        "window_end": datetime(2026, 1, 6, tzinfo=UTC),
        "orders": 1,
        "amount": 40.0,
        "_timestamp": datetime(2026, 1, 5, 11, 2, tzinfo=UTC),
        "_run": "main/1",
    }


@pytest.mark.parametrize("name", ["daily-orders", "shop.daily_orders", "shop/daily_orders", "daily_orders"])
def test_an_output_is_named_by_topic_table_or_job(landed, name):
    landed.run("daily_orders")
    assert landed.output(name).to_arrow().num_rows == 5


def test_an_output_named_like_its_job_is_found_by_the_names_that_the_error_gives(shop):
    edit(shop, "    return", '    builder.stream("orders").to("daily_orders")\n    return')
    replace(shop.root / "conf/jobs/daily_orders.yaml", "outputs:", "outputs:\n  daily_orders: {table: shop.copies}")
    shop.land("orders")
    shop.run("daily_orders")
    with pytest.raises(errors.UsageError) as refusal:
        shop.output("daily_orders")
    assert refusal.value.code == "output-not-named"
    rows = [shop.output(name).to_arrow().num_rows for name in refusal.value.facts["outputs"].split(", ")]
    assert sorted(rows) == [5, 10]


def test_the_state_is_that_of_state_show(landed):
    rows = landed.run("daily_orders").state("orders-per-day").to_arrow().to_pylist()
    assert [(row["customer"], row["window_start"].day, row["orders"]) for row in rows] == [
        ("ann", 6, 1),
        ("ann", 7, 1),
        ("bob", 5, 1),
        ("bob", 6, 1),
        ("cyd", 7, 1),
    ]


def test_pandas_keeps_whole_numbers_whole(landed):
    frame = landed.run("daily_orders").output().to_pandas()
    assert str(frame.dtypes["orders"]) == "Int64"
    assert str(frame.dtypes["_timestamp"]) == "datetime64[ms, UTC]"


def test_a_notebook_that_is_executed_again_shows_the_same(landed):
    first = landed.run("daily_orders")
    again = landed.run("daily_orders")
    assert (again.name, again.is_new) == ("main/1", False)
    assert again.reason.code == "all-epochs-taken"
    assert again.output().to_arrow() == first.output().to_arrow()


def test_rows_and_state_are_those_as_of_a_run(with_two_runs):
    project = with_two_runs
    assert [run.name for run in project.runs("daily_orders")] == ["main/1", "main/2"]
    assert set(project.output("daily-orders").to_arrow()["_run"].to_pylist()) == {"main/1", "main/2"}
    assert set(project.output("daily-orders", run=1).to_arrow()["_run"].to_pylist()) == {"main/1"}
    first, second = (project.state("daily_orders", "orders-per-day", run=n).to_arrow() for n in (1, "main/2"))
    assert first != second
    assert first == project.runs("daily_orders")[0].state("orders-per-day").to_arrow()


def test_rows_of_a_run_that_was_rewound_are_refused(with_two_runs):
    from rewindow.app.branches import JobBranches
    from rewindow.app.open_project import OpenProject

    rows = with_two_runs.output("daily-orders")
    JobBranches(OpenProject.open(with_two_runs.root), "daily_orders").rewind("main", "1")
    with refused("run-not-on-branch", run="main/2"):
        rows.to_arrow()


def test_code_that_was_edited_is_executed_and_not_what_was_imported_before(landed):
    assert landed.run("daily_orders").records == {"orders": 10}
    edit(landed, '        .where("amount > 0")\n', "")
    with refused("job-changed-since-checkpoint"):
        landed.plan("daily_orders")
    fixed = landed.backfill("daily_orders", 1, branch="with-refunds")
    bob = [row for row in fixed.runs[-1].output().to_arrow().to_pylist() if row["customer"] == "bob"]
    assert [row["amount"] for row in bob] == [40.0, -20.1]


def test_an_edit_of_the_same_size_within_a_second_is_seen(landed):
    landed.job("daily_orders")
    edit(landed, 'amount > 0"', 'amount > 9"')
    assert "where(amount > 9)" in landed.job("daily_orders").topology.svg.replace("&gt;", ">")


def test_each_of_two_projects_runs_its_own_code(tmp_path):
    one, other = new_shop(tmp_path / "one"), new_shop(tmp_path / "other")
    edit(other, 'amount > 0"', 'amount > 9"')
    for project in (one, other, one):
        project.land("orders")
    amounts = [
        min(project.run("daily_orders").output().to_arrow()["amount"].to_pylist()) for project in (one, other, one)
    ]
    assert amounts == [5.5, 12.5, 5.5]
    assert not {path for path in sys.path if str(tmp_path) in path}


def test_a_branch_is_compared_and_promoted(with_two_runs):
    edit(with_two_runs, '        .where("amount > 0")\n', "")
    with_two_runs.backfill("daily_orders", 1, branch="with-refunds")
    diff = with_two_runs.diff("daily_orders", "with-refunds")
    assert not diff.are_equal
    assert (diff.outputs["daily-orders"].equal, diff.outputs["daily-orders"].different) == (6, 1)
    assert with_two_runs.output("daily-orders").to_arrow()["_run"].to_pylist()[0] == "main/1"
    assert with_two_runs.promote("daily_orders", "with-refunds")["at"] == "with-refunds/1"
    assert set(with_two_runs.output("daily-orders").to_arrow()["_run"].to_pylist()) == {"with-refunds/1"}


def test_a_run_stops_at_a_landing_or_a_time(landed):
    assert landed.run("daily_orders", through=1).epochs == (1, 1)
    assert landed.run("daily_orders", through=datetime(2026, 1, 6, 12, 10, tzinfo=UTC)).epochs == (2, 2)
    assert landed.run("daily_orders", through="2026-01-07T18:45:00Z").epochs == (3, 3)


def test_a_run_that_lands_says_what_it_landed(shop):
    run = shop.run("daily_orders", land=True)
    assert (run.is_new, landings_of(run)) == (True, [1, 2, 3])
    assert "Feed orders: landings 1 to 3, 10 records" in run._repr_html_()
    assert landings_of(shop.run("daily_orders", land=True)) == []


def landings_of(run):
    return list(run.landed["landings"])


def test_warnings_of_a_landing_are_its_first_sentences():
    warning = errors.WarningMessage("column-all-null", "{column} is null", column="amount")
    landed = outcome_of_landing("orders", LandReport("orders", 1, -1, warnings=(warning,)))
    assert landed.sentences[0] == f"warning: {warning}"
    assert landed["warning_codes"] == [warning.code]


def test_a_run_says_which_plan_of_a_dead_attempt_it_completed_first(landed, monkeypatch):
    def both(project, job, request, _watch):
        return [project.run(job, RunRequest(through_landing=1)), project.run(job, request)]

    monkeypatch.setattr("rewindow.app.open_project.OpenProject.run_to_the_end", both)
    run = landed.run("daily_orders")
    assert (run.name, run.completed) == ("main/2", ("main/1",))
    assert "Completed run main/1, which an attempt that did not finish had planned." in run._repr_html_()


def test_a_plan_changes_nothing_and_reads_like_the_command(landed):
    plan = landed.plan("daily_orders")
    assert plan["run"]["name"] == "main/1"
    assert repr(plan).startswith("Run main/1 takes epochs 1 to 3 of feed 'orders'")
    assert len(landed.runs("daily_orders")) == 0


def test_the_report_is_a_value_and_a_page(landed, tmp_path):
    landed.run("daily_orders")
    report = landed.report("daily_orders")
    assert report.verdict[0].startswith("Complete through 2026-01-07 18:45:00Z")
    assert report.write(tmp_path / "report.html").read_text().startswith("<!doctype html>")


ERRORS = {
    "no project": (78, lambda shop: rewindow.Project.load(Path(shop.root).parent)),
    "no target": (78, lambda shop: rewindow.Project.load(shop.root, target="prod")),
    "no job": (78, lambda shop: shop.run("nobody")),
    "never landed": (66, lambda shop: shop.run("daily_orders")),
    "no runs": (2, lambda shop: shop.output("daily-orders")),
    "no output": (2, lambda shop: shop.output("nothing")),
    "no time": (2, lambda shop: shop.land("orders", until="soon")),
    "no store": (2, lambda shop: (shop.land("orders"), shop.run("daily_orders").state("sums"))),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_has_the_exit_code_of_the_command_and_shows_no_stack_trace_in_a_notebook(shop, case):
    code, call = ERRORS[case]
    with pytest.raises(rewindow.RewindowError) as caught:
        call(shop)
    assert caught.value.exit_code == code
    (line,) = caught.value._render_traceback_()
    assert line == f"{type(caught.value).__name__} [{caught.value.code}] (exit code {code}): {caught.value}"


def test_with_debug_a_notebook_shows_the_stack_trace(shop):
    with pytest.raises(rewindow.RewindowError) as caught:
        rewindow.Project.load(shop.root, debug=True).run("nobody")
    assert not hasattr(caught.value, "_render_traceback_")


def test_code_that_calls_exit_does_not_end_the_notebook(landed):
    edit(landed, "    builder = StreamsBuilder()\n", "    raise SystemExit(3)\n    builder = StreamsBuilder()\n")
    with pytest.raises(errors.ConfigError):
        landed.run("daily_orders")


def test_a_bug_is_an_error_with_its_cause(landed, monkeypatch):
    monkeypatch.setattr("rewindow.app.open_project.OpenProject.run_to_the_end", lambda *_: 1 / 0)
    with refused("rewindow-bug", fix="load the project with debug=True") as caught:
        landed.run("daily_orders")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_interrupted_run_says_what_was_kept(landed, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rewindow.app.open_project.OpenProject.run_to_the_end", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        landed.run("daily_orders")
    (note,) = caught.value.__notes__
    assert note.startswith(
        "interrupted before the first step. Nothing was committed: the same command again starts over"
    )


def test_nothing_is_printed_and_the_steps_are_logged(landed, caplog, capfd):
    with caplog.at_level(logging.INFO, logger="rewindow"):
        landed.run("daily_orders")
    assert any("run=main/1 step=commit" in message for message in caplog.messages)
    assert capfd.readouterr() == ("", "")


def test_a_time_that_does_not_exist_is_null():
    import pyarrow as pa

    from rewindow.app.api.rows import readable

    rows = pa.table({"window_end": pa.array([2**63 - 1, -1, 1000, None], pa.int64()), "_run": pa.array([7, 9, 7, 9])})
    assert readable(rows, ["window_start", "window_end"], {9: "main/2", 7: "main/1"}).to_pylist() == [
        {"window_end": None, "_run": "main/1"},
        {"window_end": None, "_run": "main/2"},
        {"window_end": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "_run": "main/1"},
        {"window_end": None, "_run": "main/2"},
    ]


def test_rows_that_somebody_else_has_deleted_are_missed(with_two_runs):
    from deltalake import DeltaTable

    DeltaTable(with_two_runs.root / "warehouse/shop/daily_orders").delete("customer = 'ann'")
    with refused("published-table-changed", fix=containing("rewindow republish daily_orders")):
        with_two_runs.output("daily-orders").to_arrow()


def test_what_an_interrupted_run_had_not_published_is_published_when_it_is_read(with_two_runs):
    shutil.rmtree(with_two_runs.root / "warehouse/shop/daily_orders/_delta_log")
    assert with_two_runs.output("daily-orders").to_arrow().num_rows == 7


def test_the_api_of_a_project_is_imported_only_when_it_is_asked_for():
    code = "import sys, rewindow; before = 'pydantic' in sys.modules; rewindow.Project; print(before, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="no attribute 'Projekt'"):
        _ = rewindow.Projekt


def test_nothing_starts_spark(with_two_runs):
    assert "spark" not in vars(with_two_runs._context._project)
