"""The relay of the JVM's stderr passes everything except two known kinds of noise."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rewindow.engine.spark.session import Relay

if TYPE_CHECKING:
    from pathlib import Path

INCUBATOR = "WARNING: Using incubator modules: jdk.incubator.vector\n"
DAEMON = """Traceback (most recent call last):
  File "/x/pyspark.zip/pyspark/daemon.py", line 262, in manager
  File "/x/pyspark.zip/pyspark/daemon.py", line 95, in worker
BrokenPipeError: [Errno 32] Broken pipe
"""
USERS = """Traceback (most recent call last):
  File "/project/jobs/a.py", line 2, in process
    explode()
ValueError: bad
"""


def relayed(tmp_path: Path, text: str, *, everything: bool = False) -> tuple[str, str]:
    file = os.open(tmp_path / "stderr", os.O_WRONLY | os.O_CREAT)
    relay = Relay(everything=everything, to=file)
    os.write(relay.write_end, text.encode())
    relay.close()
    last = relay.last_line()
    os.close(file)
    return (tmp_path / "stderr").read_text(), last


@pytest.mark.parametrize("text", ["a\nb\n", "no end of line", USERS, USERS + USERS, "a\n" + USERS + "b\n", "\n\n"])
def test_lines_are_relayed(tmp_path, text):
    assert relayed(tmp_path, text)[0] == text


@pytest.mark.parametrize("noise", [INCUBATOR, DAEMON, INCUBATOR + DAEMON + DAEMON])
def test_noise_is_not_relayed(tmp_path, noise):
    assert relayed(tmp_path, "a\n" + noise + "b\n")[0] == "a\nb\n"


def test_everything_includes_noise(tmp_path):
    assert relayed(tmp_path, INCUBATOR + DAEMON, everything=True)[0] == INCUBATOR + DAEMON


def test_the_last_line_is_the_last_one_with_text(tmp_path):
    assert relayed(tmp_path, "first\nInvalid heap size\n\n")[1] == "Invalid heap size"
    assert relayed(tmp_path, INCUBATOR)[1] == "no output"
