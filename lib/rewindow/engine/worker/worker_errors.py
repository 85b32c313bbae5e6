"""Translate an error message of a worker or of Spark into a `RewindowError` with one line that states the fix.

If a worker itself raises a `RewindowError`, the JVM passes the error on as text. `mark` encodes it, and `find_marked` decodes
it.

User code may also run in the command's process (`as_in_a_worker`). Then its errors are translated in the same way, what it
prints goes to stderr, and it cannot end the command.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Final, NoReturn

from rewindow.errors import AccessError, ConfigError, DataError, LimitError, RewindowError, SourceError, StorageError

_MARK: Final = "rewindow-error:"
_MARKED = re.compile(rf"{_MARK} (?=\[\d)")
_KINDS: Final = {kind.exit_code: kind for kind in RewindowError.__subclasses__()}

_NOISE = re.compile(
    r"An error occurred while calling \S+\.\s*:?\s*"
    r"|Job aborted due to stage failure: Task .*? in stage .*? \(TID \d+\) \(.*?\): "
    r"|SQLSTATE: \w{5};?"
    r"|(?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error): "
)
_JAVA_LINE = re.compile(r"^\s*(?:at \S+\(|\.\.\. \d+ more|JVM stacktrace|Driver stacktrace)")
_BARE_CLASS = re.compile(r"(?:[a-z]\w*\.)+[A-Z][\w$]*")
_CAUSE = "Caused by: "
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)$')
_SQLSTATE = re.compile(r"SQLSTATE: (\w{5})")
_LONGEST = 400

# Maps words in error messages of Spark or Hadoop to an error class, code and fix. The first entry whose word occurs in the
# message applies.
MEANINGS: Final[tuple[tuple[tuple[str, ...], type[RewindowError], str, str], ...]] = (
    (
        # Databricks limits the memory of a function: to 1 GB on serverless.
        ("MEMORY_LIMIT",),
        LimitError,
        "platform-memory-exceeded",
        (
            "a worker needs more memory than the platform gives a function. Nothing was committed. Take fewer landings per run "
            "(`--through N`), or lower `store_memory` in the target; vectorized execution keeps its windows in memory, "
            "`execution: record` spills them"
        ),
    ),
    (
        ("OutOfMemoryError", "MemoryError"),
        LimitError,
        "spark-out-of-memory",
        "out of memory. Give the target more (spark: {spark.driver.memory: 4g}) or fewer cores, or remove a very large record",
    ),
    (
        ('SparkContext.dagScheduler()" is null', "stopped SparkContext", "SparkContext was shut down"),
        LimitError,
        "spark-shut-down",
        (
            "Spark has shut down, usually because it was out of memory. Run again, with more of it "
            "(spark: {spark.driver.memory: 4g})"
        ),
    ),
    (("No space left on device",), LimitError, "disk-full", "free space on the full disk, then run again"),
    (
        (
            "File too large",
            "Too many open files",
            "Cannot allocate memory",
            "can't start new thread",
            "pyo3_runtime.PanicException",
        ),
        LimitError,
        "worker-limit-reached",
        "give the process larger limits (see ulimit), then run again",
    ),
    (
        ("worker exited unexpectedly", "Fatal Python error"),
        LimitError,
        "worker-killed",
        (
            "a Python worker was killed, or the job's code ended it (os._exit, a crash in native code). Nothing was "
            "committed: run again. A kill without a message is usually the kernel's, for lack of memory: set fewer `cores:` in "
            "the target or a lower `store_memory` under `limits:` in the job's file, or raise the container's memory"
        ),
    ),
    (
        ("ExecutorLostFailure", "Container killed", "exit code 137", "exited with code 137", "exit status 137"),
        LimitError,
        "executor-killed",
        (
            "an executor was killed, usually for lack of memory. Nothing was committed: run again, with more memory for Python "
            "(spark: {spark.executor.memoryOverhead: 2g}) or fewer cores (spark: {spark.executor.cores: 2})"
        ),
    ),
    (
        ("PYTHON_VERSION_MISMATCH",),
        ConfigError,
        "worker-python-version-differs",
        (
            "give the workers the Python version of this command (spark: {spark.pyspark.python: ..} in the target, or "
            "PYSPARK_PYTHON of a Spark Connect server)"
        ),
    ),
    (
        ("Cannot run program",),
        ConfigError,
        "worker-python-missing",
        "every executor needs the interpreter that the target names (spark: {spark.pyspark.python: ..})",
    ),
    (
        (
            "Permission denied",
            "PERMISSION_DENIED",
            "INSUFFICIENT_PERMISSIONS",
            "AccessControlException",
            "AccessDenied",
            "Mkdirs failed",
        ),
        AccessError,
        "spark-access-denied",
        "grant the access",
    ),
    (
        ("PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "FILE_NOT_EXIST", "FileNotFoundException", "NoSuchFileException"),
        SourceError,
        "spark-path-missing",
        "restore it, or check the path or table in conf/feeds",
    ),
    (
        ("PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE",),
        ConfigError,
        "catalog-table-read-by-path",
        (
            "use a target with governed tables (`commit: spark`, see docs/deployment/databricks.md) and the table's name in the "
            "catalog, or name another table"
        ),
    ),
    (
        ("UNSUPPORTED_CATALOG_MANAGED_TABLE",),
        ConfigError,
        "catalog-operation-unsupported",
        "the catalog does not do this with catalog-managed tables: use tables without the feature catalogManaged",
    ),
    (
        ("MALFORMED_", "KD000"),
        DataError,
        "file-record-malformed",
        "fix the file, or set the source's options (mode: PERMISSIVE)",
    ),
    (
        ("ModuleNotFoundError: ", "ImportError: "),
        ConfigError,
        "worker-module-missing",
        "install it on Spark's workers, or name a wheel with it under `ships:` in the target",
    ),
    (
        ("FileNotFoundError: ", "OSError: "),
        StorageError,
        "worker-file-failed",
        "a file could not be read or written: run again",
    ),
    (
        (
            "PARQUET_COLUMN_DATA_TYPE_MISMATCH",
            "CSV header does not conform to the schema",
            "Number of column in CSV header",
        ),
        SourceError,
        "file-columns-differ",
        (
            "the file has other columns than the others, or is no such file (a picture, an archive): fix or remove it. If all "
            "files have these columns now, run `rewindow land FEED --new-generation`"
        ),
    ),
    (
        ("FAILED_READ_FILE",),
        StorageError,
        "file-unreadable-by-spark",
        "the file is truncated, corrupt or of another format: restore it, then run again",
    ),
)
# Maps an SQLSTATE class to an error class, code and fix. It is used if the message contains none of the words above.
STATES: Final[dict[str, tuple[type[RewindowError], str, str]]] = {
    "22": (DataError, "value-type-differs", "a value does not fit its type: fix the data or the schema"),
    "42": (ConfigError, "spark-query-invalid", "check columns, types and formats in the configuration"),
    "0A": (ConfigError, "spark-query-invalid", "check columns, types and formats in the configuration"),
    "KD": (StorageError, "spark-read-failed", "reading failed: run again, then look at the file"),
}


def mark(error: RewindowError) -> str:
    """Return a worker's error as one line of text that `find_marked` decodes."""
    parts = [error.exit_code, error.code, error.message, error.facts, error.line]
    return f"{_MARK} {json.dumps(parts, default=str)}"


