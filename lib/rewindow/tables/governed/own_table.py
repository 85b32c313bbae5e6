"""The one table of rewindow's own rows in a catalog: the ledgers of jobs and feeds, and the journal of what was staged.

Rows that belong together are appended in one commit, whatever their kind. A ledger row has a number (``seq``). A row of the
journal has no number, but names its attempt. Rows of job ``a`` have the name ``a``, rows of feed ``b`` the name ``feed:b``,
and the stored folds of their ledgers the names ``fold:a`` and ``fold:feed:b``. The metrics of all jobs are a view of rows of
the journal, so a run adds its metrics in the commit that contains its COMMIT row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.staged_files import METRICS
from rewindow.engine.spark.spark_calls import mapped
from rewindow.errors import RewindowError
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.commit import add_once, commit_noted
from rewindow.tables.governed.create_table import create_table
from rewindow.tables.governed.names import TableName, ddl
from rewindow.tables.governed.table_history import exists, recent_token

NAME = "rewindow_ledger"
METRICS_VIEW = "rewindow_metrics"
BLOCK = "block"
"""The kind of a journal row that contains the bytes of a staged file."""
REPORT, METRIC = "report", "metric"
"""The other kinds of journal rows: a task's report, a row of the metrics."""
FOLD = "fold"
"""The kind of a row that has the stored state (fold) of a ledger (`tables.governed.ledger`)."""
COLUMNS = (
    Column("name", "string"),
    Column("seq", "long"),
    Column("kind", "string"),
    Column("attempt", "string"),
    Column("sub_topology", "long"),
    Column("partition", "long"),
    Column("path", "string"),
    Column("body", "string"),
    Column("data", "binary"),
    Column("recorded_at", "long"),
)
_ARROW = {"string": pa.string(), "long": pa.int64(), "binary": pa.binary()}
SCHEMA = pa.schema([(column.name, _ARROW[column.type]) for column in COLUMNS])
_PROPERTIES = {"delta.checkpointInterval": "50"}
"""A checkpoint is written after this many commits. Writing a checkpoint takes a few Spark jobs. Opening the table reads a
small file for each commit since the last checkpoint."""
_ATTEMPTS = 5
_TEXTS = ("name", "seq", "kind", "attempt", "sub_topology", "body", "recorded_at")


class OwnTable:
    """The table of rewindow's own rows in one schema of a catalog."""

    def __init__(self, spark: Callable[[], SparkSession], home: TableName) -> None:
        """``home``: a name in the schema. Nothing is read or created."""
        self.spark_of = spark
        self.name, self.view = home._replace(name=NAME), home._replace(name=METRICS_VIEW)
        self.names: tuple[str, ...] = ()
        """The names of the jobs and feeds whose rows the current command reads; none outside of commands."""
        self._exists = self._is_prepared = False

    def prepare(self) -> None:
        """Create the table and the view of its metrics if they do not exist."""
        if self._is_prepared:
            return
        spark, view = self.spark_of(), self.view
        if not self.exists():
            create_table(spark, self.name, COLUMNS, ("name",), _PROPERTIES)
            self._exists = True
        # The process that created the table may have died before it could create the view.
        if not exists(spark, view):
            create_metrics_view(spark, view, self.name, METRIC)
        self._is_prepared = True

    def exists(self) -> bool:
        """Return whether the table exists."""
        if not self._exists:
            self._exists = exists(self.spark_of(), self.name)
        return self._exists

    def frame(self) -> DataFrame:
        """Return all rows of the table."""
        return self.spark_of().table(self.name.quoted)

    def in_command(self) -> DataFrame:
        """Return the rows of the names that the current command reads."""
        return self.frame().where(F.col("name").isin(list(self.names))) if self.names else self.frame()

    def texts(self, condition: Callable[[], Expression]) -> list[Row]:
        """Return the rows that satisfy a condition, without the bytes of blocks; none if there is no table."""
        # The condition is built only when there is a session. Before that, PySpark does not know whether the session is remote.
        if not self.exists():
            return []
        with mapped():
            return self.frame().where(condition()).select(*_TEXTS).collect()

    def append(self, rows: pa.Table, app_id: str, version: int, token: str = "") -> bool:
        """Append a few rows in one commit, which is identified by ``app_id`` and ``version`` and lands at most once.

        Return True if Delta has noted the commit. If False, only the history shows whether the commit landed.
        """
        self.prepare()

        def commit(spark: SparkSession) -> None:
            frame = spark.createDataFrame(rows.cast(SCHEMA)).coalesce(1)
            add_once(frame, self.name, app_id, version, token=token)

        return commit_noted(self.spark_of(), commit)

    def replace(self, name: str, rows: pa.Table) -> None:
        """Replace all rows of a name in one commit. The last writer wins."""
        frame = self.spark_of().createDataFrame(rows.cast(SCHEMA)).coalesce(1)
        writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", f"name = '{name}'")
        writer.saveAsTable(self.name.quoted)

    def delete(self, condition: str) -> None:
        """Remove the rows that satisfy a condition. The platform's VACUUM deletes the files that had the rows."""
        self._execute(f"DELETE FROM {self.name.quoted} WHERE {condition}")  # noqa: S608 - our own condition

    def merge_files(self, name: str) -> None:
        """Merge the small files with rows of a name. Rows do not change."""
        self._execute(f"OPTIMIZE {self.name.quoted} WHERE name = '{name}'")

    def _execute(self, statement: str) -> None:
        """Execute a statement. Repeat the statement if it fails."""
        # Delta refuses a statement if another process commits at the same time.
        for attempt in range(_ATTEMPTS):
            try:
                with mapped():
                    self.spark_of().sql(statement)
            except RewindowError:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def token_of(self, app_id: str, version: int) -> str | None:
        """Return the token in the commit of an application id's version; None if no recent commit has that version."""
        with mapped():
            return recent_token(self.spark_of(), self.name, app_id, version)


def rows_of(columns: Mapping[str, Sequence[Any]], length: int) -> pa.Table:
    """Return rows of the table, given some of its columns. The other columns are null. ``length``: the number of rows."""
    return pa.table(
        [
            pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(length, field.type)
            for field in SCHEMA
        ],
        schema=SCHEMA,
    )


def fold_name(name: str) -> str:
    """Return the name under which the state (fold) of a ledger is stored. No job or feed has such a name."""
    return f"fold:{name}"


def is_text() -> Expression:
    """Return the condition that selects ledger rows, folds and reports: all rows except blocks and metrics."""
    return ~F.col("kind").isin(BLOCK, METRIC)


def create_metrics_view(spark: SparkSession, view: TableName, table: TableName, kind: str) -> None:
    """Create the view of the metrics if it does not exist. ``kind``: the kind of rows whose bodies are metrics as JSON."""
    parsed = f"SELECT from_json(body, '{ddl(METRICS)}') AS metric FROM {table.quoted} WHERE kind = '{kind}'"  # noqa: S608 - our own names
    with mapped():
        spark.sql(f"CREATE VIEW IF NOT EXISTS {view.quoted} AS SELECT metric.* FROM ({parsed})")  # noqa: S608
