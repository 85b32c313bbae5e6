"""Commit rows to a catalog's tables through the DataFrame writer.

What Spark returns or raises does not tell whether a commit landed. Read the table or its history, or Delta's note.

Delta can tell whether an append landed, without a Spark job. After a commit, and only then, it writes the version into the
session's setting ``lastCommitVersionInSession``. It notes nothing when it skips an append whose version is there, and nothing
when it refuses one. So a note in a session that makes nothing but this append is proof. Its absence is none: then the caller
reads the history. The session is a copy of the command's, because other threads may commit in that one, in a notebook for
example. Only Spark Connect copies sessions, from PySpark 4.1 on. A platform may refuse to copy a session, or to show the setting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rewindow.engine.spark.spark_job import mapped
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.create_table import ddl
from rewindow.tables.governed.names import TableName

_NOTE = "spark.databricks.delta.lastCommitVersionInSession"


def add_once(
    frame: DataFrame,
    name: TableName,
    app_id: str,
    version: int,
    *,
    replaces: str | None = None,
    token: str = "",
    is_whole: bool = False,
) -> None:
    """Append rows in one commit, ``(app_id, version)``, which lands once. It also removes the rows of ``replaces``.

    Delta skips a version that is there, without a Spark job. The history says ``token`` of this append, and ``is_whole``:
    whether the table then has exactly the rows that were published.
    """
    writer = frame.write.format("delta").option("txnAppId", app_id).option("txnVersion", version)
    stated = {"app": app_id, "version": version, **({"token": token} if token else {})}
    stated |= {"whole": True} if is_whole else {}
    writer = writer.option("userMetadata", json.dumps(stated))
    with mapped():
        if replaces is not None:
            writer.mode("overwrite").option("replaceWhere", replaces).saveAsTable(name.quoted)
        else:
            writer.mode("append").saveAsTable(name.quoted)


def is_there(spark: SparkSession, name: TableName, app_id: str, version: int, column: Column) -> bool:
    """Return whether a table certainly has a version of an application id. False proves nothing.

    An append under that version asks. Delta skips it if the version is there, after the one Spark job that the next append
    then does without. Otherwise it fails, because a function makes its rows that makes none: whatever a platform does with it, no
    row can be written.
    """
    never = spark.range(1).mapInArrow(_refused, ddl([column]))
    try:
        add_once(never, name, app_id, version)
    except Exception:  # noqa: BLE001 - whatever failed, it is not certain
        return False
    return True


def _refused(_batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    raise LookupError("rewindow asked whether a version is in the table. It is not, so the history is read instead")


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
    # An old Spark or a platform may refuse this: the history says the same.
    with suppress(Exception):
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
