"""The Spark session of the player's command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rewindow.control.run import Engine
from rewindow.engine.spark.session import local_session
from rewindow.engine.spark.spark_engine import SparkEngine


@contextmanager
def spark_engine() -> Iterator[Engine]:
    """Yield an engine on a local session with one core, which ends with the block."""
    root = Path(__file__).resolve().parents[2]
    session = local_session(cores=1, python_path=[root])
    try:
        yield SparkEngine(session, slots=1, import_paths=[str(root)])
    finally:
        session.stop()
