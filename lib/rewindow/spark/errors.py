"""From Spark's exceptions to one line that names the fix. No Java stack trace reaches a user who did not ask for it.

A worker's own `RewindowError` crosses the JVM as text only, so it is marked there and found again here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from rewindow import errors
from rewindow.errors import DataError, RewindowError, StorageError

_MARK = "rewindow-error: "
_MARKED = re.compile(re.escape(_MARK) + r"(\w+) (\".*\")")
_JAVA_LINE = re.compile(r"^\s*(at |\.\.\. \d+ more|Caused by: |JVM stacktrace)", re.MULTILINE)
_LONGEST = 400


def mark(error: RewindowError) -> str:
    """Return a worker's error as text that `mapped` turns back into it."""
    return f"{_MARK}{type(error).__name__} {json.dumps(str(error))}"


@contextmanager
def mapped() -> Iterator[None]:
    """Turn what Spark raises inside the block into a `RewindowError` with a message of one line."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise translate(error) from error


def translate(error: Exception) -> RewindowError:
    """Return the `RewindowError` that an exception of Spark's stands for."""
    text = str(error)
    marked = _MARKED.search(text)
    if marked:
        kind = getattr(errors, marked[1], RewindowError)
        return kind(json.loads(marked[2]))  # type: ignore[no-any-return]
    first = _first_line(text)
    if "PATH_NOT_FOUND" in text or "FileNotFoundException" in text or "FILE_NOT_EXIST" in text:
        return errors.SourceError(f"{first}. Check the path in the configuration")
    if "OutOfMemoryError" in text:
        return errors.LimitError(f"{first}. Give the target more memory (spark.driver.memory) or fewer cores")
    if "PythonException" in type(error).__name__ or "Traceback (most recent call last)" in text:
        return DataError(f"{_last_python_line(text)}. Run with --debug to see where")
    return StorageError(f"Spark failed: {first}. Run with --debug for its own account")


def _first_line(text: str) -> str:
    plain = text[: match.start()] if (match := _JAVA_LINE.search(text)) else text
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    line = next((line for line in lines if not line.startswith("An error occurred while calling")), "no message")
    return line.removeprefix(": ")[:_LONGEST].rstrip(".")


def _last_python_line(text: str) -> str:
    plain = text[: match.start()] if (match := _JAVA_LINE.search(text)) else text
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    return (lines[-1] if lines else "no message")[:_LONGEST].rstrip(".")
