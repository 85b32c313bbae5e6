"""Translate Spark's exceptions into one-line messages that state the fix, without Java stack traces."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from rewindow.engine.worker.failures import find_marked, translate_text
from rewindow.errors import LimitError, RewindowError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def mapped() -> Iterator[None]:
    """Translate Spark's exceptions in the block into a `RewindowError` with a one-line message."""
    try:
        yield
    except (PySparkException, Py4JError, ConnectionRefusedError, ConnectionResetError) as error:
        raise translate(error) from error


def translate(error: BaseException) -> RewindowError:
    """Return the `RewindowError` for an exception of Spark. Returns a `RewindowError` unchanged."""
    if isinstance(error, RewindowError):
        return error
    text = str(error)
    is_lost = isinstance(error, (Py4JNetworkError, ConnectionError))
    if is_lost and find_marked(text) is None:
        return LimitError(
            "Spark's JVM has ended (killed, or out of memory): run again, and give the target more memory if it happens "
            "twice (spark: {spark.driver.memory: 4g})"
        )
    return translate_text(text)
