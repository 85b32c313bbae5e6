"""The parts of the integration that do not need Airflow: exit codes, command lines, intervals, child processes, watermarks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import typer

from rewindow.airflow import commands
from rewindow.airflow.dag_run import interval_of, is_set, through_of, unread
from rewindow.airflow.log_watermarks import complete_through, epoch_ms, is_complete
from rewindow.airflow.process import Command
from rewindow.app.cli.entry import app as cli
from rewindow.contracts.exit_codes import CODES, Next, meaning, what_next
from rewindow.errors import RewindowError
from rewindow.tables.delta.warehouse import DeltaTables
from tests.docs.commands import commands as commands_below
from tests.refusals import refused

LOG = ["--log-format", "text"]
ROOT = Path(__file__).resolve().parent.parent.parent
SHOULD = {"go on": Next.DONE, "stop": Next.FAIL, "stop, never retry": Next.FAIL, "retry": Next.RETRY}
SHOULD |= {"retry later": Next.RETRY, "retry once, then stop": Next.RETRY_ONCE}


def test_every_exit_code_is_handled_as_its_page_says():
    page = (ROOT / "docs/reference/exit-codes.md").read_text()
    rows = re.findall(r"^\| \[?(\d+)\b.* \| ([a-z, ]+) \|$", page, re.MULTILINE)
    assert [int(code) for code, _ in rows] == list(CODES)
    for code, should in rows:
        assert what_next(int(code)) is SHOULD[should], code


def test_a_limit_is_retried_once_and_signals_and_unknown_codes_always():
    assert what_next(71, limits_before=0) is Next.RETRY_ONCE
    assert what_next(71, limits_before=1) is Next.FAIL
    for code in (None, -9, -15, 130, 134, 137, 143, 3, 255):
        assert what_next(code, limits_before=5) is Next.RETRY, code
    assert what_next(1) is Next.FAIL
    assert what_next(1, accepts={1}) is Next.DONE


def test_every_exit_code_has_a_meaning():
    kinds = [RewindowError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    for kind in kinds:
        assert str(kind.exit_code) in meaning(kind.exit_code)
        assert "is unknown" not in meaning(kind.exit_code), kind
    assert "137" in meaning(-9)
    assert "134" in meaning(-6)
    assert "disappeared" in meaning(None)


def test_a_command_line_is_a_list_without_templates():
    line = commands.command_line(commands.land("orders", "2026-01-01"), project="/p", target="local")
    assert line[:4] == [sys.executable, "-P", "-m", "rewindow"]
    assert line[4:] == [
        "land",
        "orders",
        "--until",
        "2026-01-01",
        "--project",
        "/p",
        "--target",
        "local",
        "--json",
        *LOG,
    ]
    assert commands.run("j", until="T", lands=True) == ["run", "j", "--land", "--until", "T"]
    assert commands.run("j", options=["--accept-changes", "--replan"]) == ["run", "j", "--accept-changes", "--replan"]
    assert commands.run("j; rm -rf /", through="T")[1] == "j; rm -rf /", "no shell interprets the line"
    with refused("template-unrendered"):
        commands.command_line(["run", "{{ params.job }}"], project="/p", target="local")


def test_a_run_stops_at_its_param_or_else_at_its_intervals_end():
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    dag = SimpleNamespace(params={"through": None, "accept_changes": False})
    context = {"data_interval_start": start, "data_interval_end": end, "params": {"through": None}, "dag": dag}
    assert through_of(context) == "2026-01-02T00:00:00+00:00"
    assert interval_of(context) == ["2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"]
    assert through_of({**context, "params": {"through": "2025-12-01"}}) == "2025-12-01"
    assert through_of({"data_interval_end": None}) is None
    assert interval_of({}) is None
    assert not is_set(context, "accept_changes")
    assert is_set({"params": {"accept_changes": True}, "dag": dag}, "accept_changes")
    assert not is_set({"params": {"takeover": True}, "dag": dag}, "takeover")  # the DAG does not have this param
    assert not is_set({}, "takeover")


def test_every_command_accepts_the_options_that_the_operator_adds():
    for (*group, name), command in commands_below(typer.main.get_command(cli), ()):
        if name in {"setup", "init", "test", "schema"} or group == ["databricks"]:
            continue
        line = commands.command_line([*group, name], project="/p", target="local", executable=["rewindow"])
        options = {option for parameter in command.params for option in parameter.opts} | {LOG[0]}
        assert {word for word in line if word.startswith("--")} <= options, (*group, name)


def test_a_string_instead_of_a_list_is_refused():
    assert commands.several("jobs", ["a", "b"]) == ("a", "b")
    with refused("argument-not-list", argument="executable", given="/opt/bin/rewindow"):
        commands.several("executable", "/opt/bin/rewindow")


def test_unknown_conf_keys_are_reported():
    def context(conf):
        return {"dag_run": SimpleNamespace(conf=conf), "dag": SimpleNamespace(params={"through": None})}

    assert unread(context({"through": "2026-01-01", "untill": "2026-01-02"})) == ["untill"]
    assert unread(context(None)) == unread({}) == []


def command(tmp_path: Path, code: str) -> Command:
    return Command([sys.executable, "-c", code], folder=str(tmp_path))


def test_a_command_is_waited_for_and_its_stderr_is_passed_on(tmp_path):
    lines: list[str] = []
    code = "import sys; print('{}'); print('{\"run\": 1}'); sys.stderr.write('one\\ntwo'); sys.exit(74)"
    with command(tmp_path, code) as running:
        assert running.wait(lines.append, poll_s=0.02) == 74
        assert running.result() == {"run": 1}
    assert lines == ["one", "two"]
    assert list(tmp_path.iterdir()) == [], "it leaves no files"


def test_a_command_that_cannot_start_is_a_configuration_error(tmp_path):
    lines: list[str] = []
    with Command(["/no/such/rewindow"], folder=str(tmp_path)) as running:
        assert running.wait(lines.append, poll_s=0.02) == 78
        assert running.result() == {}
    assert "cannot start" in lines[0]


ENDLESS = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(600)"


def test_a_command_that_is_killed_leaves_its_signal(tmp_path):
    for number in (signal.SIGTERM, signal.SIGKILL):
        with command(tmp_path, ENDLESS) as running:
            assert running.wait(lambda line, number=number: os.kill(int(line), number), poll_s=0.02) == 128 + number


def test_stop_ends_the_command_and_nothing_beside_it(tmp_path):
    with command(tmp_path, ENDLESS) as other, command(tmp_path, ENDLESS) as running:
        assert running.wait(lambda _line: running.stop(), poll_s=0.02) == 128 + signal.SIGTERM
        running.stop()  # once more, after its end
        assert other._code() is None


def test_a_block_that_is_left_ends_its_command(tmp_path):
    pids: list[int] = []

    def fail(line: str) -> None:
        pids.append(int(line))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), command(tmp_path, ENDLESS) as running:
        running.wait(fail, poll_s=0.02)
    assert not psutil.pid_exists(pids[0])


def has_ended(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("kills_children", [False, True])
def test_a_command_ends_with_the_worker_that_started_it(tmp_path, number, kills_children):
    worker = f"""
