"""A cache that others may write to does not give them a way to run code: no file of it is executed unchecked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rewindow.engine.spark import class_archive
from rewindow.engine.spark.class_archive import archive_options, make_archive
from rewindow.engine.spark.shipping import shipped

if TYPE_CHECKING:
    from pathlib import Path


def test_code_that_somebody_put_into_the_cache_is_not_sent_to_executors(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("REWINDOW_CACHE", str(tmp_path / "cache"))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/orders.py").write_text("MINE = 1\n")
    (sent,) = shipped(tmp_path, [])
    ours = sent.read_bytes()
    sent.write_bytes(b"theirs")
    assert [path.read_bytes() for path in shipped(tmp_path, [])] == [ours]


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_class_archive_that_others_may_change_is_not_used(tmp_path: Path, monkeypatch, mode: int) -> None:
    path = tmp_path / "classes/key.jsa"
    monkeypatch.setattr(class_archive, "_archive_path", lambda: path)
    monkeypatch.setattr(class_archive, "_TRAIN", "import sys; open(sys.argv[1], 'w').write('ours')")
    path.parent.mkdir()
    path.write_text("theirs")
    path.chmod(mode)
    assert archive_options() == []
    assert make_archive()
    assert path.read_text() == "ours"
    assert archive_options()
