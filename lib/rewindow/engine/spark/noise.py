"""Keep PySpark and py4j from printing stack traces of what the command reports itself."""

from __future__ import annotations

import logging
import socketserver
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.logger import PySparkLogger

if TYPE_CHECKING:
    from pyspark import SparkContext


def silence(context: SparkContext) -> None:
    """Stop the libraries from printing stack traces to stderr: each of these errors is raised as well."""
    silence_queries()
    logging.getLogger().addFilter(is_not_of_py4j)
    silence_end_of_jvm(getattr(context, "_accumulatorServer", None))


def silence_queries() -> None:
    """Stop PySpark from printing the stack traces of queries that fail, also those of a remote server."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Return whether a record of the root logger is not py4j's: it logs Ctrl-C and a lost JVM there."""
    return Path(record.pathname).parent.name != "py4j"


def silence_end_of_jvm(server: Any) -> None:
    """Let a server of accumulator updates end its connection without a word when the JVM has died."""
    if not isinstance(server, socketserver.BaseServer):
        return
    report = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], (EOFError, ConnectionError)):
            report(request, client_address)

    server.handle_error = handle_error  # type: ignore[method-assign]
