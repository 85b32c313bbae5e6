"""A session behind Spark Connect: the work is done by a server elsewhere, this process has no JVM.

Databricks' serverless and shared clusters are such servers. Code that workers run goes there as zips.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rewindow.engine.spark.errors import mapped
from rewindow.errors import ConfigError

_PLATFORM: Final = "platform"
_PORT, _KNOCK_S = 15002, 20
_SETTINGS: Final = {"spark.sql.session.timeZone": "UTC"}
_WISHES: Final = {"spark.sql.execution.arrow.maxRecordsPerBatch": "65536"}
"""What makes it faster. Databricks' serverless lets nobody set it."""


def connect_session(url: str, *, cores: int, conf: Mapping[str, str], ships: Sequence[Path] = ()) -> SparkSession:
    """Join a Spark Connect server; return the session.

    ``url``: ``sc://...``; or ``platform``, for the session that a platform gives to its jobs (SPARK_REMOTE elsewhere).
    ``cores``: tasks at once. ``conf``: settings of the session (those of the server are the server's). ``ships``: zips
    that its workers import from. Raises `ConfigError` (78) if nobody answers there, or a setting cannot be set.
    """
    if find_spec("grpc") is None:
        raise ConfigError("Spark Connect needs its client: pip install 'rewindow[connect]'")
    place = urlsplit(url).netloc or url  # what follows may be a token
    try:
        builder = SparkSession.builder
        if url != _PLATFORM:
            _knock(url)
            builder = builder.remote(url)
        session: SparkSession = builder.getOrCreate()
        for key, value in _WISHES.items():
            with suppress(PySparkException):
                session.conf.set(key, value)
        for key, value in {**_SETTINGS, "spark.sql.shuffle.partitions": str(cores), **conf}.items():
            session.conf.set(key, value)
    except (PySparkException, OSError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        message = f"the Spark Connect server at {place} cannot be used ({reason[:200]}): start it, or fix `connect:`"
        raise ConfigError(message) from error
    if ships:
        with mapped():
            session.addArtifacts(*(str(path) for path in ships), pyfile=True)
    return session


def _knock(url: str) -> None:
    """See that somebody listens: the client itself would try for ten minutes."""
    parts = urlsplit(url)
    port = parts.port or (443 if "use_ssl=true" in parts.path else _PORT)
    with socket.create_connection((parts.hostname or "", port), timeout=_KNOCK_S):
        pass
