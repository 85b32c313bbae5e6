"""If two processes commit through Spark on one local disk, the second must try again later."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rewindow.errors import NotNowError
from rewindow.tables.governed.commit import hold_local_disk

HOLDER = """
import sys
from rewindow.tables.governed.commit import hold_local_disk
hold_local_disk(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_told_to_come_back(tmp_path):
    location = f"file:{tmp_path}/the%20tables"
    command = [sys.executable, "-c", HOLDER, location]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(NotNowError, match=r"another process commits through Spark in .*/the tables"):
            hold_local_disk(location)
        holder.stdin.close()
        holder.wait()
    hold_local_disk(location)
    hold_local_disk(location)


def test_an_object_store_has_no_lock(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hold_local_disk("s3a://bucket/tables")
    assert list(tmp_path.iterdir()) == []
