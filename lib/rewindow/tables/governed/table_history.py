"""What a table's history shows: whether commits landed, who made them, and whether rows were changed since."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rewindow.engine.spark.spark_calls import mapped
from rewindow.tables.governed.names import TableName

_NO_VERSION = "DELTA_VERSION_NOT_FOUND"


_LOOKS = 16, 512
"""How many commits the first and the second query of a history return. If these are not enough, a third query returns all."""


_QUIET = ("OPTIMIZE", "AUTO", "REORG", "VACUUM", "SET ", "UNSET ", "ADD ", "CHANGE ", "RENAME ", "DROP ", "CLUSTER ")


_QUIET_TOO = ("CREATE TABLE", "UPGRADE PROTOCOL", "ROW TRACKING BACKFILL", "COMPUTE STATS", "DOMAIN METADATA CLEANUP")


CLOSED = 2**62
"""The version that closes an application id, because Delta skips all lower versions. Its commit has emptied the table."""


class _Made(NamedTuple):
    """A commit in a table's history, with its Delta ``version``.

    ``app``, ``number``: the commit's application id and its version under that id; ``""`` and 0 for a commit of another
    writer. ``is_whole``: whether the commit replaced all rows by the published rows.
    """

    version: int
    operation: str
    app: str
    number: int
    token: str
    is_whole: bool = False


class TableLook(NamedTuple):
    """What a table's history states about one application id.

    ``reached``: the last version under this id; 0 if there is none. ``is_untouched``: whether no other writer has changed
    rows since the second-last version under this id, or since a version that replaced all rows. ``version``: the newest Delta
    version in the history.
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
    """Return whether a Delta version certainly is the table's newest. If False, it may still be.

    This takes no Spark job. It tries to read the next version, which Delta refuses with an error that names the newest.
    """
    # After any other failure, the result is False, and the caller reads the history.
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
    """Return the last version of an application id in a table's history; 0 if there is none."""
    commits = _newest(spark, name, lambda newest: any(commit.app == app_id for commit in newest))
    return max((commit.number for commit in commits if commit.app == app_id), default=0)


def recent_token(spark: SparkSession, name: TableName, app_id: str, number: int) -> str | None:
    """Return the token in the commit of an application id's version; None if no recent commit has that version."""
    commits = _newest(spark, name, lambda _: True)
    return next((commit.token for commit in commits if (commit.app, commit.number) == (app_id, number)), None)


def _newest(spark: SparkSession, name: TableName, is_enough: Callable[[Sequence[_Made]], bool]) -> list[_Made]:
    """Return a table's newest commits, newest first; all commits if a few are not enough. Each query takes a Spark job."""
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


def table_version(spark: SparkSession, name: TableName) -> int | None:
    """Return a table's Delta version; None if there is no table."""
    if not exists(spark, name):
        return None
    with mapped():
        (last,) = spark.sql(f"DESCRIBE HISTORY {name.quoted} LIMIT 1").select("version").collect()
    return int(last["version"])
