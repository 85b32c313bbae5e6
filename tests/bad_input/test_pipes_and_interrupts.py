"""Closed pipes and Ctrl-C: the exit code of the command, one sentence, no stack trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rewindow.app.watch import Watch
from tests.bad_input.scene import Bench, copy_of
from tests.cli_process import LIB

pytestmark = pytest.mark.slow

NOTHING, KEPT = "Nothing was committed", "What it had committed is kept"


def started(root: Path, *words: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "rewindow", *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(LIB), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["show", "counts", "--json"], 0),
        (["--help"], 0),
        (["show", "nobody"], 78),
    ],
)
def test_a_closed_pipe_changes_no_exit_code_and_prints_nothing(template: Bench, words: list[str], code: int) -> None:
    with started(template.root, *words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # as `| head -0` does
        said = process.stderr.read().decode()
    assert process.returncode == code, said
    assert "Traceback" not in said
    assert "SystemExit" not in said
    assert (said == "") is (code == 0)


def test_a_closed_pipe_behind_both_streams_is_no_error_either(template: Bench) -> None:
    line = f"{sys.executable} -m rewindow show counts 2>&1 | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["/bin/bash", "-c", line],
        cwd=template.root,
        env={**os.environ, "PYTHONPATH": str(LIB)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_while_the_command_is_being_loaded_prints_one_line(template: Bench) -> None:
    with started(template.root, "show", "counts", PYTHONPROFILEIMPORTTIME="1") as process:
        assert process.stderr is not None
        for line in process.stderr:  # this variable makes Python name each module that it has loaded
            if line.rstrip().endswith(b"rewindow.app.times"):
                process.send_signal(signal.SIGINT)
                break
        said = process.stderr.read().decode()
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "interrupted before it began" in said


def interrupted_at(bench: Bench, step: str, *words: str) -> str:
    def pressing(self: Watch, name: str) -> None:
        watch(self, name)
        if name.startswith(step):
            raise KeyboardInterrupt

    watch = Watch.__call__
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Watch, "__call__", pressing)
        answer = bench.run(*words)
    assert answer.code == 130
    assert answer.out == ""
    return answer.err


def test_ctrl_c_says_what_was_kept_and_what_comes_next(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    early = interrupted_at(bench, "write events", "land", "activity")
    assert "at the step 'write events'" in early
    assert NOTHING in early
    late = interrupted_at(bench, "publish events", "land", "activity")
    assert KEPT in late
    assert bench.run("land", "activity").code == 0
    assert NOTHING in interrupted_at(bench, "execute", "run", "counts")
    assert KEPT in interrupted_at(bench, "publish", "run", "counts")
    assert bench.run("run", "counts").code == 0


def test_tables_lag_until_the_same_rewind_is_called_again(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    interrupted_at(bench, "publish", "rewind", "counts", "--to", "1")
    for line in ("show counts", "plan counts"):
        assert bench.json(line)["lagging"] == {"output/totals": 1}
    assert [bench.json("rewind counts --to 1")["lagged"] for _ in range(2)] == [["output/totals"], []]
    assert bench.json("show counts")["lagging"] == {}


def test_the_same_backfill_without_a_name_continues_on_its_branch(template: Bench, tmp_path: Path) -> None:
    bench, counts = copy_of(template, tmp_path / "project"), []
    interrupted_at(bench, "plan", "backfill", "counts", "--from", "1")
    for _ in range(2):
        bench.done("backfill counts --from 1")
        counts.append(len(bench.json("branch list counts")["branches"]))
    assert counts == [2, 3], "of main and the backfills"


def test_ctrl_c_in_a_command_without_steps_is_said_too(
    template: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = copy_of(template, tmp_path / "project")

    def interrupt(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rewindow.app.describe_job.describe_job", interrupt)
    answer = bench.run("show", "counts")
    assert (answer.code, "interrupted" in answer.err) == (130, True)


def test_a_job_that_calls_exit_is_named_as_such(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.write("bench_job.py", "raise SystemExit(3)\n")
    answer = bench.run("plan", "counts")
    assert answer.code == 78
    assert "This is a bug" not in answer.err
