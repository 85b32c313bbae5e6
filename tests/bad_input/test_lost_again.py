"""An output table is lost again after it was republished: nothing that was staged has its rows now."""

from __future__ import annotations

import shutil

import pytest

from tests.bad_input.scene import Bench, goes_on

READING = """\
feed: closed
partitions: 2
logs:
  sums: {source: {job: counts, output: totals}, key: user, timestamp: _timestamp}
"""


@pytest.fixture
def lost(bench: Bench) -> Bench:
    """A project whose output was republished, and whose folder was removed afterwards."""
    goes_on(bench)
    assert bench.run("republish", "counts", "--all").code == 0
    shutil.rmtree(bench.warehouse / "alerts/totals")
    return bench


@pytest.mark.parametrize("words", ["plan counts", "status counts", "ls --json", "run counts", "show counts"])
def test_each_command_names_the_repair_and_creates_nothing(lost: Bench, words: str) -> None:
    answer = lost.run(*words.split())
    said = answer.out + answer.err
    assert "alerts/totals is gone" in said, said
    assert "`rewindow republish counts`" in said
    assert "The next run publishes" not in said
    assert not (lost.warehouse / "alerts/totals").exists()
    assert lost.run("republish", "counts").code == 0
    assert [lost.run(*command.split()).code for command in ("run counts", "verify counts", "status counts")] == [
        0,
        0,
        0,
    ]


def test_landing_what_reads_the_output_creates_no_empty_table(lost: Bench) -> None:
    lost.write("conf/feeds/closed.yaml", READING)
    answer = lost.run("land", "closed")
    assert answer.code == 74, answer
    assert "[published-table-altered]" in answer.err
    assert "`rewindow republish counts`" in answer.err
    assert not (lost.warehouse / "alerts/totals").exists()
