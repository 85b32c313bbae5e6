"""Rows to the Spark task of their number."""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame


def repartition_by(rows: DataFrame, tasks: int, number: Expression) -> DataFrame:
    """Bring rows of equal numbers together, those of each number from 0 on into a Spark task of their own.

    Before Spark 4.1 (Databricks' runtime 17.3) numbers are hashed: two may share a task, which costs time and no row.
    """
    number = number.cast("int")
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(tasks, number)
    return rows.repartition(tasks, number)
