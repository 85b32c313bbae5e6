"""Somebody deletes a ledger or its tables by hand and starts over: old rows never pass for new ones."""

from __future__ import annotations

import io
import shutil

import pytest

from tests.bad_input.scene import Bench, copy_of, goes_on, hour
from tests.refusals import fixes

AGAIN = "rewind counts --to 0"
pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture(scope="module")
def clean(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the tables of a project that nobody touched: three landings."""
    bench = copy_of(template, tmp_path_factory.mktemp("clean") / "bench")
    goes_on(bench)
    return bench.result()


@pytest.fixture(scope="module")
def at_once(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the tables of a new project that took the three hours in one landing."""
    bench = copy_of(template, tmp_path_factory.mktemp("clean") / "bench")
    shutil.rmtree(bench.warehouse)
    goes_on(bench)
    return bench.result()


def deleted(bench: Bench, *folders: str) -> None:
    for folder in folders:
        shutil.rmtree(bench.warehouse / folder)


def test_an_output_keeps_no_rows_of_a_deleted_ledger(
    bench: Bench, at_once: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted(bench, "rewindow", "state", "logs")
    bench.rows("h0", [{**row, "x": row["x"] + 1} for row in hour(0)])  # as many rows as before
    bench.done("land activity")
    (reset,) = fixes(bench.refuses("run counts", "table-rows-of-no-ledger", job="counts"))
    monkeypatch.setattr("sys.stdin", io.StringIO())  # nobody answers
    for line in (f"{reset} --json", reset):
        (confirmed,) = fixes(bench.refuses(line, "reset-not-confirmed"))
    bench.done(confirmed, "run counts", "show counts --hashes")
    now = bench.result()
    assert now["output/totals"] == at_once["output/totals"]
    assert now["log"] != at_once["log"]


@pytest.mark.parametrize("lost", [("rewindow/runs",), ("rewindow", "logs", "alerts")])
def test_no_table_keeps_rows_of_a_deleted_ledger(
    bench: Bench, clean: dict[str, str], at_once: dict[str, str], lost: tuple[str, ...]
) -> None:
    deleted(bench, *lost)
    bench.done("land activity")
    bench.refuses("run counts", "table-rows-of-no-ledger", job="counts")
    bench.done("reset counts --yes")
    goes_on(bench)
    assert bench.result() == (at_once if "logs" in lost else clean)


def test_a_job_whose_feed_was_renamed_is_told_so(bench: Bench) -> None:
    feed, job = bench.root / "conf/feeds/activity.yaml", bench.root / "conf/jobs/counts.yaml"
    before, text = job.read_text(), feed.read_text()
    bench.write("conf/feeds/clicks.yaml", text.replace("feed: activity", "feed: clicks"))
    feed.unlink()
    job.write_text(before.replace("feed: activity", "feed: clicks"))
    bench.done("land clicks")
    assert fixes(bench.refuses("run counts", "run-input-missing"))[-1] == AGAIN
    feed.write_text(text)
    job.write_text(before)
    bench.done("run counts")


def test_a_job_does_not_continue_on_a_feed_that_was_landed_anew(bench: Bench, at_once: dict[str, str]) -> None:
    bench.done("backfill counts --from 1 --branch fix")
    deleted(bench, "rewindow/landings", "logs")
    bench.done("land activity")
    for line in ("plan counts", "run counts", "backfill counts --from 1 --branch other"):
        assert fixes(bench.refuses(line, "run-input-missing"))[-1] == AGAIN
    bench.done("promote counts fix", AGAIN, "run counts")
    assert bench.result() == at_once


def test_a_restored_older_ledger_does_not_repeat_numbers(bench: Bench) -> None:
    shutil.copytree(bench.warehouse / "rewindow", bench.root / "copy")
    goes_on(bench)
    deleted(bench, "rewindow")
    shutil.copytree(bench.root / "copy", bench.warehouse / "rewindow")
    bench.refuses("land activity", "landing-ledger-behind-log", feed="activity")
    bench.refuses("show counts", "job-ledger-behind-tables", job="counts")


def test_reset_starts_a_job_over_as_often_as_it_is_asked(bench: Bench, clean: dict[str, str]) -> None:
    before = bench.result()
    bench.done("backfill counts --from 1 --branch trial", "reset counts --yes", "reset counts --yes")
    bench.done("reset counts")  # there is nothing to ask about
    assert bench.result() == {"log": before["log"]}
    goes_on(bench)
    bench.done("backfill counts --from 1 --branch trial", "gc --keep 0d", "republish counts --all")
    assert bench.result() == clean


def test_after_a_reset_an_output_may_have_other_columns(bench: Bench) -> None:
    bench.done("reset counts --yes")
    bench.edit("bench_job.py", '.to("totals")', '.map_values(str, value=str).to("totals")')
    bench.done("run counts", "verify counts")


def test_a_reset_says_that_only_its_rows_leave_the_tables_that_jobs_share(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("typer.confirm", lambda question, **_: bool(asked.append(question)))
    bench.refuses("reset counts", "reset-not-confirmed")
    assert "alerts/totals" in asked[0]
    assert "rewindow/metrics" in asked[0]
