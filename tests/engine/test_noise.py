"""What PySpark and py4j print when the JVM dies or Ctrl-C is pressed: nothing. Without a JVM."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from inspect import signature

import pytest
from pyspark.accumulators import _start_update_server

from rewindow.engine.spark.session import is_not_of_py4j, silence_end_of_jvm

TOKEN = "t" * 32


def lose_the_jvm(send: bytes) -> None:
    """Connect to a server of accumulator updates as the JVM does, and die."""
    wanted = signature(_start_update_server).parameters  # PySpark 4.0 has no second one
    server = _start_update_server(*(TOKEN, False)[: len(wanted)])
    silence_end_of_jvm(server)
    with socket.create_connection(server.server_address) as connection:  # type: ignore[arg-type]
        connection.sendall(send)
    time.sleep(0.3)
    server.shutdown()


@pytest.mark.parametrize(("send", "is_said"), [(TOKEN.encode(), False), (b"x" * len(TOKEN), True)])
def test_a_jvm_that_dies_prints_no_stack_trace_but_a_stranger_does(
    capsys: pytest.CaptureFixture[str], send: bytes, *, is_said: bool
) -> None:
    lose_the_jvm(send)
    assert ("Traceback" in capsys.readouterr().err) is is_said


def log_from(path: str) -> Callable[[], None]:
    """Return a function that logs an error to the root logger, as if it stood in a file."""
    made: dict[str, Callable[[], None]] = {}
    source = "def report():\n    import logging\n    logging.error('KeyboardInterrupt while sending command.')\n"
    exec(compile(source, path, "exec"), made)  # noqa: S102
    return made["report"]


def test_py4j_logs_nothing_to_the_root_logger(caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()
    root.addFilter(is_not_of_py4j)
    try:
        log_from("/somewhere/py4j/java_gateway.py")()
        log_from("/somewhere/theirs/module.py")()
    finally:
        root.removeFilter(is_not_of_py4j)
    assert [record.pathname for record in caplog.records] == ["/somewhere/theirs/module.py"]
