"""Failures of the machine: disk full, access denied, out of memory. Nothing is committed, and the next call continues."""

from __future__ import annotations

import errno
import gc
import os

import pytest

from tests.bad_input.scene import Bench, goes_on

FAULTS = {
    "a full disk": (errno.ENOSPC, 71, "land activity"),
    "a read-only disk": (errno.EROFS, 77, "run counts"),
    "a broken disk": (errno.EIO, 74, "run counts"),
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
