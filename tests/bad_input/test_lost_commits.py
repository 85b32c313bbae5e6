"""The ledger of a job has lost its newest commit, which its tables have: all commands say so, and what they advise works."""

from __future__ import annotations

import shutil

import pytest

from tests.bad_input.scene import Bench

pytestmark = pytest.mark.usefixtures("in_process")

COMMANDS = (("plan", "counts"), ("run", "counts"), ("show", "counts"), ("republish", "counts"))


@pytest.mark.parametrize("is_first", [False, True])
def test_every_command_refuses_and_starting_over_gives_the_same_rows(bench: Bench, is_first: bool) -> None:  # noqa: FBT001
    if is_first:
        for table in ("alerts", "state", "rewindow/journal", "rewindow/metrics", "rewindow/runs"):
            shutil.rmtree(bench.warehouse / table)
        assert bench.run("run", "counts").code == 0
    rows = bench.result()
    max((bench.warehouse / "rewindow/runs/_delta_log").glob("*.json")).unlink()
    answers = [bench.run(*words) for words in COMMANDS]
    assert [answer.code for answer in answers] == [76] * len(COMMANDS), answers
    assert all("[job-ledger-behind-tables]" in answer.err for answer in answers)
    assert all("`rewindow reset counts`" in answer.err for answer in answers)
    status = bench.run("status")
    assert status.code == 1
    assert "its newest commit is lost" in " ".join(status.out.split())
    assert bench.run("reset", "counts", "--yes").code == 0
    assert bench.run("run", "counts").code == 0
    assert bench.result() == rows
    assert bench.run("republish", "counts").code == 0
