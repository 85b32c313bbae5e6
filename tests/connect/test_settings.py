"""Settings that a platform keeps to itself: what only makes it faster is gone without, what decides a row is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rewindow.engine.spark.settings import for_packs


class Conf:
    """A session's settings, of which some are closed, as on Databricks' serverless."""

    def __init__(self, *closed: str) -> None:
        self.now: dict[str, Any] = {}
        self._closed = closed

    def get(self, name: str, default: Any = None) -> Any:
        self._look(name)
        return self.now.get(name, default)

    def set(self, name: str, value: str) -> None:
        self._look(name)
        self.now[name] = value

    def unset(self, name: str) -> None:
        self.now.pop(name)

    def _look(self, name: str) -> None:
        if any(part in name for part in self._closed):
            raise PySparkException(f"[CONFIG_NOT_AVAILABLE] Configuration {name} is not available.")


def session(conf: Conf) -> SparkSession:
    return cast("SparkSession", SimpleNamespace(conf=conf))


def test_the_sizes_of_batches_are_gone_without() -> None:
    closed, free = Conf("arrow"), Conf()
    with for_packs(session(closed), has_files=True):
        assert closed.now == {"spark.sql.session.timeZone": "UTC", "spark.sql.unionOutputPartitioning": "false"}
    with for_packs(session(free), has_files=True):
        assert sum("arrow" in name for name in free.now) == 2
    assert closed.now == free.now == {}


def test_the_zone_is_not() -> None:
    with pytest.raises(PySparkException), for_packs(session(Conf("timeZone"))):
        pass
