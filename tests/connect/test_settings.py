"""If a platform forbids settings, rewindow works without those for speed, but not without those that affect rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rewindow.engine.spark.spark_calls import for_packs


class Conf:
    """A session's settings, some of them forbidden, as on Databricks serverless."""

    def __init__(self, *forbidden: str) -> None:
        self.now: dict[str, Any] = {}
        self._forbidden = forbidden

    def get(self, name: str, default: Any = None) -> Any:
        self._check(name)
        return self.now.get(name, default)

    def set(self, name: str, value: str) -> None:
        self._check(name)
        self.now[name] = value

    def unset(self, name: str) -> None:
        self.now.pop(name)

    def _check(self, name: str) -> None:
        if any(part in name for part in self._forbidden):
            raise PySparkException(f"[CONFIG_NOT_AVAILABLE] Configuration {name} is not available.")


def session(conf: Conf) -> SparkSession:
    return cast("SparkSession", SimpleNamespace(conf=conf))


def test_batch_sizes_are_optional() -> None:
    forbidden, free = Conf("arrow"), Conf()
    with for_packs(session(forbidden), has_files=True):
        assert forbidden.now == {"spark.sql.session.timeZone": "UTC", "spark.sql.unionOutputPartitioning": "false"}
    with for_packs(session(free), has_files=True):
        assert sum("arrow" in name for name in free.now) == 2
    assert forbidden.now == free.now == {}


def test_the_time_zone_is_not_optional() -> None:
    with pytest.raises(PySparkException), for_packs(session(Conf("timeZone"))):
        pass
