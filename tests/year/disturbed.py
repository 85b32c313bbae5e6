"""Disturbances: commands that are killed, called twice at once, or made by an older version."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from contextlib import suppress
from pathlib import Path

from tests.year.calls import here
from tests.year.project import FEED, JOB
from tests.year.requests import Requests
from tests.year.watched import CODE, start

RELEASED = "32247410"
"""The commit whose code plays the hours before the upgrade: it writes the format that this version reads, without stored folds.

Warehouses of older commits (9131e3e wrote `tests/formats/format_2.tar.xz`) work, too, but keep what they were created with:
Delta logs of ten years for their ledgers, and in changelogs a file of each partition for each run. No release made such a
warehouse, and its costs are not those of this version.
"""
REPOSITORY = Path(__file__).resolve().parents[2]
WORDS = {"land": ("land", FEED), "run": ("run", JOB)}
POLL_S = 0.001
BOTH = frozenset({0, 75})
"""How two commands at once may end: the one that is overtaken says so."""


def kill(root: Path, words: tuple[str, ...], files: int) -> str:
    """Start a command and kill it when it has opened so many files, which no other load on the machine delays.

    Return ``killed``, or ``ended`` if it opened fewer.
    """
    with Requests(root / "warehouse", root / "raw") as requests:
        process = start(root, *words, out=subprocess.DEVNULL, err=subprocess.DEVNULL)
        while process.poll() is None and requests.files < files:
            time.sleep(POLL_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return "killed" if process.wait() == -signal.SIGKILL else "ended"


def call_twice(root: Path, words: tuple[str, ...]) -> list[int]:
    """Call a command in two processes at once. Return the exit codes. Raises `AssertionError` for one that is not expected."""
    processes = [start(root, *words, "--json") for _ in range(2)]
    said = [process.communicate() for process in processes]
    codes = [process.returncode for process in processes]
    assert BOTH.issuperset(codes), f"two calls of {' '.join(words)} ended with {codes}: {said}"
    return codes


def released_code(folder: Path) -> Path | None:
    """Return a folder with the package of the released format's commit, or None if the clone does not have it."""
    lib = folder / "lib"
    if not lib.exists():
        packed = subprocess.run(
            ["git", "archive", RELEASED, "lib"],  # noqa: S607 - whatever git the developer has
            cwd=REPOSITORY,
            capture_output=True,
            check=False,
        )
        if packed.returncode:
            return None
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
    return lib


def by_released_code(root: Path, lib: Path, words: tuple[str, ...]) -> None:
    """Call a command of the released version. Raises `AssertionError` if it fails, or if the code is not the released one's."""
    code = f"import rewindow; assert rewindow.__file__.startswith({str(lib)!r}), rewindow.__file__; {CODE}"
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--json"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(lib)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, f"{RELEASED} {' '.join(words)}: {done.stdout[-500:]} {done.stderr[-1500:]}"


def upgrade(root: Path) -> list[dict[str, object]]:
    """Upgrade as the guide says. Return what `upgrade` says of each table."""
    here(root, "upgrade", "--dry-run").checked()
    done = here(root, "upgrade").checked()
    for words in (("status",), ("plan", JOB)):
        here(root, *words).checked()
    return list(done.data["tables"])
