"""Small stages are run by this process, one task after the other; Spark, which costs more than they do, is asked for the rest.

A task is plain Python and Arrow wherever it runs, so the files are the same (L3). What is different is whose process
user code is in: what it prints goes where messages go, and it cannot end the command as if all were done.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from typing import NoReturn, Protocol

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import Execution, SubTopologyWork
from rewindow.engine.worker.failures import translate_text
from rewindow.engine.worker.local import LocalEngine
from rewindow.engine.worker.record_execution import plan_of, run_tasks
from rewindow.errors import RewindowError
from rewindow.storage.locations import opened
from rewindow.streams.key_pruning import asked_by_topics
from rewindow.streams.state.stores import WINDOW

RECORD_BYTES, PRUNED_BYTES = 16, 512
"""So many bytes of an internal log, or of a changelog that is read whole, are a record; so many of one that is pruned."""
VECTORIZED_SHARE = 10
"""A record costs so many times less where whole columns are taken."""


class SubTopologyRunner(Protocol):
    """What runs stages."""

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return the reports by partition."""
        ...


class InlineEngine(LocalEngine):
    """Runs small stages here and others on Spark, which starts with the first of them."""

    def __init__(
        self,
        spark: Callable[[], SubTopologyRunner],
        *,
        most: int,
        execution: Execution = Execution.AUTO,
        on_task: Callable[[TaskReport], None] | None = None,
    ) -> None:
        """``most``: how many records a stage here may have, see `size_of`. ``execution``, ``on_task``: see Spark's engine."""
        self._spark, self._most, self._execution, self._on_task = spark, most, execution, on_task

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return the reports by partition. Raises what a worker would."""
        work = replace(work, execution=self._execution if work.execution is Execution.AUTO else work.execution)
        if work.tables or size_of(work) > self._most:
            return self._spark().run_sub_topology(work)
        reports = []
        with _as_in_a_worker():
            for report in run_tasks(work, work.tasks):
                reports.append(report)
                if self._on_task is not None:
                    self._on_task(report)
        return sorted(reports, key=lambda report: report.partition)


def size_of(work: SubTopologyWork) -> int:
    """Return how much work a stage is, in records of record execution: records to take and rows to restore.

    Of what lies in internal logs and changelogs only the bytes are known.
    """
    part = work.load_topology().sub_topologies()[work.sub_topology]
    is_vectorized = plan_of(work, part, work.load_logs()) is not None
    asked = asked_by_topics(part)
    size = sum(end - start for task in work.tasks for log in task.logs.values() for start, end in log.bounds)
    size += (
        _bytes(file.path for task in work.tasks for files in task.internal.values() for file in files) // RECORD_BYTES
    )
    for store in part.stores:
        is_pruned = is_vectorized or store.kind == WINDOW or bool(asked.get(store.name))
        stored = _bytes(path for task in work.tasks for path in task.stores.get(store.name, ()))
        size += stored // (PRUNED_BYTES if is_pruned else RECORD_BYTES)
    return size // VECTORIZED_SHARE if is_vectorized else size


def _bytes(paths: Iterable[str]) -> int:
    places = [opened(path) for path in paths]
    return sum(info.size or 0 for info in places[0][0].get_file_info([place for _, place in places])) if places else 0


@contextmanager
def _as_in_a_worker() -> Iterator[None]:
    """See that user code does no more here than it could in a worker: answers on stdout are the command's alone."""
    leave = os._exit
    os._exit = _refuse
    try:
        with redirect_stdout(sys.stderr):
            yield
    except RewindowError:
        raise
    except (Exception, SystemExit) as error:
        raise translate_text(traceback.format_exc()) from error
    finally:
        os._exit = leave


def _refuse(status: int) -> NoReturn:
    """Stand for `os._exit`: nobody is to take a run that was not made for one that was."""
    message = f"os._exit({status})"
    raise SystemExit(message)
