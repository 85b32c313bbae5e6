"""An output table is lost again after it was republished: nothing that was staged has its rows now."""

from __future__ import annotations

import shutil

import pytest

from tests.bad_input.scene import Bench

READING = """\
feed: closed
partitions: 2
logs:
  sums: {source: {job: counts, output: totals}, key: user, timestamp: _timestamp}
"""


@pytest.fixture
def lost(bench: Bench) -> Bench:
    """A project whose output was republished, and whose folder was removed afterwards."""
    bench.done("republish counts --all")
    shutil.rmtree(bench.warehouse / "alerts/totals")
    return bench


def test_each_command_names_the_repair_and_creates_nothing(lost: Bench) -> None:
    for line in ("plan counts", "run counts", "show counts"):
        refusal = lost.refuses(line, "published-table-altered" if line != "show counts" else "published-table-changed")
        assert "`rewindow republish counts`" in refusal.message
    (job,) = lost.json("ls")["jobs"]
    assert (job["exit_code"], "`rewindow republish counts`" in job["detail"]) == (74, True)
    assert [finding.about for finding in lost.findings("counts")] == ["refused"]
    assert not (lost.warehouse / "alerts/totals").exists()
    lost.done("republish counts", "run counts", "verify counts", "status counts")


def test_landing_what_reads_the_output_creates_no_empty_table(lost: Bench) -> None:
    lost.write("conf/feeds/closed.yaml", READING)
    lost.refuses("land closed", "published-table-altered")
    assert not (lost.warehouse / "alerts/totals").exists()
