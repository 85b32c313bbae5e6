"""Timestamp extractors of a scenario, run by the code of `land`, because a record has its timestamp before it is replayed."""

from __future__ import annotations

from typing import Any

import numpy as np

from rewindow import Record
from rewindow.contracts.ingest import SKIP, TimestampPolicy
from rewindow.engine.worker.timestamps import extract
from rewindow.streams.record import MAX_MS, UNKNOWN

EXTRACTORS: dict[str, Any] = {
    "value": lambda record, _partition_time: record.value,
    "value_or_partition_time": lambda record, time: record.value if record.value >= 0 else time,
    "one_later": lambda record, time: record.timestamp if time < 0 else time + 1,
}


def as_landed(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the scenario with the timestamps that the extractors of its sources give, without the records they refuse."""
    of_topic = {one["name"]: EXTRACTORS[one["extractor"]] for one in scenario["sources"] if "extractor" in one}
    if not of_topic:
        return scenario
    partition_time = dict.fromkeys(of_topic, UNKNOWN)
    steps = []
    for step in scenario["steps"]:
        landed = []
        for one in step.get("batch", [{**step, "topic": step["pipe"]}] if "pipe" in step else []):
            topic, record = one["topic"], Record(one["key"], one["value"], one["ts"])
            if topic in of_topic:
                policy, limits = TimestampPolicy(SKIP, 0), np.full(1, MAX_MS)
                judged = extract(of_topic[topic], [record], limits, [], policy, partition_time[topic])
                partition_time[topic] = judged.partition_time
                landed += [{**one, "ts": int(judged.timestamps[0])}] if judged.keep[0] else []
            else:
                landed.append(one)
        steps.append({"batch": landed} if "pipe" in step or "batch" in step else step)
    return {**scenario, "steps": steps}
