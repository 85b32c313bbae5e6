"""Map Spark's exceptions to one line that names the fix. No Java stack trace reaches a user who did not ask for it."""

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
    """Turn what Spark raises inside the block into a `RewindowError` with a message of one line."""
    try:
        yield
    except (PySparkException, Py4JError, ConnectionRefusedError, ConnectionResetError) as error:
        raise translate(error) from error


def java_error_message(error: BaseException) -> str:
    """Return what an exception of Spark's means, in one line that names the fix."""
    return str(translate(error))


def translate(error: BaseException) -> RewindowError:
    """Return the `RewindowError` that an exception of Spark's stands for; one of ours is returned as it is."""
    if isinstance(error, RewindowError):
        return error
    text = str(error)
    is_gone = isinstance(error, (Py4JNetworkError, ConnectionError))
    if is_gone and find_marked(text) is None:
        return LimitError(
            "Spark's JVM is gone (killed, or out of memory): run again, and give the target more memory if it happens "
            "twice (spark: {spark.driver.memory: 4g})"
        )
    return translate_text(text)
