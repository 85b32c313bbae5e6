"""Commit rows to a catalog's tables through the DataFrame writer.

What Spark returns or raises does not show whether a commit landed. The table's rows, its history, or Delta's note show it.

Delta's note shows whether an append landed without a Spark job. After a commit, and only then, Delta writes the version into the
session's setting ``lastCommitVersionInSession``. It writes no note when it skips an append whose version is in the table, or when
it refuses an append. So a note in a session in which only this append is made proves that the append landed. A missing note
proves nothing: then the caller reads the history. The append is made in a copy of the command's session, because other threads
may commit in the command's session, for example in a notebook. Only Spark Connect copies sessions, from PySpark 4.1 on. A
platform may refuse to copy a session, or to show the setting.

The history of a table shows what rewindow has committed, and whether anything else has changed the table. A commit of rewindow
states its application id, its version under that id and, in a ledger, the token of its append. The newest commits are read
first, a few at a time, so reading costs the same however long the history is.

On a local disk, Delta can acknowledge the same version to two JVMs, so `hold_local_disk` allows one JVM at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rewindow.engine.spark.spark_job import mapped
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

    If the table has that version, Delta skips the commit without a Spark job. ``replaces``: an SQL condition for rows that the
    commit removes. The history of the table then states ``token``, the token of the append, and ``is_whole``: whether the table
    has exactly the published rows after the commit.
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

    This tries to append under that version. If the table has the version, Delta skips the append, after a Spark job that the
    next append then need not make. Otherwise the append fails, because the function that should make its rows raises an error.
    So no row can be written, whatever a platform does.
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
    """Call ``commit`` with a session. Return whether Delta has noted a commit in that session; False proves nothing.

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
    """Return a copy of a session without a note; None if the session cannot be copied."""
    own: SparkSession | None = None
    # An old Spark or a platform may refuse the copy. Then the history is read instead.
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


_NO_VERSION = "DELTA_VERSION_NOT_FOUND"
_LOOKS = 16, 512
"""How many commits the first and the second query of a history return. A third query returns the whole history."""
_QUIET = ("OPTIMIZE", "AUTO", "REORG", "VACUUM", "SET ", "UNSET ", "ADD ", "CHANGE ", "RENAME ", "DROP ", "CLUSTER ")
_QUIET_TOO = ("CREATE TABLE", "UPGRADE PROTOCOL", "ROW TRACKING BACKFILL", "COMPUTE STATS", "DOMAIN METADATA CLEANUP")


CLOSED = 2**62
"""The version that closes an application id: nothing is committed under the id any more. Its commit has emptied the table."""


class _Made(NamedTuple):
    """A commit in a table's history, with its Delta ``version``.

    ``app``, ``number``: its application id and the version under that id; ``""`` and 0 for a commit of another writer.
    ``is_whole``: the commit replaced all rows by those that were published.
    """

    version: int
    operation: str
    app: str
    number: int
    token: str
    is_whole: bool = False


class TableLook(NamedTuple):
    """What a table's history states about one application id.

    ``reached``: the id's last version; 0 for none. ``is_untouched``: whether no other writer has changed rows since the id's
    version before the last, or since a version that replaced all rows. ``version``: the newest Delta version in the history.
    """

    reached: int
    is_untouched: bool
    version: int


def is_quiet(operation: str) -> bool:
    """Return whether an operation certainly changed no rows."""
    return operation.startswith(_QUIET) or operation in _QUIET_TOO


def look_at(spark: SparkSession, name: TableName, app_id: str) -> TableLook:
    """Return what a table's history states about an application id."""

    def is_enough(commits: Sequence[_Made]) -> bool:
        own = [commit for commit in commits if commit.app == app_id]
        return len(own) >= 2 or any(commit.is_whole for commit in own)

    reached, own, is_untouched = 0, 0, True
    newest = _newest(spark, name, is_enough)
    for commit in newest:
        if commit.app == app_id:
            reached, own = max(reached, commit.number), own + 1
            if own == 2 or commit.is_whole:
                break
        elif commit.number == CLOSED:
            break
        elif not is_quiet(commit.operation):
            is_untouched = False
    return TableLook(reached, is_untouched, newest[0].version)


def is_emptied(spark: SparkSession, name: TableName) -> bool:
    """Return whether the newest commit of a table has emptied it after a reset of its job."""
    return _newest(spark, name, lambda _: True)[0].number == CLOSED


def is_newest(spark: SparkSession, name: TableName, version: int) -> bool:
    """Return whether a Delta version certainly is the table's newest. False proves nothing.

    Takes no Spark job: Delta refuses to read the next version, and its error names the newest.
    """
    # After any other failure, the answer is False, and the caller reads the history.
    with suppress(Exception):
        try:
            _ = spark.read.option("versionAsOf", version + 1).table(name.quoted).schema
        except PySparkException as error:
            stated = error.getMessageParameters() or {}
            return error.getCondition() == _NO_VERSION and stated.get("latest") == str(version)
    return False


def exists(spark: SparkSession, name: TableName) -> bool:
    """Return whether the catalog has a table or view."""
    with mapped():
        return bool(spark.catalog.tableExists(name.quoted))


def has_files(spark: SparkSession, name: TableName) -> bool:
    """Return whether a table exists and has files."""
    if not exists(spark, name):
        return False
    with mapped():
        (detail,) = spark.sql(f"DESCRIBE DETAIL {name.quoted}").select("numFiles").collect()
    return bool(detail["numFiles"])


def last_version(spark: SparkSession, name: TableName, app_id: str) -> int:
    """Return the last version of an application id in a table's history; 0 for none."""
    commits = _newest(spark, name, lambda newest: any(commit.app == app_id for commit in newest))
    return max((commit.number for commit in commits if commit.app == app_id), default=0)


def recent_token(spark: SparkSession, name: TableName, app_id: str, number: int) -> str | None:
    """Return the token in the commit of an application id's version; None if no recent commit has that version."""
    commits = _newest(spark, name, lambda _: True)
    return next((commit.token for commit in commits if (commit.app, commit.number) == (app_id, number)), None)


def _newest(spark: SparkSession, name: TableName, is_enough: Callable[[Sequence[_Made]], bool]) -> list[_Made]:
    """Return a table's commits, the newest first: a few if they are enough, otherwise all. Each query takes a Spark job."""
    with mapped():
        for most in _LOOKS:
            commits = _commits(spark, f"DESCRIBE HISTORY {name.quoted} LIMIT {most}")
            if len(commits) < most or is_enough(commits):
                return commits
        return _commits(spark, f"DESCRIBE HISTORY {name.quoted}")


def _commits(spark: SparkSession, statement: str) -> list[_Made]:
    rows = spark.sql(statement).select("version", "operation", "userMetadata").collect()
    return [_made(row["version"], row["operation"], row["userMetadata"] or "") for row in rows]


def _made(version: int, operation: str, stated: str) -> _Made:
    if not stated.startswith('{"app"'):
        return _Made(version, operation, "", 0, "")
    body = json.loads(stated)
    return _Made(version, operation, body["app"], body["version"], body.get("token", ""), body.get("whole", False))


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
