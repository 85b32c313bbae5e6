"""The checksums of files that Spark read are verified, in any location; unknown files are rejected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zlib import crc32

import pytest
from pyarrow import fs
from pyspark.errors import PySparkException

from rewindow.contracts.staged_files import staged_name
from rewindow.contracts.tasks import LogSlice, LogSpan, LogTable, SubTopologyWork, TaskWork
from rewindow.engine.spark.spark_engine import verified
from rewindow.errors import RewindowError
from tests.bench.jobs import sub_topology_work
from tests.refusals import containing, refused

DATA = b"what was written"


class Frame:
    """A computed frame."""

    def __init__(self, *files: str) -> None:
        self._files = list(files)

    def inputFiles(self) -> list[str]:  # noqa: N802 - Spark's name
        """Return the files that it read."""
        return self._files


class LostFrame:
    """A frame whose session has ended."""

    def inputFiles(self) -> list[str]:  # noqa: N802 - Spark's name
        """Fail."""
        raise PySparkException("the JVM is gone")


@pytest.fixture
def work(tmp_path: Path) -> SubTopologyWork:
    """Return a sub-topology that reads one log through Spark."""
    table = LogTable(str(tmp_path / "a log"), "for the test")
    task = TaskWork(0, {"clicks": LogSlice((), ((0, 9),), (LogSpan(1, 0, 8),))}, {}, None, {})
    return replace(sub_topology_work("finals", [], tmp_path), tasks=(task,), tables={"clicks": table})


def a_file(tmp_path: Path, *, flipped: bool) -> Path:
    folder = tmp_path / "a log" / "generation=1"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / staged_name("a" * 32, "b" * 32, crc32(DATA))
    file.write_bytes(DATA[:-1] + b"m" if flipped else DATA)
    return file


# Local paths as Delta and as Spark report them; a URI that Arrow opens.
@pytest.mark.parametrize(("scheme", "quoting"), [("file:", str), ("file://", quote), ("mock:", str)])
def test_a_file_is_compared_with_its_name(
    scheme: str, quoting: Any, work: SubTopologyWork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "rewindow.engine.worker.checksums.filesystem_of",
        lambda path: (fs.LocalFileSystem(), path.removeprefix("mock:")),
    )
    frame: Any = Frame(scheme + quoting(str(a_file(tmp_path, flipped=False))), f"file:{tmp_path}/part-0.snappy.parquet")
    with verified(frame, work):
        pass
    a_file(tmp_path, flipped=True)
    with refused("log-file-unreadable", topic="clicks", reason=containing("differ")), verified(frame, work):
        pass


def test_corruption_is_reported_before_its_consequences(work: SubTopologyWork, tmp_path: Path) -> None:
    frame: Any = Frame(f"file:{a_file(tmp_path, flipped=False)}")
    with pytest.raises(RewindowError, match="of the job's code"), verified(frame, work):
        raise RewindowError("made-up", "of the job's code")
    a_file(tmp_path, flipped=True)
    with refused("log-file-unreadable", topic="clicks"), verified(frame, work):
        raise RewindowError("made-up", "of the job's code")


def test_rows_of_unknown_files_are_rejected(work: SubTopologyWork) -> None:
    frame: Any = Frame()
    with refused("log-files-not-reported"), verified(frame, work):
        pass
    with verified(frame, replace(work, tasks=())):
        pass


def test_a_failure_of_spark_is_raised_even_if_spark_is_lost(work: SubTopologyWork) -> None:
    frame: Any = LostFrame()
    with pytest.raises(RewindowError, match="the first"), verified(frame, work):
        raise RewindowError("made-up", "the first")
