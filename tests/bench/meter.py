"""Measure seconds, CPU-seconds and memory of this process and its children: the JVM and its workers."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

import psutil

SAMPLE_SECONDS = 0.5


class Meter:
    """Seconds and CPU-seconds (user and system) of the process tree since its creation."""

    def __init__(self) -> None:
        self._seconds, self._cpu = time.perf_counter(), _tree_cpu()

    def read(self) -> dict[str, float]:
        return {"cpu": round(_tree_cpu() - self._cpu, 3), "seconds": round(time.perf_counter() - self._seconds, 3)}


class PeakMemory:
    """Samples the resident memory of the process tree within a block; ``peak_mb`` is the maximum.

    Shared memory counts for each process. It also records the CPU-seconds of processes that end.
    """

    def __init__(self) -> None:
        self.peak_mb = 0
        self.peak_worker_mb = 0
        """The maximum of a single Python process below this one."""
        self._is_over = threading.Event()
        self._cpu_before = _sampler["cpu"]
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(SAMPLE_SECONDS):
            sizes = {process: _memory(process) for process in _tree()}
            self.peak_mb = max(self.peak_mb, sum(sizes.values()) >> 20)
            workers = [size for process, size in sizes.items() if process.pid != os.getpid() and _is_python(process)]
            self.peak_worker_mb = max(self.peak_worker_mb, max(workers, default=0) >> 20)
            _tree_cpu()
            _sampler["cpu"] = self._cpu_before + time.thread_time()


_sampler = {"cpu": 0.0}
"""The CPU-seconds of the sampling itself, which are subtracted."""


def _tree() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def _is_python(process: psutil.Process) -> bool:
    try:
        return process.name().startswith("python")
    except psutil.Error:
        return False


_cpu_of: dict[tuple[int, float], float] = {}
"""The last known CPU-seconds of each process, including processes that have ended."""


def _tree_cpu() -> float:
    """Return the CPU-seconds of all processes of the tree, including those that have ended.

    The system does not add up the usage of killed idle workers, so `PeakMemory` samples it.
    """
    for process in _tree():
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            # The system counts other processes in ticks of 10 ms, which is more than a small benchmark takes.
            own = time.process_time() if process.pid == os.getpid() else times.user + times.system
            _cpu_of[process.pid, process.create_time()] = own
    return sum(list(_cpu_of.values())) - _sampler["cpu"]


def _memory(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return int(process.memory_info().rss)
    return 0
