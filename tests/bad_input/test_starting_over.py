"""Somebody deletes a ledger or its tables by hand and starts over: old rows never pass for new ones."""

from __future__ import annotations

import io
import shutil

import pytest

from tests.bad_input.scene import Answer, Bench, copy_of, goes_on, hour

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


def refused(answer: Answer, *words: str, code: int = 76) -> None:
    said = answer.out + answer.err
    assert answer.code == code, said
    for word in words:
        assert word in said, said


def done(answer: Answer) -> str:
    assert answer.code == 0, answer.err
    return answer.out


def test_an_output_keeps_no_rows_of_a_deleted_ledger(
    bench: Bench, at_once: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted(bench, "rewindow", "state", "logs")
    bench.rows("h0", [{**row, "x": row["x"] + 1} for row in hour(0)])  # as many rows as before
    done(bench.run("land", "activity"))
    refused(
        bench.run("run", "counts"), "alerts/totals has rows that the ledger of job 'counts' did not publish", "reset"
    )
    refused(bench.run("reset", "counts", "--json"), "--yes", code=2)
    monkeypatch.setattr("sys.stdin", io.StringIO())  # nobody answers
    refused(bench.run("reset", "counts"), "was not confirmed, so nothing was changed", "--yes", code=2)
    assert "alerts/totals" in done(bench.run("reset", "counts", "--yes"))
    done(bench.run("run", "counts"))
    done(bench.run("show", "counts", "--hashes"))
    now = bench.result()
    assert now["output/totals"] == at_once["output/totals"]
    assert now["log"] != at_once["log"]


@pytest.mark.parametrize(
    ("lost", "found"),
    [
        (("rewindow/runs",), "state/counts"),
        (("rewindow/runs", "alerts", "state"), "rewindow/metrics"),
        (("rewindow", "logs", "alerts"), "state/counts"),
    ],
)
def test_no_table_keeps_rows_of_a_deleted_ledger(
    bench: Bench, clean: dict[str, str], at_once: dict[str, str], lost: tuple[str, ...], found: str
) -> None:
    deleted(bench, *lost)
    done(bench.run("land", "activity"))
    refused(bench.run("run", "counts"), "did not publish", "rewindow reset counts")
    assert found in done(bench.run("reset", "counts", "--yes"))
    goes_on(bench)
    assert bench.result() == (at_once if "logs" in lost else clean)


def test_a_log_keeps_no_rows_of_a_deleted_ledger(bench: Bench, at_once: dict[str, str]) -> None:
    deleted(bench, "rewindow")
    refused(bench.run("land", "activity"), "logs/activity/events has rows that the landing ledger", "land activity")
    deleted(bench, "logs")
    done(bench.run("land", "activity"))
    done(bench.run("reset", "counts", "--yes"))
    goes_on(bench)
    assert bench.result() == at_once


def test_a_job_whose_feed_was_renamed_is_told_so(bench: Bench) -> None:
    feed, job = bench.root / "conf/feeds/activity.yaml", bench.root / "conf/jobs/counts.yaml"
    before, text = job.read_text(), feed.read_text()
    bench.write("conf/feeds/clicks.yaml", text.replace("feed: activity", "feed: clicks"))
    feed.unlink()
    job.write_text(before.replace("feed: activity", "feed: clicks"))
    done(bench.run("land", "clicks"))
    renamed = "of feed 'activity', and the job reads feed 'clicks' now. Rewind to the shared landings"
    refused(bench.run("run", "counts"), renamed, "rewindow rewind counts --to 0", "name it 'activity' again", code=66)
    feed.write_text(text)
    job.write_text(before)
    goes_on(bench)


def test_a_job_does_not_continue_on_a_feed_that_was_landed_anew(bench: Bench, at_once: dict[str, str]) -> None:
    deleted(bench, "rewindow/landings", "logs")
    done(bench.run("land", "activity"))
    for command in ("plan", "run"):
        refused(
            bench.run(command, "counts"), "its landing ledger is another one", "rewindow rewind counts --to 0", code=66
        )
    backfill = bench.run("backfill", "counts", "--from", "1", "--branch", "fix")
    refused(backfill, "rewindow rewind counts --to 0", code=66)
    assert "rewindow backfill" not in backfill.err, "the branch could not catch up with main"
    done(bench.run("rewind", "counts", "--to", "0"))
    done(bench.run("run", "counts"))
    assert bench.result() == at_once


def test_a_branch_that_has_caught_up_is_promoted_on_a_feed_that_was_landed_anew(bench: Bench) -> None:
    done(bench.run("backfill", "counts", "--from", "1", "--branch", "fix"))
    deleted(bench, "rewindow/landings", "logs")
    done(bench.run("land", "activity"))
    done(bench.run("promote", "counts", "fix"))


def test_a_restored_older_ledger_does_not_repeat_numbers(bench: Bench, template: Bench) -> None:
    shutil.copytree(bench.warehouse / "rewindow", bench.root / "copy")
    goes_on(bench)
    deleted(bench, "rewindow")
    shutil.copytree(bench.root / "copy", bench.warehouse / "rewindow")
    refused(bench.run("land", "activity"), "an older copy of the ledger was restored")
    refused(bench.run("show", "counts"), "publications, but the ledger of 'counts' names", "rewindow reset counts")


def test_reset_starts_a_job_over_as_often_as_it_is_asked(bench: Bench, clean: dict[str, str]) -> None:
    before = bench.result()
    said = done(bench.run("reset", "counts", "--yes"))
    assert "counts starts over" in said
    assert "at its beginning" in done(bench.run("reset", "counts", "--yes"))
    assert "at its beginning" in done(bench.run("reset", "counts"))  # there is nothing to ask about
    assert bench.result() == {"log": before["log"]}
    goes_on(bench)
    assert bench.result() == clean
    done(bench.run("backfill", "counts", "--from", "1", "--branch", "trial"))
    done(bench.run("reset", "counts", "--yes"))
    goes_on(bench)
    done(bench.run("backfill", "counts", "--from", "1", "--branch", "trial"))
    assert bench.result() == clean


def test_after_a_reset_an_output_may_have_other_columns(bench: Bench) -> None:
    done(bench.run("reset", "counts", "--yes"))
    bench.edit("bench_job.py", '.to("totals")', '.map_values(str, value=str).to("totals")')
    goes_on(bench)
    done(bench.run("verify", "counts"))


def test_two_warehouses_have_the_same_rows(bench: Bench, clean: dict[str, str]) -> None:
    goes_on(bench)
    assert bench.result() == clean
    done(bench.run("gc", "--keep", "0d"))
    done(bench.run("republish", "counts", "--all"))
    assert bench.result() == clean


def test_reset_of_another_jobs_output_is_refused(bench: Bench) -> None:
    text = (bench.root / "conf/jobs/counts.yaml").read_text()
    bench.write("conf/jobs/others.yaml", text.replace("job: counts", "job: others"))
    refused(bench.run("reset", "others", "--yes"), "is written by the job 'counts'", code=78)
    assert bench.run("show", "counts").code == 0


def test_a_reset_says_that_only_its_rows_leave_the_tables_that_jobs_share(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("typer.confirm", lambda question, **_: bool(asked.append(question)))
    refused(bench.run("reset", "counts"), "`reset counts` was not confirmed", code=2)
    assert asked[0].startswith("Forget all runs and branches of counts, empty alerts/totals, ")
    assert asked[0].endswith(" and remove its rows, but no others, from rewindow/metrics?")
    said = done(bench.run("reset", "counts", "--yes"))
    emptied, removed, *_ = said.removeprefix("counts starts over. Emptied: ").split(". ")
    assert emptied.startswith("alerts/totals, ")
    assert "rewindow/" not in emptied
    assert removed == "Removed the rows of counts, and no others, from rewindow/metrics"
