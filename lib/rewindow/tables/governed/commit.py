"""Commit rows to a catalog's tables through the DataFrame writer.

What Spark returns or raises does not show whether a commit landed. The table's rows, its history, or Delta's note do.

The note is the version that Delta writes into the session's setting ``lastCommitVersionInSession``, after a commit and only
then. Delta writes no note when it skips an append whose version is in the table, or when it refuses an append. So if a
session makes only this append, a note in it proves that the append landed. A missing note proves nothing, so the caller then
reads the history. Reading the note takes no Spark job. The append is made in a copy of the command's session, because other
threads may commit in the command's session, for example in a notebook. Only Spark Connect copies sessions, from PySpark 4.1
on. A platform may refuse to copy a session, or to show the setting.

The history of a table shows what rewindow has committed, and whether another writer has changed the table. A commit of
rewindow states its application id, its version under that id and, in a ledger, the token of its append. The newest commits
are read first, a few at a time, so reading costs the same however long the history is.

On a local disk, Delta can acknowledge the same version to two JVMs, so `hold_local_disk` allows one JVM at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rewindow.engine.spark.spark_calls import mapped
from rewindow.errors import AccessError, NotNowError
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.names import TableName, ddl

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
    """Append rows in one commit, which is identified by ``app_id`` and ``version`` and lands at most once.

    If the table has that version, Delta skips the commit without a Spark job. ``replaces``: an SQL condition for rows that
    the commit removes. ``token``: the token of the append. ``is_whole``: whether the table has exactly the published rows
    after the commit. The commit records ``token`` and ``is_whole`` in the table's history.
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
    """Return whether a table certainly has a version of an application id. If False, the table may still have it.

    This tries to append under that version. If the table has the version, Delta skips the append. If not, the append fails,
    because the function that should make its rows raises an error. So no row can be written, whatever a platform does. The
    attempt takes a Spark job, but the next append then needs one job less.
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
    """Call ``commit`` with a session. Return whether Delta noted a commit in it. If False, the commit may still have landed.

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
    """Return a copy of a session, which has no note; None if the session cannot be copied."""
    own: SparkSession | None = None
    # An old Spark or a platform may refuse to copy a session. Then the history is read instead.
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
    """Close a copied session on the server, which would otherwise keep it for an hour."""
    client: Any = own.client
    with suppress(Exception):
        client.release_session()
    with suppress(Exception):
        client.close()


_NAME = ".rewindow.lock"


def hold_local_disk(warehouse_dir: str) -> None:
    """Lock the local folder of a catalog's tables against other JVMs while this process lives; elsewhere do nothing.

    ``warehouse_dir``: ``spark.sql.warehouse.dir``. A Spark Connect server is one JVM for all clients and needs no lock.
    Raises `NotNowError` (75) if another process holds the lock, `AccessError` (77) if the folder cannot be written.
    """
    url = urlsplit(warehouse_dir)
    if url.scheme in ("", "file"):
        _locked(unquote(url.path))


@cache
def _locked(folder: str) -> int:
    """Return the descriptor that holds the lock until this process ends."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{folder}/{_NAME}", os.O_CREAT | os.O_WRONLY, 0o644)
    except OSError as error:
        raise AccessError(
            "catalog-folder-not-writable",
            "{folder}, where the catalog's tables are, cannot be written ({reason}): give this user access",
            folder=folder,
            reason=error.strerror,
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise NotNowError(
            "catalog-folder-locked",
            "another process commits through Spark in {folder}, and a local disk allows one at a time. "
            "Wait for it, or let both use one server (`connect: sc://...`)",
            folder=folder,
        ) from error
    return lock
