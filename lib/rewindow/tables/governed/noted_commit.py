"""Ask Delta itself whether an append landed: it notes each commit in the session that made it, so no Spark job is needed.

After a commit, and only then, Delta writes the version into the session's setting ``lastCommitVersionInSession``. It notes
nothing when it skips an append whose version is there, and nothing when it refuses one. So a note in a session that makes
nothing but this append is proof. Its absence is none: then the caller reads the table's history.

The session is a copy of the command's, because other threads may commit in that one, in a notebook for example. Only Spark
Connect copies sessions, from PySpark 4.1 on. A platform may refuse to copy a session, or to show the setting.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

_NOTE = "spark.databricks.delta.lastCommitVersionInSession"


def commit_noted(spark: SparkSession, commit: Callable[[SparkSession], None]) -> bool:
    """Call ``commit`` with a session. Return whether Delta noted a commit by it; False says nothing.

    Raises what ``commit`` raises.
    """
    own = _copied(spark)
    if own is None:
        commit(spark)
        return False
    try:
        commit(own)
        return _note(own) is not None
    finally:
        _end(own)


def _copied(spark: SparkSession) -> SparkSession | None:
    """Return a copy of a session in which nothing is noted; None if there can be none."""
    own: SparkSession | None = None
    with suppress(Exception):  # too old, or the platform refuses: the history tells the same
        own = spark.cloneSession()  # type: ignore[attr-defined]  # only sessions of Spark Connect
        own.conf.unset(_NOTE)
        if own.conf.get(_NOTE, None) is None:
            return own
    if own is not None:
        _end(own)
    return None


def _note(own: SparkSession) -> Any:
    with suppress(Exception):
        return own.conf.get(_NOTE, None)
    return None


def _end(own: SparkSession) -> None:
    """Let the server forget a copied session, which it would otherwise keep for an hour."""
    client: Any = own.client
    with suppress(Exception):
        client.release_session()
    with suppress(Exception):
        client.close()
