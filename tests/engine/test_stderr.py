"""What the JVM says on stderr: all of it but two known noises."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rewindow.engine.spark.stderr import Relay

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


def passed_on(tmp_path: Path, said: str, *, everything: bool = False) -> tuple[str, str]:
    file = os.open(tmp_path / "stderr", os.O_WRONLY | os.O_CREAT)
    relay = Relay(everything=everything, to=file)
    os.write(relay.write_end, said.encode())
    relay.close()
    last = relay.last_line()
    os.close(file)
    return (tmp_path / "stderr").read_text(), last


@pytest.mark.parametrize("said", ["a\nb\n", "no end of line", USERS, USERS + USERS, "a\n" + USERS + "b\n", "\n\n"])
def test_what_is_said_is_passed_on(tmp_path, said):
    assert passed_on(tmp_path, said)[0] == said


@pytest.mark.parametrize("noise", [INCUBATOR, DAEMON, INCUBATOR + DAEMON + DAEMON])
def test_noise_is_not_passed_on(tmp_path, noise):
    assert passed_on(tmp_path, "a\n" + noise + "b\n")[0] == "a\nb\n"


def test_everything_is_everything(tmp_path):
    assert passed_on(tmp_path, INCUBATOR + DAEMON, everything=True)[0] == INCUBATOR + DAEMON


def test_the_last_word_is_the_last_line_with_words(tmp_path):
    assert passed_on(tmp_path, "first\nInvalid heap size\n\n")[1] == "Invalid heap size"
    assert passed_on(tmp_path, INCUBATOR)[1] == "no output"
