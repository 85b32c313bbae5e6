"""What a measurement costs: seconds, CPU-seconds and memory of this process and all below it, the JVM and its workers."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

import psutil

SAMPLE_SECONDS = 0.1


class Meter:
    """Seconds, and CPU-seconds (user and system) of the whole process tree, since it was made."""

    def __init__(self) -> None:
        self._seconds, self._cpu = time.perf_counter(), _tree_cpu()

    def read(self) -> dict[str, float]:
        return {"cpu": round(_tree_cpu() - self._cpu, 3), "seconds": round(time.perf_counter() - self._seconds, 3)}


class PeakMemory:
    """Samples the resident memory of the process tree while it is a context; ``peak_mb`` is the most that it saw.

    Memory that processes share counts for each of them.
    """

    def __init__(self) -> None:
        self.peak_mb = 0
        self._is_over = threading.Event()
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
            self.peak_mb = max(self.peak_mb, sum(map(_memory, _tree())) >> 20)


def _tree() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def _tree_cpu() -> float:
    total = 0.0
    for process in _tree():
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # user and system, its own and that of children it has buried
    return total


def _memory(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return int(process.memory_info().rss)
    return 0
