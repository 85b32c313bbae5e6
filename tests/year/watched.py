"""Commands of a project, each in its own process, with its seconds and the peak memory of its process tree."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import psutil

CODE = "from rewindow.app.cli.entry import main; main()"
LIB = Path(__file__).resolve().parents[2] / "lib"
SAMPLE_S = 0.05
NOISE = ("Traceback", "py4j", "panicked", "bug in rewindow", "\tat ")
"""What no message may contain."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command said and cost. ``peak_mb``: resident memory of its process tree; shared pages count for each process."""

    words: tuple[str, ...]
    code: int
    seconds: float
    peak_mb: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """The last line that it said: the error, if there is one."""
        lines = (self.err or self.out).strip().splitlines()
        return lines[-1].strip() if lines else ""

    @property
    def is_clear(self) -> bool:
        """Whether it worked, or ended with 71 and a message for users."""
        return self.code == 0 or (self.code == 71 and bool(self.err) and not any(one in self.err for one in NOISE))


def start(
    root: Path, *words: str, out: int | IO[str] = subprocess.PIPE, err: int | IO[str] = subprocess.PIPE
) -> subprocess.Popen[str]:
    """Start a command line in a project, as the leader of its own process group."""
    paths = os.pathsep.join([str(LIB), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths},
        text=True,
        stdout=out,
        stderr=err,
        start_new_session=True,
    )


def watched(root: Path, *words: str, most_mb: int = 8_000, most_seconds: float = 3_600) -> Done:
    """Run a command line. One that takes more memory or time than the bounds is killed, which is no clear end."""
    begun = time.perf_counter()
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        process = start(root, *words, out=out, err=err)
        peak, over = 0, threading.Event()
        deadline = begun + most_seconds
        while process.poll() is None:
            peak = max(peak, tree_mb(process.pid))
            if peak > most_mb or time.perf_counter() > deadline:
                over.set()
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            time.sleep(SAMPLE_S)
        seconds = time.perf_counter() - begun
        out.seek(0)
        err.seek(0)
        said = err.read() + (f"\nkilled at {peak} MB after {seconds:.0f} s" if over.is_set() else "")
        return Done(words, process.returncode, round(seconds, 2), peak, out.read(), said)


def tree_mb(pid: int) -> int:
    """Return the resident memory of a process and all its children."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        for one in (parent, *parent.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += one.memory_info().rss
    return total >> 20
