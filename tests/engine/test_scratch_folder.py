"""The temporary folders of landings: a killed process leaves its own, and the next landing removes it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rewindow.engine.worker.landing.sorted_runs import PREFIX, scratch_folder

HOLDS = """\
import pathlib, sys
from rewindow.engine.worker.landing.sorted_runs import scratch_folder

with scratch_folder() as folder:
    pathlib.Path(folder, "run-0.arrow").write_text("rows")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_the_folder_of_a_killed_process_goes_and_that_of_a_living_one_stays() -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLDS], **pipes) as process:  # type: ignore[call-overload]
        left = Path(process.stdout.readline().strip())
        assert left.name.startswith(PREFIX)
        with scratch_folder() as mine, scratch_folder():
            assert (left / "run-0.arrow").exists()
            assert Path(mine).exists()
            process.kill()
            process.wait()
            with scratch_folder():
                assert not left.exists()
                assert Path(mine).exists()


def test_what_nobody_knows_to_be_abandoned_stays(temporary: Path) -> None:
    unlocked, elsewhere, linked = (temporary / f"{PREFIX}{name}" for name in ("unlocked", "elsewhere", "linked"))
    unlocked.mkdir()
    elsewhere.mkdir()
    (elsewhere / "lock").write_text("another-host")
    linked.symlink_to(elsewhere)
    with scratch_folder():
        pass
    assert set(temporary.iterdir()) == {unlocked, elsewhere, linked}


def test_a_folder_is_removed_with_its_landing(temporary: Path) -> None:
    with scratch_folder() as folder:
        Path(folder, "run-0.arrow").write_text("rows")
    assert list(temporary.iterdir()) == []
