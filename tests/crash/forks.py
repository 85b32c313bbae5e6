"""Children by fork: a process of its own for each case, without the second that its imports would take.

The one who forks must never have touched a table: native libraries start threads, which a fork does not take along.
"""

from __future__ import annotations

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

# A child does one small thing: threads that it would start and not use cost more than the thing.
os.environ.setdefault("TOKIO_WORKER_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

SECONDS = 120
"""A child that takes longer hangs, and that is a failure."""


@dataclass
class Child:
    """A process that was forked off. ``said``: what it wrote to its pipe so far."""

    pid: int
    pipe: int
    said: bytes = b""
    status: int | None = None

    def finish(self, seconds: float = SECONDS) -> int:
        """Wait for its end; return its exit code, negative for a signal. Raises `TimeoutError`, then it is dead."""
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
    """Run ``work`` in a child, which gets a descriptor to say something through."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            work(writing)
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the child says why, whatever it was
            os.write(writing, json.dumps({"error": traceback.format_exc()[-2000:]}).encode())
            os._exit(1)
    os.close(writing)
    return Child(pid, reading)


def answer(work: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Run ``work`` in a child and return what it returned, through JSON. Raises `RuntimeError` with its traceback."""

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
    """Do jobs in children of their own, some at once; yield their answers as they come. A failure is ``{"error": ...}``."""
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
    """Import here what ``work`` imports in a child, so that no later child has to."""

    def loaded() -> list[str]:
        work()
        return sorted(sys.modules)

    for name in answer(loaded):
        if name not in sys.modules and not name.startswith("__"):
            with suppress(ImportError):
                import_module(name)
