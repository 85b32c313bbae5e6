"""Failures of the machine: disk full, access denied, out of memory. Nothing is committed, and the next call continues."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of, goes_on

FAULTS = {
    "a full disk": (errno.ENOSPC, 71, "Free space"),
    "a full quota": (errno.EDQUOT, 71, "Free space"),
    "a folder of another user": (errno.EACCES, 77, "fix access"),
    "a read-only disk": (errno.EROFS, 77, "fix access"),
    "a broken disk": (errno.EIO, 74, "run the command again"),
}


# A process that fails leaves half-written files open, and the garbage collector complains when it closes them.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "says"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("words", [("land", "activity"), ("run", "counts")], ids=["land", "run"])
def test_a_refusal_of_the_machine_is_reported_and_changes_nothing(
    template: Bench, tmp_path: Path, words: tuple[str, str], number: int, code: int, says: str
) -> None:
    bench = copy_of(template, tmp_path / "project")
    if words[0] == "run":
        assert bench.run("land", "activity").code == 0
    decided = bench.decided()

    def refuse(*_args: object) -> int:
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("rewindow.engine.worker.parquet_writer._DigestedFile.write", refuse)
        answer = bench.run(*words)
    assert answer.code == code, answer.err
    assert says in answer.err
    assert os.strerror(number) in answer.err
    assert "Traceback" not in answer.err
    assert bench.decided() == decided
    goes_on(bench)
    gc.collect()  # closes the files now, not with a warning in a later test
