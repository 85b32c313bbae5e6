"""A disk that is full when the Delta log is written, or when a file is closed: 71 in plain words, and nothing left behind."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rewindow.control.plan.job_state import LedgerRow
from rewindow.engine.worker.parquet_writer import Draft
from rewindow.errors import AccessError, ConfigError, LimitError, StorageError, not_committed, one_line
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.ledger import Ledger
from tests.refusals import containing, refused

FULL = (
    "Generic LocalFileSystem error\n          \x1b[31m↳\x1b[0m Unable to copy data to file\n"
    "           \x1b[31m↳\x1b[0m No space left on device (os error 28)\n"
)
"""What delta-rs says on a full disk."""


def fill(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise DeltaError(FULL)

    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    monkeypatch.setattr("rewindow.tables.delta.commit.is_append", lambda *_: False)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", refuse)


def test_a_full_disk_under_a_ledger_row_is_a_limit_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(str(tmp_path / "runs"), "counts")
    assert ledger.append([LedgerRow(1, "NOTE", {})])
    fill(monkeypatch)
    with pytest.raises(LimitError) as caught:
        ledger.append([LedgerRow(2, "NOTE", {})])
    said = str(caught.value)
    assert "Generic LocalFileSystem error: Unable to copy data to file: No space left on device (os error 28)" in said
    assert "\x1b" not in said
    assert "\n" not in said


def test_a_full_disk_under_an_append_is_a_limit_and_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(str(tmp_path / "runs"), "counts")
    assert ledger.append([LedgerRow(1, "NOTE", {})])
    before = sorted((tmp_path / "runs" / "_delta_log").iterdir())

    def refuse(*_paths: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    link = os.link
    monkeypatch.setattr("os.link", refuse)
    with refused("not-committed", why=containing("No space left on device")):
        ledger.append([LedgerRow(2, "NOTE", {})])
    monkeypatch.setattr("os.link", link)
    assert sorted((tmp_path / "runs" / "_delta_log").iterdir()) == before
    assert ledger.append([LedgerRow(2, "NOTE", {})])


def test_a_table_that_a_full_disk_cannot_hold_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise DeltaError(FULL)

    monkeypatch.setattr(DeltaTable, "create", refuse)
    import pyarrow as pa

    with refused("table-not-created", error=containing("No space left")):
        create_table(str(tmp_path / "t"), pa.schema([("a", pa.int64())]))


def test_the_cause_of_a_commit_that_not_committed_decides_the_exit_code() -> None:
    assert isinstance(not_committed("t", 3, None), StorageError)
    assert isinstance(not_committed("t", 3, DeltaError("Permission denied (os error 13)")), AccessError)
    assert isinstance(not_committed("t", 3, OSError(28, "No space left on device")), LimitError)
    assert isinstance(not_committed("t", 3, ConfigError("made-up", "no such column")), ConfigError)
    assert one_line("a \x1b[31mred\x1b[0m\n  word") == "a red word"


class Full(io.BytesIO):
    """A file whose last bytes do not fit."""

    def close(self) -> None:
        super().close()
        raise OSError(28, "No space left on device")


def test_a_draft_that_cannot_be_closed_is_deleted_all_the_same(tmp_path: Path) -> None:
    draft = Draft(str(tmp_path), "", "part.parquet")
    draft.open().close()
    draft._file = Full()
    draft.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_driver_that_did_not_fit_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(str(tmp_path))

    class Broken:
        """A file system on which the first bytes fit, and no more."""

        def __init__(self, real: object) -> None:
            self._real = real

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

        def open_output_stream(self, path: str, **_options: object) -> object:
            Path(path).write_bytes(b"PAR1")
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "_fs", Broken(folder._fs))
    with pytest.raises(LimitError):
        folder._write("a.parquet", b"PAR1....PAR1")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
