"""The engine that runs small sub-topologies in this process and hands the others to Spark.

A task is Python and Arrow wherever it runs, so the files are the same (L3). Inline, user code shares the process of the
command: its prints go to stderr, and it cannot end the command with a success that never happened.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import accumulate
from typing import NoReturn, Protocol

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import Execution, SubTopologyWork
from rewindow.engine.worker.failures import translate_text
from rewindow.engine.worker.local import LocalEngine
from rewindow.errors import RewindowError
from rewindow.storage.locations import filesystem_of, is_uri
from rewindow.streams.state.stores import JOIN, KEY_VALUE, RECORDS, WINDOW
from rewindow.streams.topology import asked_by_topics

RECORD_BYTES = 16
"""Estimated bytes per record of an internal log, or of a changelog that is read whole."""
PRUNED_BYTES = 512
"""Changelog bytes that cost as much as one record where a task restores only some keys or live windows."""
VECTORIZED_SHARE = 10
"""How many records vectorized execution takes in the time of one record in record execution."""
_WHOLE = (KEY_VALUE, JOIN, RECORDS)
"""The kinds of stores that vectorized execution reads whole: those of joins."""


class SubTopologyRunner(Protocol):
    """Runs sub-topologies."""

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return the reports by partition."""
        ...


class InlineEngine(LocalEngine):
    """Runs small sub-topologies in this process and the others on Spark, which starts with the first of them."""

    def __init__(
        self,
        spark: Callable[[], SubTopologyRunner],
        *,
        most: int,
        execution: Execution = Execution.AUTO,
        on_task: Callable[[TaskReport], None] | None = None,
        on_share: Callable[[float], None] | None = None,
        on_other: Callable[[str], None] | None = None,
        is_shareable: Callable[[str], bool] = lambda _root: True,
    ) -> None:
        """``most``: the largest `size_of` a sub-topology that runs here.

        ``on_task`` gets each task's report, ``on_share`` the share of the records that is done, from 0 to 1.
        ``on_other`` gets what is left to Spark and why: ``run sub-topology 0: ...``.
        ``is_shareable`` returns whether a file of the table in a folder may have rows of several tasks.
        """
        super().__init__(execution, is_shareable=is_shareable)
        self._spark, self._most = spark, most
        self._on_task, self._on_share, self._on_other = on_task, on_share, on_other

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return the reports by partition. Raises what a worker would."""
        work = self.with_execution(work)
        if why := self._why_spark(work):
            if self._on_other is not None:
                self._on_other(f"run sub-topology {work.sub_topology}: {why}")
            return self._spark().run_sub_topology(work)
        shares = iter(_shares(work))

        def on_task(report: TaskReport) -> None:
            if self._on_share is not None:
                self._on_share(next(shares))
            if self._on_task is not None:
                self._on_task(report)

        with as_in_a_worker():
            return self.run_here(work, on_task)

    def _why_spark(self, work: SubTopologyWork) -> str:
        """Return why Spark runs a sub-topology; empty if it runs here."""
        if work.tables:
            topic, table = min(work.tables.items())
            return f"tasks cannot open the log of {topic!r}: {table.why}"
        size = size_of(work)
        if size <= self._most:
            return ""
        share = (
            f", of which vectorized execution counts 1 in {VECTORIZED_SHARE}"
            if work.execution is Execution.VECTORIZED
            else ""
        )
        size *= VECTORIZED_SHARE if share else 1
        return f"about {size:,} records to read and rows to restore{share and share + ','} are more than `inline: {self._most}`"


def _shares(work: SubTopologyWork) -> list[float]:
    """Return the share of the records that is done after each task, from 0 to 1."""
    sizes = [1 + sum(end - start for log in task.logs.values() for start, end in log.bounds) for task in work.tasks]
    return [done / sum(sizes) for done in accumulate(sizes)]


def size_of(work: SubTopologyWork) -> int:
    """Estimate the cost of a sub-topology, in records of record execution: records to take and rows to restore.

    The records of internal logs and the rows of changelogs are estimated from the sizes of their files.
    """
    part = work.code.topology.sub_topologies()[work.sub_topology]
    is_vectorized = work.execution is Execution.VECTORIZED
    asked = asked_by_topics(part)
    internal = [file.path for task in work.tasks for files in task.internal.values() for file in files]
    size = sum(end - start for task in work.tasks for log in task.logs.values() for start, end in log.bounds)
    size += _bytes(internal) // RECORD_BYTES
    for store in part.stores:
        is_pruned = store.kind == WINDOW or bool(asked.get(store.name)) or (is_vectorized and store.kind not in _WHOLE)
        stored = _bytes({path for task in work.tasks for path in task.stores.get(store.name, ())})
        size += stored // (PRUNED_BYTES if is_pruned else RECORD_BYTES)
    return size // VECTORIZED_SHARE if is_vectorized else size


def _bytes(paths: Iterable[str]) -> int:
    names = list(paths)
    if not names:
        return 0
    system, _ = filesystem_of(names[0])
    located = [filesystem_of(name)[1] for name in names] if is_uri(names[0]) else names
    return sum(info.size or 0 for info in system.get_file_info(located))


@contextmanager
def as_in_a_worker() -> Iterator[None]:
    """Give user code no more rights than in a worker: stdout belongs to the command's own output."""
    leave = os._exit
    os._exit = _refuse
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (RewindowError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise translate_text(traceback.format_exc()) from error
    finally:
        os._exit = leave


def _refuse(status: int) -> NoReturn:
    """Replace `os._exit`: ending the process here would look like a successful run."""
    message = f"os._exit({status})"
    raise SystemExit(message)
