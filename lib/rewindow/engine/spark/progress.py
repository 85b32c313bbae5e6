"""Progress of the running Spark job: the share of finished tasks, polled twice a second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from rewindow.engine.spark.session import status_tracker

_SECONDS = 0.5


@contextmanager
def following(spark: SparkSession, say: Callable[[float], None] | None) -> Iterator[None]:
    """Call ``say`` with the share of finished tasks (0 to 1) during the block. Does nothing on Spark Connect."""
    tracker = status_tracker(spark) if say is not None else None
    if tracker is None or say is None:
        yield
        return
    done = threading.Event()

    def poll() -> None:
        while not done.wait(_SECONDS):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except Py4JError:  # the session is stopping; the run itself reports that
                return
            tasks = sum(stage.numTasks for stage in stages if stage)
            if tasks:
                say(sum(stage.numCompletedTasks for stage in stages if stage) / tasks)

    thread = threading.Thread(target=poll, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
