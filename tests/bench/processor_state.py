"""The job `processor` with Spark's `transformWithState` in Python: counters by key, sent and cleared every ten minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tests.bench.workload import INTERVAL_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Counter(StatefulProcessor):
    """Counts by key. Sends a key's count with its first record of the next ten minutes, and at the end."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """See Spark."""
        self._state = handle.getValueState("counter", "count long, until long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """See Spark."""
        for row in rows:
            count, until = (self._state.get() if self._state.exists() else None) or (0, 0)
            due = row.timestamp // INTERVAL_MS + 1
            if count and due > until:
                yield Row(user=key[0], events=count, at=until * INTERVAL_MS)
                count = 0
            self._state.update((count + 1, max(until, due)))

    def close(self) -> None:
        """See Spark."""


def count_by_key(spark: SparkSession, path: str, rows: int) -> int:
    """Run the job over the first rows of a log, and return the number of results."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDER)
    spark.streams.active  # noqa: B018 - starts the listener that the stores report to, which a batch query does not start
    log = spark.read.parquet(path).limit(rows)
    done = log.groupBy("user").transformWithState(
        Counter(), "user string, events long, at long", outputMode="Append", timeMode="None"
    )
    return done.count()
