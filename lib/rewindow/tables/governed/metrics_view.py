"""The metrics of all jobs as a view of rewindow's own rows, so a run adds them in the commit that makes it true."""

from __future__ import annotations

from pyspark.sql import SparkSession

from rewindow.contracts.staged_files import METRICS
from rewindow.engine.spark.spark_job import mapped
from rewindow.tables.governed.commit import ddl
from rewindow.tables.governed.names import TableName


def create_metrics_view(spark: SparkSession, view: TableName, table: TableName, kind: str) -> None:
    """Create the view of the rows of a kind, whose bodies are rows of the metrics as JSON, if it does not exist."""
    parsed = f"SELECT from_json(body, '{ddl(METRICS)}') AS metric FROM {table.quoted} WHERE kind = '{kind}'"  # noqa: S608 - our own names
    with mapped():
        spark.sql(f"CREATE VIEW IF NOT EXISTS {view.quoted} AS SELECT metric.* FROM ({parsed})")  # noqa: S608
