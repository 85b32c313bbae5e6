"""Temporary folders: a terminated process removes its own; that of a killed one goes with the next process that needs one."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

import pytest

from rewindow.contracts.exit_codes import CODES
from rewindow.storage import scratch
from rewindow.storage.scratch import PREFIX, make_folder, remove_folder, scratch_folder

HOLDS = """\
import pathlib, sys
from rewindow.storage.scratch import remove_at_signals, scratch_folder

remove_at_signals()
with scratch_folder() as folder:
    pathlib.Path(folder, "run-0.arrow").write_text("rows")
    print(folder, flush=True)
    sys.stdin.read()
"""
IN_JOBS_CODE = HOLDS.replace("    sys.stdin", "    with as_in_a_worker():\n        sys.stdin").replace(
    "\n\n", "\nfrom rewindow.engine.worker.worker_errors import as_in_a_worker\n\n"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    # Other tests of this process may have left folders, which are in another place.
    for name, value in (("root", None), ("folders", set()), ("lock", None)):
        monkeypatch.setattr(scratch._Own, name, value, raising=False)
    return tmp_path


def test_the_folder_of_a_killed_process_goes_and_that_of_a_living_one_stays() -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLDS], **pipes) as process:  # type: ignore[call-overload]
        left = Path(process.stdout.readline().strip()).parent
        assert left.name.startswith(PREFIX)
        with scratch_folder() as mine, scratch_folder() as second:
            assert list(left.glob("*/run-0.arrow"))
            assert Path(mine).exists()
            process.kill()
            process.wait()
            remove_folder(mine)
            remove_folder(second)
            with scratch_folder() as third:
                assert not left.exists()
                assert Path(third).exists()


def test_what_nobody_knows_to_be_abandoned_stays(temporary: Path) -> None:
    unlocked, elsewhere, linked = (temporary / f"{PREFIX}{name}" for name in ("unlocked", "elsewhere", "linked"))
    unlocked.mkdir()
    elsewhere.mkdir()
    (elsewhere / "lock").write_text("another-host")
    linked.symlink_to(elsewhere)
    with scratch_folder():
        pass
    assert set(temporary.iterdir()) == {unlocked, elsewhere, linked}


def test_a_folder_is_removed_when_its_work_is_done(temporary: Path) -> None:
    with scratch_folder() as folder:
        Path(folder, "run-0.arrow").write_text("rows")
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("code", [HOLDS, IN_JOBS_CODE], ids=["command", "job's code"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_process_removes_its_folders_at_once(temporary: Path, number: signal.Signals, code: str) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:  # type: ignore[call-overload]
        assert Path(process.stdout.readline().strip(), "run-0.arrow").exists()
        process.send_signal(number)
        assert process.wait() == 128 + number in CODES
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_ends_while_it_takes_its_lock_leaves_nothing_for_ever(temporary: Path, number: int) -> None:
    ending = f"import fcntl, os, time\nfcntl.flock = lambda *_: (os.kill(os.getpid(), {number}), time.sleep(10))\n"
    ended = subprocess.run([sys.executable, "-c", ending + HOLDS], check=False)
    assert ended.returncode in {128 + number, -number}
    for left in temporary.iterdir():
        assert number == signal.SIGKILL
        os.utime(left, (0, 0))
    with scratch_folder() as mine:
        assert list(temporary.iterdir()) == [Path(mine).parent]


def test_an_empty_folder_that_a_killed_process_left_goes_after_a_minute(temporary: Path) -> None:
    young, old = temporary / f"{PREFIX}young", temporary / f"{PREFIX}old"
    for folder in (young, old):
        folder.mkdir()
    os.utime(old, (0, 0))
    with scratch_folder():
        pass
    assert list(temporary.iterdir()) == [young]


def test_the_lock_of_a_folder_is_removed_last(monkeypatch: pytest.MonkeyPatch) -> None:
    removed = []
    remove = shutil.rmtree

    def removing(path: Path, **options: bool) -> None:
        removed.append((Path(path).name, sorted(inner.name for inner in Path(path).parent.iterdir())))
        remove(path, **options)

    with scratch_folder() as folder, scratch_folder() as second:
        root = Path(folder).parent
        with monkeypatch.context() as watched:
            watched.setattr(shutil, "rmtree", removing)
            scratch.remove_all()
    assert {name for name, _ in removed[:2]} == {Path(folder).name, Path(second).name}
    assert all("lock" in beside for _, beside in removed[:2])
    assert not root.exists()


def test_a_process_that_ignores_hangups_goes_on(temporary: Path) -> None:
    ignoring = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{HOLDS}"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", ignoring], **pipes) as process:  # type: ignore[call-overload]
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        process.communicate()
        assert process.returncode == 0
    assert list(temporary.iterdir()) == []


class Copy:
    """Something with a folder that lasts as long as the object."""

    def __init__(self) -> None:
        self.folder = make_folder()
        self.me = self  # only the garbage collector finds out that nobody needs it
        weakref.finalize(self, remove_folder, self.folder)


def test_garbage_that_is_collected_while_a_folder_is_made_does_no_harm(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Copy()
    make = tempfile.mkdtemp

    def collecting(*args: str, **options: str) -> str:
        gc.collect()
        return make(*args, **options)

    monkeypatch.setattr(tempfile, "mkdtemp", collecting)
    with scratch_folder() as folder:
        (root,) = temporary.iterdir()
        assert Path(folder).parent == root
    assert list(temporary.iterdir()) == []
