"""Several partitions: a scenario of each, because tasks of different partitions share nothing but what they repartition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32


def each_partition(scenario: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a scenario with the records of one partition, for each. A record without a key is in the first."""
    partitions = scenario["config"]["partitions"]
    for partition in range(partitions):
        config = {**scenario["config"], "partitions": 1}
        steps = [_of_partition(step, partition, partitions) for step in scenario["steps"]]
        yield {**scenario, "config": config, "steps": steps}


def _of_partition(step: Mapping[str, Any], partition: int, partitions: int) -> Mapping[str, Any]:
    batch = step.get("batch", [{**step, "topic": step["pipe"]}] if "pipe" in step else None)
    if batch is None:
        return step
    return {"batch": [one for one in batch if _partition_of(one["key"], partitions) == partition]}


def _partition_of(key: str | None, partitions: int) -> int:
    return 0 if key is None else crc32(key.encode()) % partitions
