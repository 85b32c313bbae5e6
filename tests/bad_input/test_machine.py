"""Failures of the machine: disk full, access denied, out of memory. Nothing is committed, and the next call continues."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys

import pytest

from rewindow.app.cli.printing import Printer
from rewindow.engine.worker.worker_errors import translate_text
from rewindow.errors import LimitError, unreadable
from tests.bad_input.scene import Bench, goes_on
from tests.refusals import refused

FAULTS = {
    "a full disk": (errno.ENOSPC, 71, "land activity"),
    "a read-only disk": (errno.EROFS, 77, "run counts"),
    "a broken disk": (errno.EIO, 74, "run counts"),
    "a file that is too large": (errno.EFBIG, 71, "run counts"),
    "too many open files": (errno.EMFILE, 71, "land activity"),
}


# A process that fails leaves half-written files open, and the garbage collector complains when it closes them.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "line"), FAULTS.values(), ids=FAULTS)
def test_a_refusal_of_the_machine_is_reported_and_changes_nothing(
    bench: Bench, number: int, code: int, line: str
) -> None:
    if line == "run counts":
        bench.done("land activity")
    decided = bench.decided()

    def refuse(*_args: object) -> int:
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("rewindow.engine.worker.parquet_writer._DigestedFile.write", refuse)
        failure = bench.run(*line.split()).failure
    assert failure is not None
    assert (failure.exit_code, os.strerror(number) in failure.message) == (code, True)
    assert bench.decided() == decided
    goes_on(bench)
    gc.collect()  # closes the files now, not with a warning in a later test


class PanicException(BaseException):
    """What native code raises when it panics."""


EXHAUSTED = (
    (MemoryError(), "process-out-of-memory"),
    (ImportError("libarrow.so: failed to map segment from shared object"), "process-limit-reached"),
    (PanicException("Failed to create a tokio runtime"), "process-limit-reached"),
    (RuntimeError("can't start new thread"), "process-limit-reached"),
    (SystemExit(1), "process-limit-reached"),
    (OSError(errno.EMFILE, "Too many open files"), "process-limit-reached"),
    (OSError("Generic LocalFileSystem error: Too many open files (os error 24)"), "process-limit-reached"),
)


@pytest.mark.parametrize(("error", "code"), EXHAUSTED)
def test_a_command_that_gets_no_memory_files_or_threads_ends_with_71(
    bench: Bench, error: BaseException, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr("rewindow.app.describe_job.describe_job", fail)
    answer = bench.run("show", "counts")
    assert (answer.code, answer.refused(code).exit_code) == (71, 71)
    assert "Traceback" not in answer.err


def test_an_error_that_cannot_be_printed_keeps_its_exit_code(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Printer, "failed", fail)
    assert bench.run("show", "nothing").code == 78
    assert "nothing" in capfd.readouterr().err


def test_a_file_that_cannot_be_opened_for_lack_of_handles_is_not_a_broken_one() -> None:
    error = unreadable("/srv/shop/a.parquet", OSError(errno.EMFILE, "Too many open files"))
    assert isinstance(error, LimitError)
    assert error.code == "read-failed"


@pytest.mark.parametrize(
    "text",
    ["OSError: [Errno 24] Too many open files", "pyo3_runtime.PanicException: no runtime", "OSError: File too large"],
)
def test_a_worker_that_reaches_a_limit_ends_with_71(text: str) -> None:
    with refused("worker-limit-reached"):
        raise translate_text(f"Traceback (most recent call last):\n{text}")


@pytest.mark.parametrize("limit", ["-v 1250000", "-n 20"])
def test_limits_with_which_native_code_hangs_are_refused_at_once(bench: Bench, limit: str) -> None:
    script = f"ulimit {limit}; exec {sys.executable} -m rewindow show counts --project {bench.root}"
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (71, False)
    assert f"ulimit {limit[:2]}" in done.stderr


def test_modules_that_cannot_be_loaded_end_the_command_with_71() -> None:
    script = "import sys; sys.modules['typer'] = None; from rewindow.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (71, False)