import sys
from rewindow.airflow.process import Command
with Command([sys.executable, "-c", {ENDLESS!r}], folder={str(tmp_path)!r}) as running:
    running.wait(lambda line: print(line, flush=True), poll_s=0.02)
"""
    with subprocess.Popen([sys.executable, "-c", worker], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        pid = int(running.stdout.readline())
        children = psutil.Process(running.pid).children() if kills_children else []
        running.send_signal(number)
        for child in children:
            child.kill()
    assert has_ended(pid)
    assert list(tmp_path.iterdir()) == []


def test_a_command_whose_supervisor_is_killed_does_not_go_on_alone(tmp_path):
    pids: list[int] = []

    def kill_supervisor(line: str) -> None:
        pids.append(int(line))
        os.kill(psutil.Process(int(line)).ppid(), signal.SIGKILL)

    with command(tmp_path, ENDLESS) as running:
        assert running.wait(kill_supervisor, poll_s=0.02) == -signal.SIGKILL
    assert has_ended(pids[0])


def test_a_process_that_cannot_be_started_leaves_no_files(tmp_path, monkeypatch):
    def popen(*_, **__):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("subprocess.Popen", popen)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        command(tmp_path, "pass")
    assert list(tmp_path.iterdir()) == []


def test_the_watermark_is_read_without_spark_and_a_feed_never_landed_has_none(project, monkeypatch):
    where = (str(project), "local", "flights")
    assert complete_through(*where) is None
    assert not is_complete(*where, "2013-01-01")

    class Landing:
        watermark_ms = epoch_ms("2013-02-01T00:00:00Z")

    class Feed:
        landings = (Landing,)

    monkeypatch.setattr(DeltaTables, "feed", lambda self, feed: Feed)
    assert is_complete(*where, "2013-02-01T00:00:00+00:00")
    assert not is_complete(*where, "2013-02-01T00:00:01+00:00")
    with refused("airflow-time-invalid"):
        is_complete(*where, "soon")


def test_a_warehouse_may_be_written_as_the_uri_of_a_folder(project):
    target = project / "conf/targets/local.yaml"
    target.write_text(f"target: local\nwarehouse: file://{project}/warehouse\n")
    assert complete_through(str(project), "local", "flights") is None


def test_a_ledger_in_a_catalog_is_refused_instead_of_waited_for(project):
    with refused("sensor-target-governed", target="databricks"):
        is_complete(str(project), "databricks", "flights", "2013-02-01T00:00:00Z")
