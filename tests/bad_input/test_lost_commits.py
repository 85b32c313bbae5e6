"""A ledger has lost its newest commits, or all, and tables still have the rows: all commands refuse, and their advice works."""

from __future__ import annotations

import shutil

import pytest

from tests.bad_input.scene import Bench

pytestmark = pytest.mark.usefixtures("in_process")

READING = ("plan counts", "show counts", "head counts", "report counts", "verify counts", "diff counts main main")
WRITING = ("run counts", "resume counts", "publish counts", "rewind counts --to 0", "backfill counts --from 1")
REPAIRING = ("republish counts", "republish counts --all", "gc counts --dry-run", "gc counts")
WHY = "why alerts.totals ann"
LINES = (*READING, *WRITING, *REPAIRING)


def lose(bench: Bench, ledger: str, commits: int) -> None:
    """Remove the newest commits of a ledger."""
    for commit in sorted((bench.warehouse / f"rewindow/{ledger}/_delta_log").glob("*.json"))[-commits:]:
        commit.unlink()


def refused_until_reset(bench: Bench, code: str, rows: dict[str, str]) -> None:
    """Check that all commands refuse with a code and change nothing. Follow their advice, which must give the rows again."""
    files = bench.files()
    for line in LINES:
        refusal = bench.refuses(line, code, job="counts")
        assert "`rewindow reset counts`" in refusal.message
    assert bench.findings("counts")[0].about == "refused"
    assert bench.files() == files
    bench.done("reset counts --yes", "run counts")
    assert bench.result() == rows


@pytest.mark.parametrize("commits", [1, 2, 3])
def test_a_ledger_without_its_newest_commits_is_behind_its_tables(bench: Bench, commits: int) -> None:
    rows = bench.result()
    lose(bench, "runs", commits)
    refused_until_reset(bench, "job-ledger-behind-tables", rows)


def test_a_plan_names_the_tables_of_the_only_run_that_a_ledger_has_lost(bench: Bench) -> None:
    for table in ("alerts", "state", "rewindow/journal", "rewindow/metrics", "rewindow/runs"):
        shutil.rmtree(bench.warehouse / table)
    bench.done("run counts")
    rows = bench.result()
    lose(bench, "runs", 1)
    refused_until_reset(bench, "job-ledger-behind-tables", rows)


def test_tables_without_a_ledger_are_refused(bench: Bench) -> None:
    rows = bench.result()
    shutil.rmtree(bench.warehouse / "rewindow/runs")
    refused_until_reset(bench, "table-rows-of-no-ledger", rows)


@pytest.mark.parametrize("ledger", ["runs", "landings"])
def test_a_file_that_a_ledger_has_lost_is_not_to_be_made_again(bench: Bench, ledger: str) -> None:
    """`republish` could not read it either."""
    (first, *_) = sorted((bench.warehouse / f"rewindow/{ledger}").rglob("*.parquet"))
    kept = first.read_bytes()
    first.unlink()
    refusal = bench.refuses("run counts", "file-unreadable")
    assert str(first) in refusal.message
    assert "`rewindow" not in refusal.message
    first.write_bytes(kept)
    bench.done("run counts")


def test_a_branch_is_not_dropped_from_a_ledger_that_lost_a_commit(bench: Bench) -> None:
    bench.done("backfill counts --from 1 --branch trial")
    lose(bench, "runs", 1)
    bench.refuses("branch drop counts trial", "job-ledger-behind-tables")


@pytest.mark.parametrize("line", ["plan counts", "run counts", "verify counts", "republish counts --all", WHY])
def test_a_log_that_is_ahead_of_its_ledger_is_refused(bench: Bench, line: str) -> None:
    lose(bench, "landings", 1)
    bench.refuses(line, "landing-ledger-behind-log", feed="activity")
