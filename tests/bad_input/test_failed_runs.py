"""What a failed attempt leaves behind, and how the landings before a bad record are committed all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of, hour
from tests.refusals import told

POISONED = """\
def score(row):
    if row.x == 666:
        raise ValueError("poison")
    return row.x * 2
"""


@pytest.fixture(scope="module")
def failed(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Landing 3 is good, landing 4 has a record that the job's code cannot take, and a run over both has failed."""
    bench = copy_of(template, tmp_path_factory.mktemp("failed") / "project")
    bench.code(POISONED)
    bench.done("land activity")
    bench.rows("h3", [*hour(3)[:-1], {**hour(3)[-1], "x": 666}])
    bench.done("land activity")
    refusal = bench.refuses("run counts", "node-failed", node="scores")
    assert "`on_error: {scores: quarantine}`" not in str(refusal.facts["error"])
    return bench


@pytest.fixture
def bench(failed: Bench, tmp_path: Path) -> Bench:
    return copy_of(failed, tmp_path / "project")


def test_the_good_landings_before_a_poisoned_record_can_be_committed(bench: Bench) -> None:
    assert [one["epoch"] for one in bench.json("plan counts --through 3")["epochs"]] == [3]
    assert bench.json("run counts --through 3")["epochs"] == [3, 3]
    bench.refuses("run counts", "node-failed")
    bench.code(POISONED.replace("raise ValueError", "return 0  # "))
    assert bench.json("run counts")["taken_over"][0]["epochs"] == [4, 4]


@pytest.mark.slow
def test_after_a_run_was_killed_plan_and_run_say_what_to_set(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.done("land activity")
    bench.code("import os\n\ndef score(row):\n    os.kill(os.getpid(), 9)\n")
    command = [sys.executable, "-m", "rewindow", "run", "counts", "--project", str(bench.root)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -9
    bench.code(POISONED)
    finding = told((one.message for one in bench.findings("counts")), "run-unfinished", run="main/3")
    assert "was killed" in str(finding.facts["how"])
    assert "exit code 137" in bench.json("plan counts")["ended"]
    assert "exit code 137" in bench.done("run counts").err
    assert "was killed" not in bench.done("run counts").err


def test_a_run_that_failed_by_itself_is_not_called_killed(bench: Bench) -> None:
    finding = told((one.message for one in bench.findings("counts")), "run-unfinished", run="main/3")
    for text in (str(finding.facts["how"]), bench.json("plan counts")["ended"]):
        assert "ended without finishing it" in text
        assert "killed" not in text
    assert "killed" not in bench.done("run counts --through 3").err
