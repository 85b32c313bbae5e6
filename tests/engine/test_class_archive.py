"""The class archive is optional."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rewindow.engine.spark import class_archive as archive
from rewindow.engine.spark.class_archive import archive_options, make_archive

if TYPE_CHECKING:
    from pathlib import Path

WRITES = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('classes')"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    archive_file = tmp_path / "classes" / "key.jsa"
    monkeypatch.setattr(archive, "_archive_path", lambda: archive_file)
    return archive_file


def test_without_an_archive_there_are_no_options(path):
    assert archive_options() == []


def test_an_archive_is_created_once_and_used(path, monkeypatch):
    monkeypatch.setattr(archive, "_TRAIN", WRITES)
    assert make_archive()
    monkeypatch.setattr(archive, "_TRAIN", "raise SystemExit('not again')")
    assert make_archive()
    assert f"-XX:SharedArchiveFile={path}" in archive_options()
    assert "-Xshare:auto" in archive_options()


@pytest.mark.parametrize("train", ["raise SystemExit(1)", "pass", WRITES + "; raise SystemExit(1)"])
def test_a_failure_leaves_no_files(path, monkeypatch, train):
    monkeypatch.setattr(archive, "_TRAIN", train)
    assert not make_archive()
    assert list(path.parent.iterdir()) == []


def test_old_archives_are_deleted(path, monkeypatch):
    path.parent.mkdir()
    for number in range(5):
        (path.parent / f"{number}.jsa").write_text("old")
    monkeypatch.setattr(archive, "_TRAIN", WRITES)
    assert make_archive()
    assert len(list(path.parent.iterdir())) == 3
