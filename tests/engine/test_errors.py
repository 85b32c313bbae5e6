"""Spark's exceptions become one line with the fix and the right exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from rewindow import errors
from rewindow.engine.spark.spark_calls import mapped, translate
from rewindow.engine.worker.worker_errors import find_marked, mark
from rewindow.errors import AccessError, ConfigError, DataError, LimitError, RewindowError, SourceError, StorageError

KINDS = RewindowError.__subclasses__()

WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/site-packages/rewindow/engine/worker/task_execution.py", line 90, in tasks
    task.run()
  File "/project/jobs/a.py", line 7, in process
    raise ValueError("bad")
    ^^^^^^^^^^^^^^^^^^^^^^^
ValueError: bad
second line
"""
JOB_FAILURE = """An error occurred while calling o142.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 2.0 failed 1 times, \
most recent failure: Lost task 1.0 in stage 2.0 (TID 5) (localhost executor driver): {expected}
\tat org.apache.spark.Foo$.bar(Foo.scala:711)
\tat org.apache.spark.Foo.run(Foo.scala:1)
Caused by: {cause}
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
\t... 21 more
"""


def job_failure(expected: str, cause: str = "java.io.EOFException") -> str:
    return JOB_FAILURE.format(expected=expected, cause=cause)


CASES = {
    "worker": (WORKER, DataError, "ValueError: bad (/project/jobs/a.py:7, process): "),
    "import": (
        WORKER.replace("ValueError: bad", "ModuleNotFoundError: No module named 'x'"),
        ConfigError,
        "install it",
    ),
    "file": (WORKER.replace("ValueError: bad", "FileNotFoundError: [Errno 2] x"), StorageError, "could not be read"),
    "other Python": (
        WORKER.replace(
            "ValueError: bad", "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] x"
        ),
        ConfigError,
        "give the workers the Python version of this command",
    ),
    "no Python": (
        job_failure('java.io.IOException: Cannot run program "python3.11": error=2, No such file or directory'),
        ConfigError,
        "every executor needs the interpreter that the target names",
    ),
    "memory": (WORKER.replace("ValueError: bad", "MemoryError"), LimitError, "spark.driver.memory"),
    "crash": (
        job_failure(
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed): Fatal Python error: "
            "Segmentation fault\n\nCurrent thread 0x00 (most recent call first):\n  File x"
        ),
        LimitError,
        "Python worker exited unexpectedly (crashed): Fatal Python error: Segmentation fault: a Python worker was",
    ),
    "the memory of a function on serverless Databricks": (
        "[UDF_PYSPARK_USER_CODE_ERROR.MEMORY_LIMIT_SERVERLESS] Execution failed.\nFunction exceeded the limit of 1024 megabytes.",
        LimitError,
        "a worker needs more memory than the platform gives a function",
    ),
    "heap": (
        job_failure("java.lang.OutOfMemoryError: Java heap space"),
        LimitError,
        "Java heap space: out of memory. Give the target more",
    ),
    "heap of another thread": (
        (
            'Cannot invoke "org.apache.spark.scheduler.DAGScheduler.cleanupQueryJobs(long)" because the return value of '
            '"org.apache.spark.SparkContext.dagScheduler()" is null'
        ),
        LimitError,
        "Spark has shut down, usually because it was out of memory",
    ),
    "shut down": (
        "org.apache.spark.SparkException: Job 3 cancelled because SparkContext was shut down",
        LimitError,
        "Spark has shut down",
    ),
    "disk": (job_failure("java.io.IOException: No space left on device"), LimitError, "free space on the full disk"),
    "access": (
        job_failure("java.io.IOException: Mkdirs failed to create file:/x (exists=false)"),
        AccessError,
        "Mkdirs failed to create file:/x (exists=false): grant",
    ),
    "rights": (
        "[INSUFFICIENT_PERMISSIONS] Insufficient privileges: User does not have MODIFY on Table 'main.rw.x'. SQLSTATE: 42501",
        AccessError,
        "User does not have MODIFY on Table 'main.rw.x': grant the access",
    ),
    "rights without a state": (
        "PERMISSION_DENIED: User does not have USE SCHEMA on Schema 'main.rw'.",
        AccessError,
        "User does not have USE SCHEMA on Schema 'main.rw': grant the access",
    ),
    "path": (
        "[PATH_NOT_FOUND] Path does not exist: file:/nope. SQLSTATE: 42K03",
        SourceError,
        "file:/nope: restore it, or",
    ),
    "csv": (
        job_failure(
            "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file f. "
            "SQLSTATE: KD001",
            "org.apache.spark.SparkException: [MALFORMED_CSV_RECORD] Malformed CSV record: a;b SQLSTATE: KD000",
        ),
        DataError,
        "([MALFORMED_CSV_RECORD] Malformed CSV record: a;b): fix the file",
    ),
    "parquet": (
        job_failure(
            "[FAILED_READ_FILE.NO_HINT] Error while reading file f.",
            "java.lang.RuntimeException: f is not a Parquet file",
        ),
        StorageError,
        "(f is not a Parquet file): the file is truncated, corrupt",
    ),
    "column": (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] `nope` cannot be resolved. SQLSTATE: 42703;\n'Project ['nope]\n+- Range",
        ConfigError,
        "`nope` cannot be resolved: check columns",
    ),
    "cast": (
        "[CAST_INVALID_INPUT] 'x' is malformed. SQLSTATE: 22018\n== SQL (line 1) ==\nselect",
        DataError,
        "fix the",
    ),
    "other": (job_failure("java.lang.IllegalStateException: strange"), StorageError, "strange: run again; --debug"),
    "silent": ("", StorageError, "Spark failed without a message"),
}


