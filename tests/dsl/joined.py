"""Steps of the examples of joins: an input record and the results that it must send."""

from __future__ import annotations

from typing import Any

from rewindow.testing import TopologyTestDriver

Step = tuple[str, str | None, Any, int, list[str]]


def told(driver: TopologyTestDriver) -> list[str]:
    """Return results as ``k:a-x@9``."""
    return [f"{record.key}:{record.value}@{record.timestamp}" for record in driver.read("out")]


def play(driver: TopologyTestDriver, steps: list[Step], *, cut: bool) -> None:
    for topic, key, value, timestamp, expected in steps:
        driver.pipe(topic, key, value, timestamp)
        assert told(driver) == expected, (topic, key, value, timestamp)
        if cut:
            driver.cut()
