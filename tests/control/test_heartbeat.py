"""Which attempts count as alive: those whose process exists, as far as this host can know, and whose heartbeat is fresh."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from rewindow.control.heartbeat import SILENT_SECONDS, Heartbeat, is_alive, remove_abandoned, this_attempt, was_killed
from rewindow.storage import progress
from rewindow.storage.progress import counted, progressed


def test_this_process_is_alive(tmp_path: Path) -> None:
    attempt = this_attempt()
    with Heartbeat(str(tmp_path), attempt):
        assert is_alive(str(tmp_path), attempt)
    assert not is_alive(str(tmp_path), attempt), "a notebook's process outlives its run"


def test_a_reused_pid_is_not_the_same_process(tmp_path: Path) -> None:
    assert not is_alive(str(tmp_path), replace(this_attempt(), pid_started=1))


def test_a_killed_child_is_dead_before_it_is_reaped(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        process = psutil.Process(child.pid)
        attempt = replace(this_attempt(), pid=child.pid, pid_started=round(process.create_time() * 1000))
        assert is_alive(str(tmp_path), attempt)
        child.kill()
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        assert not is_alive(str(tmp_path), attempt)
    finally:
        child.kill()
        child.wait()
    assert not is_alive(str(tmp_path), attempt)


def test_an_attempt_on_another_host_lives_as_long_as_its_heartbeat(tmp_path: Path) -> None:
    attempt = replace(this_attempt(), host="elsewhere")
    assert not is_alive(str(tmp_path), attempt)
    with Heartbeat(str(tmp_path), attempt):
        assert is_alive(str(tmp_path), attempt)
        (beat,) = (tmp_path / "rewindow" / "heartbeats").iterdir()
        silent = time.time() - SILENT_SECONDS - 1
        os.utime(beat, (silent, silent))
        assert not is_alive(str(tmp_path), attempt)
    assert not is_alive(str(tmp_path), attempt)


def test_gc_removes_heartbeats_of_processes_that_were_killed_long_ago(tmp_path: Path) -> None:
    killed, recent = replace(this_attempt(), pid_started=1), replace(this_attempt(), pid_started=1)
    folder = tmp_path / "rewindow" / "heartbeats"
    remove_abandoned(str(tmp_path), 0)
    with Heartbeat(str(tmp_path), alive := this_attempt()):
        for one in (killed, recent):
            (folder / one.id).touch()
        days_ago = time.time() - 9 * 24 * 3600
        os.utime(folder / killed.id, (days_ago, days_ago))
        remove_abandoned(str(tmp_path), 8 * 24 * 3_600_000)
        assert [was_killed(str(tmp_path), one) for one in (killed, recent)] == [False, True]
        assert {beat.name for beat in folder.iterdir()} == {alive.id, recent.id}
        remove_abandoned(str(tmp_path), 0)
        assert {beat.name for beat in folder.iterdir()} == {alive.id, recent.id}, "a run of it may be unfinished"


@pytest.fixture
def beat_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewindow.control.heartbeat.BEAT_SECONDS", 0.01)
    monkeypatch.setattr(progress, "BEAT_SECONDS", 0)


def age(beat: Path) -> None:
    """Make a heartbeat file too old."""
    silent = time.time() - SILENT_SECONDS - 1
    os.utime(beat, (silent, silent))


@pytest.mark.usefixtures("beat_often")
@pytest.mark.parametrize("host", [None, "elsewhere"])
def test_an_attempt_without_progress_loses_its_heartbeat_and_gets_it_back_with_the_next_step(
    tmp_path: Path, host: str | None
) -> None:
    mine = this_attempt()
    attempt = mine if host is None else replace(mine, host=host)
    with Heartbeat(str(tmp_path), attempt, stalled_ms=50):
        assert is_alive(str(tmp_path), attempt)
        time.sleep(0.1)
        (beat,) = (tmp_path / "rewindow" / "heartbeats").iterdir()
        age(beat)
        time.sleep(0.1)
        assert not is_alive(str(tmp_path), attempt)
        assert was_killed(str(tmp_path), attempt)
        progressed()
        while not is_alive(str(tmp_path), attempt):
            time.sleep(0.001)


@pytest.mark.usefixtures("beat_often")
def test_records_that_a_worker_takes_keep_the_attempt_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = this_attempt()
    with Heartbeat(str(tmp_path), attempt, stalled_ms=0):
        (beat,) = (tmp_path / "rewindow" / "heartbeats").iterdir()
        monkeypatch.setattr(progress._Progress, "is_worker", True)
        batches = counted(["one", "two"])
        age(beat)
        assert not is_alive(str(tmp_path), attempt)
        next(batches)
        assert is_alive(str(tmp_path), attempt)
        beat.unlink()
        next(batches)
        assert not beat.exists()  # the command has ended