@pytest.mark.parametrize(("text", "kind", "expected"), CASES.values(), ids=CASES)
def test_spark_errors_become_one_line_with_a_fix(text, kind, expected):
    error = translate(PySparkException(text))
    assert type(error) is kind
    assert expected in str(error)
    assert len(str(error).splitlines()) == 1
    assert "\tat " not in str(error)
    assert ".scala" not in str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_a_marked_error_keeps_its_class(kind):
    error = kind("made-up", "{text}", text='record 7 of "events"\nis bad: ä \\ {}')
    text = WORKER.replace("ValueError: bad", f"RuntimeError: {mark(error)}")
    back = translate(PySparkException(job_failure(text)))
    assert type(back) is kind
    assert str(back) == str(error)


@given(message=st.text(), code=st.sampled_from(KINDS))
def test_any_message_survives_marking(message, code):
    error = code("made-up", "{text}", text=message)
    line = mark(error)
    assert len(line.splitlines()) == 1
    back = find_marked(f"before\n{line}\nafter")
    assert (type(back), str(back), back.facts["text"]) == (code, str(error), message)


def test_code_facts_and_line_survive_marking():
    error = DataError("topic-unknown", "no {topic} in {file}", topic="events", file=Path("a.csv")).at_line(
        "jobs/a.py:7"
    )
    back = find_marked(f"RuntimeError: {mark(error)}")
    assert (back.code, back.message, back.line) == ("topic-unknown", "no events in a.csv", "jobs/a.py:7")
    assert back.facts == {"topic": "events", "file": "a.csv"}, "a fact that is no JSON value is its text"


def test_a_mark_that_is_cut_off_does_not_hide_an_earlier_one():
    whole = mark(DataError("topic-unknown", "first"))
    assert str(find_marked(f"{whole}\n{mark(DataError('topic-unknown', 'second'))[:-3]}")) == "first"
    assert find_marked(whole[:-3]) is None


def test_what_spark_reports_has_a_code():
    assert translate(PySparkException(job_failure("java.io.IOException: No space left on device"))).code == "disk-full"
    assert translate(PySparkException(WORKER)).code == "job-code-failed"
    assert translate(PySparkException("[CAST_INVALID_INPUT] 'x' is bad. SQLSTATE: 22018")).code == "value-type-differs"


def test_a_subclass_keeps_the_exit_code_of_its_parent():
    assert find_marked(mark(errors.TopologyError("made-up", "x"))).exit_code == 78


def test_exit_codes_are_distinct():
    assert len({kind.exit_code for kind in KINDS}) == len(KINDS)


def test_the_last_mark_counts_because_a_traceback_shows_source_lines_first():
    first, second = mark(DataError("made-up", "first")), mark(SourceError("made-up", "second"))
    text = f"    raise RuntimeError('{first}')\nRuntimeError: {second}"
    assert str(find_marked(text)) == "second"


@pytest.mark.parametrize("error", [Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError(111)])
def test_a_lost_jvm_is_reported(error):
    assert translate(error).code == "spark-jvm-ended"


def test_rewindow_errors_pass_unchanged():
    error = DataError("made-up", "x")
    assert translate(error) is error
    with pytest.raises(DataError, match=r"^x$"), mapped():
        raise error


def test_mapped_keeps_the_cause_for_debug():
    with pytest.raises(SourceError) as caught, mapped():
        raise PySparkException("[PATH_NOT_FOUND] Path does not exist: file:/nope.")
    assert isinstance(caught.value.__cause__, PySparkException)


@pytest.mark.spark
def test_an_error_of_a_worker_crosses_the_jvm(spark):
    def fail(batches):
        from rewindow.engine.worker.worker_errors import mark
        from rewindow.errors import DataError

        for _ in batches:
            raise RuntimeError(mark(DataError("made-up", "record 7 of events/0 has no timestamp: fix it")))
        yield

    with pytest.raises(DataError, match=r"^record 7 of events/0 has no timestamp: fix it$"), mapped():
        spark.range(2).mapInArrow(fail, "id long").collect()


@pytest.mark.spark
def test_session_errors_do_not_write_to_stderr(spark, capfd):
    def crash(batches):
        import os

        next(batches)
        os._exit(3)
        yield

    with pytest.raises(LimitError, match="a Python worker was killed"), mapped():
        spark.range(2).mapInArrow(crash, "id long").collect()
    with pytest.raises(ConfigError, match="cannot be resolved"), mapped():
        spark.range(2).select("nope").collect()
    assert capfd.readouterr().err == ""
