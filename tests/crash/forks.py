"""Child processes by fork: each case gets its own process without the second that imports take.

The parent must never have opened a table: native libraries start threads, which do not survive a fork.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

# A child does little work, and starting thread pools would take longer than that.
os.environ.setdefault("TOKIO_WORKER_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

SECONDS = 120
"""The time limit of a child. One that takes longer hangs, which is a failure."""


@dataclass
class Child:
    """A forked process. ``said``: what it has written to its pipe so far."""

    pid: int
    pipe: int
    said: bytes = b""
    status: int | None = None

    def finish(self, seconds: float = SECONDS) -> int:
        """Wait until the child ends, and return its exit code, which is negative for a signal.

        Raises `TimeoutError` after killing a child that takes too long.
        """
        deadline = time.monotonic() + seconds
        while chunk := self._read(deadline):
            self.said += chunk
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def _read(self, deadline: float) -> bytes:
        ready, _, _ = select.select([self.pipe], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            message = f"the child {self.pid} said {self.said[-200:]!r} and hangs"
            raise TimeoutError(message)
        return os.read(self.pipe, 1 << 16)


def fork(work: Callable[[int], None]) -> Child:
    """Run ``work`` in a child. Its argument is the descriptor of a pipe to the parent."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            work(writing)
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the child reports every error
            os.write(writing, json.dumps({"error": traceback.format_exc()[-2000:]}).encode())
            os._exit(1)
    os.close(writing)
    return Child(pid, reading)


def answer(work: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Run ``work`` in a child and return its result, passed as JSON. Raises `RuntimeError` with the child's traceback."""

    def say(pipe: int) -> None:
        text = json.dumps(work()).encode()
        while text:
            text = text[os.write(pipe, text) :]

    child = fork(say)
    code = child.finish(seconds)
    said = json.loads(child.said) if child.said else None
    if code != 0:
        raise RuntimeError(said["error"] if said else f"the child ended with {code} and said nothing")
    return said


def side_by_side(jobs: Iterable[Callable[[], Any]], at_once: int) -> Iterator[Any]:
    """Run each job in a child, ``at_once`` in parallel. Yield the results, passed as JSON, as they come.

    Raises `RuntimeError` with the child's traceback.
    """
    for said in attempts(jobs, at_once):
        if isinstance(said, dict) and "error" in said:
            raise RuntimeError(said["error"])
        yield said


def attempts(jobs: Iterable[Callable[[], Any]], at_once: int) -> Iterator[Any]:
    """Run each job like `side_by_side`. A failed one yields ``{"error": ...}``."""
    running: dict[int, Child] = {}
    waiting = iter(jobs)
    while True:
        while len(running) < at_once and (job := next(waiting, None)) is not None:
            child = fork(_saying(job))
            running[child.pipe] = child
        if not running:
            return
        ready, _, _ = select.select(list(running), [], [])
        for pipe in ready:
            if chunk := os.read(pipe, 1 << 16):
                running[pipe].said += chunk
                continue
            child = running.pop(pipe)
            os.close(pipe)
            _, status = os.waitpid(child.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            yield json.loads(child.said) if child.said else {"error": f"a child ended with {code}"}


def _saying(job: Callable[[], Any]) -> Callable[[int], None]:
    def say(pipe: int) -> None:
        text = json.dumps(job()).encode()
        while text:
            text = text[os.write(pipe, text) :]

    return say


def preload(work: Callable[[], Any]) -> None:
    """Import in this process what ``work`` imports, so that later children need not."""

    def loaded() -> list[str]:
        work()
        return sorted(sys.modules)

    for name in answer(loaded):
        if name not in sys.modules and not name.startswith("__"):
            with suppress(ImportError):
                import_module(name)
    gc.freeze()  # a child's collector would otherwise touch, and so copy, every page of the imports
