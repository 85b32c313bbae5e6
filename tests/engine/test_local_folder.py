"""What Spark writes to the local disk holds copies of rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_only_this_user_can_read_the_rows_that_spark_shuffles(spark: SparkSession) -> None:
    spark.range(10).repartition(2).collect()
    folder = Path(spark.sparkContext.getConf().get("spark.local.dir"))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.glob("blockmgr-*/*/shuffle_*.data"))
