"""The ledger of a job has lost its newest commit, which its tables have: all commands say so, and what they advise works."""

from __future__ import annotations

import shutil

import pytest

from tests.bad_input.scene import Bench

pytestmark = pytest.mark.usefixtures("in_process")

LINES = ("plan counts", "run counts", "show counts", "republish counts")


@pytest.mark.parametrize("is_first", [False, True])
def test_every_command_refuses_and_starting_over_gives_the_same_rows(bench: Bench, is_first: bool) -> None:  # noqa: FBT001
    if is_first:
        for table in ("alerts", "state", "rewindow/journal", "rewindow/metrics", "rewindow/runs"):
            shutil.rmtree(bench.warehouse / table)
        bench.done("run counts")
    rows = bench.result()
    max((bench.warehouse / "rewindow/runs/_delta_log").glob("*.json")).unlink()
    for line in LINES:
        refusal = bench.refuses(line, "job-ledger-behind-tables", job="counts")
        assert "`rewindow reset counts`" in refusal.message
    assert bench.findings("counts")[0].about == "refused"
    bench.done("reset counts --yes", "run counts")
    assert bench.result() == rows
