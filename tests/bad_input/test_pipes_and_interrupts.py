"""Closed pipes and Ctrl-C: the exit code of the command, one sentence, no stack trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rewindow.app.cli.entry import raise_interrupt_again
from rewindow.app.watch import Watch
from tests.bad_input.scene import Answer, Bench, copy_of
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
    assert "interrupted" in said


def interrupted_at(bench: Bench, step: str, *words: str) -> str:
    answer = interrupted(bench, step, *words)
    assert answer.out == ""
    return answer.err


def interrupted(bench: Bench, step: str, *words: str) -> Answer:
    def pressing(self: Watch, name: str) -> None:
        watch(self, name)
        if name.startswith(step):
            raise KeyboardInterrupt

    watch = Watch.__call__
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Watch, "__call__", pressing)
        answer = bench.run(*words)
    assert answer.code == 130
    return answer


def test_ctrl_c_says_what_was_kept_and_what_comes_next(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    early = interrupted_at(bench, "write events", "land", "activity")
    assert "'write events'" in early
    assert NOTHING in early
    late = interrupted_at(bench, "publish events", "land", "activity")
    assert KEPT in late
    assert bench.run("land", "activity").code == 0
    assert NOTHING in interrupted_at(bench, "execute", "run", "counts")
    assert KEPT in interrupted_at(bench, "publish", "run", "counts")
    assert bench.run("run", "counts").code == 0


@pytest.mark.parametrize(
    ("before", "step", "line"),
    [
        ((), "empty", "reset counts --yes"),
        (("backfill counts --from 1 --branch trial",), "decide", "branch drop counts trial"),
        (("!hold", "land activity", "run counts"), "publish", "publish counts --accept"),
        (("land activity", "run counts"), "publish", "rewind counts --to 1"),
    ],
)
def test_ctrl_c_after_a_decision_says_that_it_is_kept(
    template: Bench, tmp_path: Path, before: tuple[str, ...], step: str, line: str
) -> None:
    bench = copy_of(template, tmp_path / "project")
    for words in before:
        if words == "!hold":
            expect = "{table: alerts.totals, expect: [{rows: {max: 0}, on_fail: hold}]}"
            bench.edit("conf/jobs/counts.yaml", "{table: alerts.totals}", expect)
        else:
            assert bench.run(*words.split()).code in {0, 79}
    said = interrupted_at(bench, step, *line.split())
    assert KEPT in said
    assert NOTHING not in said
    bench.done(line)


def test_ctrl_c_in_the_run_after_a_landing_says_that_the_landing_is_kept(template: Bench, tmp_path: Path) -> None:
    assert KEPT in interrupted(copy_of(template, tmp_path / "project"), "execute", "run", "counts", "--land").err


def test_ctrl_c_while_the_result_is_printed_does_not_say_that_nothing_was_committed(
    template: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.done("land activity")

    def interrupt(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("rewindow.app.cli.printing_runs.RunPrinter.ran", interrupt)
        answer = bench.run("run", "counts")
    answer.refused("command-interrupted")
    assert NOTHING not in answer.err
    assert bench.json("run counts")["run"] is None  # the interrupted command had committed the run


class Interrupted:
    """Something during whose collection Ctrl-C is pressed."""

    def __del__(self) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_during_a_callback_is_not_swallowed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", raise_interrupt_again)
    with pytest.raises(KeyboardInterrupt):
        time.sleep(float(bool(Interrupted())) * 10)
    assert capsys.readouterr().err == ""


def test_a_second_ctrl_c_while_the_command_ends_is_an_interrupt_too(template: Bench) -> None:
    code = (
        "import sys; from rewindow.app.cli import entry; from rewindow.__main__ import main\n"
        "def leave(code): raise KeyboardInterrupt\n"
        "entry.leave, sys.argv = leave, ['rewindow', 'ls']; main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(LIB)}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=template.root, env=environment, capture_output=True, check=False
    )
    assert ended.returncode == 130
    assert b"ulimit" not in ended.stderr


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
    assert counts == [2, 3]  # of main and the backfills


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


@pytest.mark.parametrize("redirected", [">&-", "2>&-", ">&- 2>&- <&-", "2>/dev/full"])
def test_a_stream_that_is_closed_or_full_and_not_needed_changes_nothing(bench: Bench, redirected: str) -> None:
    ended = in_shell(bench, f"run counts --land {redirected}")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert bench.done("run counts --json").values["run"] is None  # the run is done


@pytest.mark.parametrize("words", ["--version", "--help", "schema feed", "head counts --json", "ls"])
def test_a_full_stdout_is_blamed_by_name_after_the_work(template: Bench, words: str) -> None:
    ended = in_shell(template, f"{words} >/dev/full")
    assert ended.returncode == 71
    assert b"[stdout-not-written]" in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert b"warehouse" not in ended.stderr


def test_a_full_stdout_hides_neither_the_work_nor_another_error(bench: Bench) -> None:
    assert in_shell(bench, "run counts --land >/dev/full").returncode == 71
    assert bench.done("run counts --json").values["run"] is None  # the run is done
    assert in_shell(bench, "show nobody --json >/dev/full").returncode == 78
    assert in_shell(bench, "show nobody 2>/dev/full").returncode == 78


def in_shell(bench: Bench, line: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["/bin/bash", "-c", f"{sys.executable} -m rewindow {line}"],
        cwd=bench.root,
        env={**os.environ, "PYTHONPATH": str(LIB)},
        capture_output=True,
        check=False,
    )
