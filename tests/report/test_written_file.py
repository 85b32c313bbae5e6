"""A file that a user names is written where the name says: on a disk, or in a bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from rewindow.app import written_file
from rewindow.app.written_file import write_text
from tests.refusals import containing, refused


class Store:
    """Stands in for a bucket's file system: what is written, and with which content type."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kinds: dict[str, Any] = {}

    def open_output_stream(self, path: str, metadata: Any = None) -> Any:
        if path.startswith("lost"):
            raise OSError("the bucket does not exist")
        self.kinds[path] = metadata
        return fs.LocalFileSystem().open_output_stream(str(self.root / path.replace("/", "_")))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    found = Store(tmp_path)
    monkeypatch.setattr(written_file, "filesystem_of", lambda uri: (found, uri.partition("://")[2]))
    monkeypatch.chdir(tmp_path)
    return found


def test_a_uri_is_written_to_the_bucket_and_not_to_a_folder_of_its_scheme(store: Store) -> None:
    assert write_text(Path("s3://events/reports/a.html"), "<p>é") == "s3://events/reports/a.html"
    assert write_text(Path("gs://events/a.svg"), "<svg>") == "gs://events/a.svg"
    assert (store.root / "events_reports_a.html").read_text(encoding="utf-8") == "<p>é"
    assert store.kinds == {"events/reports/a.html": {"Content-Type": "text/html"}, "events/a.svg": None}
    assert not (store.root / "s3:").exists()


def test_a_bucket_that_is_not_there_is_named(store: Store) -> None:
    assert store.kinds == {}
    with refused("bucket-not-opened", path="s3://lost/a.html", reason="the bucket does not exist"):
        write_text(Path("s3://lost/a.html"), "x")


def test_a_path_is_written_to_the_disk(store: Store) -> None:
    assert write_text(Path("new/s3.html"), "x") == "new/s3.html"
    assert (store.root / "new/s3.html").read_text(encoding="utf-8") == "x"
    with refused("written-file-is-folder", path=containing("new")):
        write_text(Path("new"), "x")