def translate_text(text: str) -> RewindowError:
    """Return the `RewindowError` for the text of an exception: a traceback, or output of the JVM."""
    marked = find_marked(text)
    if marked is not None:
        return marked
    message = _python_words(text) if _TRACEBACK in text else _java_words(text)
    for words, kind, code, fix in MEANINGS:
        if any(word in text for word in words):
            return kind(code, "{reason}: {fix}", reason=message, fix=fix)
    if _TRACEBACK in text:
        return DataError(
            "job-code-failed",
            "{reason}: an error in the job's code, or a record that it does not expect; --debug shows the traceback",
            reason=message,
        )
    state = _SQLSTATE.search(text)
    kind, code, fix = STATES.get(
        state.group(1)[:2] if state else "",
        (StorageError, "spark-failed", "run again; --debug shows Java's stack trace"),
    )
    return kind(code, "{reason}: {fix}", reason=message, fix=fix)


def find_marked(text: str) -> RewindowError | None:
    """Return the `RewindowError` that a worker encoded with `mark` somewhere in the text; None if there is none."""
    # A traceback shows source lines, which may contain a mark, before the error itself. So the last mark is tried first.
    for match in reversed([*_MARKED.finditer(text)]):
        # `raw_decode` fails for a mark that was cut off. An earlier mark may be complete.
        with suppress(ValueError):
            parts, _ = json.JSONDecoder().raw_decode(text, match.end())
            exit_code, code, message, facts, line = parts
            return _KINDS.get(exit_code, RewindowError).restored(code, message, facts).at_line(line)
    return None


def _java_words(text: str) -> str:
    """Return the first message of a Java error and, if it differs, the message of its innermost cause."""
    blocks = text.split(f"\n{_CAUSE}")
    sentences = [sentence for block in blocks if (sentence := _sentence(block))]
    if not sentences:
        return "Spark failed without a message"
    first, last = sentences[0], sentences[-1]
    return _clipped(first if last in first or len(blocks) == 1 else f"{first} ({last})")


def _sentence(block: str) -> str:
    lines = []
    for line in _NOISE.sub("", block.strip()).splitlines():
        if _JAVA_LINE.match(line) or line.startswith(("==", "'", "+-", "Current thread")):
            break
        if line.strip():
            lines.append(line.strip())
    sentence = " ".join(lines).strip(" :.;")
    return "" if _BARE_CLASS.fullmatch(sentence) else sentence


def _python_words(text: str) -> str:
    """Return the exception that ended the worker, and its location in the user's code."""
    lines = text[text.rindex(_TRACEBACK) :].splitlines()[1:]
    message = next((line for line in lines if line.strip() and not line[0].isspace()), "an error without a message")
    frames = [frame for line in lines if (frame := _FRAME.match(line))]
    where = f" ({frames[-1]['file']}:{frames[-1]['line']}, {frames[-1]['name']})" if frames else ""
    return _clipped(message) + where


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} ..."


@contextmanager
def as_in_a_worker() -> Iterator[None]:
    """Run user code in this process as in a worker: it cannot write to the command's stdout and cannot end the command."""
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
    """Raise an error instead of ending the process. This replaces `os._exit` for user code.

    An exit with status 0 would look like a successful run.
    """
    message = f"os._exit({status})"
    raise SystemExit(message)
