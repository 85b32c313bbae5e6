"""Sessions through Spark Connect: a remote server does the work, and this process has no JVM.

Examples of such servers are Databricks serverless and Databricks shared clusters. Workers get their code as zips.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rewindow.engine.spark.session import silence_queries
from rewindow.engine.spark.spark_calls import mapped
from rewindow.errors import ConfigError

_PLATFORM: Final = "platform"
_PORT, _CONNECT_S = 15002, 20
_PROVIDED: Final = ("DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
"""Environment variables. Any of them shows that a Databricks runtime or a remote server provides a session."""
_SETTINGS: Final = {"spark.sql.session.timeZone": "UTC"}
_WISHES: Final = {"spark.sql.execution.arrow.maxRecordsPerBatch": "65536"}
"""Optional settings for speed. Databricks serverless forbids them."""


def connect_session(url: str, *, cores: int, conf: Mapping[str, str], ships: Sequence[Path] = ()) -> SparkSession:
    """Connect to a Spark Connect server; return the session.

    ``url`` is ``sc://...`` or ``platform``. With ``platform``, the session is the one that the platform provides to its jobs,
    or, without a platform, the one of SPARK_REMOTE. ``cores`` is the number of concurrent tasks. ``conf`` has settings of the
    session, not of the server. ``ships`` are zips from which workers import.

    Raises `ConfigError` (78) if no session is provided, or if the server does not answer or rejects a setting.
    """
    if url == _PLATFORM:
        _check_platform()
    if find_spec("grpc") is None:
        raise ConfigError("connect-client-missing", "Spark Connect needs its client: pip install 'rewindow[connect]'")
    # Messages show only the host and port, because the rest of the URL may contain a token.
    server = urlsplit(url).netloc.rpartition("@")[2] or url
    silence_queries()
    try:
        builder = SparkSession.builder
        if url != _PLATFORM:
            _check_listening(url)
            builder = builder.remote(url)
        session: SparkSession = builder.getOrCreate()
        for key, value in _WISHES.items():
            with suppress(PySparkException):
                session.conf.set(key, value)
        for key, value in {**_SETTINGS, "spark.sql.shuffle.partitions": str(cores), **conf}.items():
            session.conf.set(key, value)
    except (PySparkException, OSError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ConfigError(
            "connect-server-unusable",
            "the Spark Connect server at {server} cannot be used ({reason}): start it, or fix `connect:`",
            server=server,
            reason=reason[:200],
        ) from error
    # `addArtifacts` gets one path per call, because a session that is not remote accepts only one path.
    for path in ships:
        with mapped():
            session.addArtifacts(str(path), pyfile=True)
    return session


def _check_platform() -> None:
    """Raise `ConfigError` (78) if nothing provides a session.

    Without this check, Spark would start a session of its own, which has neither Delta nor the catalog.
    """
    if any(os.environ.get(name) for name in _PROVIDED) or _has_databricks_connect():
        return
    raise ConfigError(
        "platform-session-missing",
        "connect: platform uses the session that Databricks gives to its jobs and notebooks, and there is "
        "none here. Run the command there (`rewindow databricks submit JOB`), install and configure "
        "databricks-connect, set SPARK_REMOTE to a Spark Connect server, or name another target "
        "(`--target`)",
    )


def _has_databricks_connect() -> bool:
    try:
        return bool(version("databricks-connect"))
    except PackageNotFoundError:
        return False


def _check_listening(url: str) -> None:
    """Raise `OSError` if the server does not listen. Without this check, the client would retry for ten minutes."""
    parts = urlsplit(url)
    port = parts.port or (443 if "use_ssl=true" in parts.path else _PORT)
    with socket.create_connection((parts.hostname or "", port), timeout=_CONNECT_S):
        pass
