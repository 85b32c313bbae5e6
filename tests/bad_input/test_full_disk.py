"""A really full disk: a small tmpfs in a process with its own mounts."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of, goes_on, make_template, without_spark

SIZE = 6 << 20
IN_A_SPACE = ("unshare", "--user", "--map-root-user", "--mount", "--")


def is_allowed(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    return subprocess.run([*IN_A_SPACE, *mount], capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_a_full_disk_ends_with_71_and_the_next_call_continues(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if not is_allowed(disk):
        pytest.skip("users cannot mount file systems on this machine")
    script = (
        f"mount -t tmpfs -o size={SIZE} tmpfs {disk} && exec {sys.executable} -m tests.bad_input.test_full_disk {disk}"
    )
    done = subprocess.run([*IN_A_SPACE, "sh", "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["decided"]
    assert found["ends"], found
    for code, error in found["ends"]:
        assert (code, os.strerror(errno.ENOSPC) in error) == (71, True), error
        assert "Traceback" not in error


def full_and_free(disk: Path) -> dict[str, object]:
    """Land and replay on a nearly full disk, then again after space was freed."""
    with without_spark():
        bench = copy_of(make_template(disk.parent / "made"), disk / "project")
        ends, decided = [], True
        for words in (("land", "activity"), ("run", "counts")):
            before = bench.decided()
            fill(disk / "filler")
            answer = bench.run(*words)
            ends.append((answer.code, answer.err))
            (disk / "filler").unlink()
            decided = decided and bench.decided() == before
            assert bench.run(*words).code == 0
        goes_on(Bench(bench.root))
        return {"ends": ends, "decided": decided}


def fill(path: Path) -> None:
    """Fill the disk to the last byte."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


if __name__ == "__main__":
    print(json.dumps(full_and_free(Path(sys.argv[1]))))
