"""What a failed attempt leaves behind, and how the landings before a bad record are committed all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of, hour

POISONED = """\
def score(row):
    if row.x == 666:
        raise ValueError("poison")
    return row.x * 2
"""


@pytest.fixture
def bench(template: Bench, tmp_path: Path) -> Bench:
    """Landing 3 is good, landing 4 has a record that the job's code cannot take, and a run over both has failed."""
    bench = copy_of(template, tmp_path / "project")
    bench.code(POISONED)
    assert bench.run("land", "activity").code == 0
    bench.rows("h3", [*hour(3)[:-1], {**hour(3)[-1], "x": 666}])
    assert bench.run("land", "activity").code == 0
    failed = bench.run("run", "counts")
    assert failed.code == 65
    assert "poison" in failed.err
    advice = "fix the code and run again, with `--accept-changes` if earlier runs had it, or set `on_error: {scores: quarantine}`"
    assert f"{advice} to put such records" in failed.err
    return bench


def test_the_good_landings_before_a_poisoned_record_can_be_committed(bench: Bench) -> None:
    shown = bench.run("plan", "counts", "--through", "3").out
    assert "takes epoch 3" in shown
    assert "is not committed. This run replaces it." in shown
    done = bench.run("run", "counts", "--through", "3", "--json")
    assert (done.code, json.loads(done.out)["epochs"]) == (0, [3, 3])
    assert bench.run("run", "counts").code == 65
    bench.code(POISONED.replace("raise ValueError", "return 0  # "))
    last = bench.run("run", "counts", "--json")
    assert last.code == 0, last.out
    assert json.loads(last.out)["taken_over"][0]["epochs"] == [4, 4]


def test_the_same_request_again_completes_the_plan_of_the_failed_attempt(bench: Bench) -> None:
    bench.code(POISONED.replace("raise ValueError", "return 0  # "))
    done = bench.run("run", "counts")
    assert done.code == 0
    assert "epochs 3 to 4" in done.out
    assert "It completes the plan of an attempt that did not finish." in done.out
    assert "seconds. Report: rewindow report counts" in done.out


def test_after_a_run_was_killed_plan_and_run_say_what_to_set(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    assert bench.run("land", "activity").code == 0
    bench.code("import os\n\ndef score(row):\n    os.kill(os.getpid(), 9)\n")
    command = [sys.executable, "-m", "rewindow", "run", "counts", "--project", str(bench.root)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -9
    bench.code(POISONED)
    status = bench.run("status").out
    assert "was killed before it could say why: `rewindow run counts`. If that was for lack of memory" in status
    assert "Run it again: `rewindow run counts`. If that was for lack of memory" in bench.run("plan", "counts").out
    for words in (("plan", "counts"), ("run", "counts")):
        answer = bench.run(*words)
        assert answer.code == 0, answer.err
        said = " ".join((answer.out + answer.err).split())
        assert "was killed before it could say why" in said
        assert "exit code 137" in said
        assert "`limits:` in the job's file" in said
    assert "was killed" not in bench.run("run", "counts").err


def test_a_run_that_failed_by_itself_is_not_called_killed(bench: Bench) -> None:
    answer = bench.run("plan", "counts")
    assert answer.code == 0
    assert "killed" not in answer.out
    assert (
        "ended without finishing it: it failed with an error, which its own output names, or was interrupted."
        in answer.out
    )
    assert "If it was an error, fix its cause. Run it again: `rewindow run counts`." in answer.out
    status = bench.run("status")
    assert (
        "it failed with an error, which its own output names, or was interrupted: `rewindow run counts`" in status.out
    )
    assert "killed" not in status.out
    assert "killed" not in bench.run("run", "counts", "--through", "3").err
    for page in (answer.out, status.out):
        assert "dead" not in page
        assert "died" not in page
