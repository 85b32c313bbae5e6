"""How far Spark is with the job at hand: finished tasks of all, asked for twice a second while somebody looks."""

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
    """Tell ``say`` the share of finished tasks, from 0 to 1, while the block lasts. Spark Connect does not know it."""
    tracker = status_tracker(spark) if say is not None else None
    if tracker is None or say is None:
        yield
        return
    done = threading.Event()

    def poll() -> None:
        while not done.wait(_SECONDS):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except Py4JError:  # the session is going away: the run itself will say so
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
