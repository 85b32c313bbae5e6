"""Play a partition-group scenario with the naive queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.oracle.queues import LARGEST, Queues
from tests.oracle.rules import Rules


def play_group(scenario: Mapping[str, Any], rules: Rules) -> tuple[list[dict[str, Any]], int | None]:
    """Return what each step gives, as the recorded results have it, and the step that fails, which gives nothing."""
    config, names = scenario["config"], list(scenario["partitions"])
    idle = config.get("max_task_idle_ms", 0)
    policy = config.get("timestamp_extractor", "fail")
    queues = Queues(len(names), LARGEST if idle == "max" else idle, rules, policy=policy)
    now, offsets = config.get("wall_clock", 0), [0] * len(names)

    def take() -> dict[str, Any] | None:
        taken = queues.take()
        if taken is None:
            return None
        number, offset, timestamp, _ = taken
        seen = {"partition": names[number], "offset": offset, "ts": timestamp, "corrupted": timestamp < 0}
        return {**seen, "stream_time": queues.stream_time}

    def perform(step: Mapping[str, Any]) -> dict[str, Any]:
        nonlocal now
        result: dict[str, Any] = {}
        if "add" in step:
            number = names.index(step["add"])
            rows = [(offsets[number] + i, one["ts"], None) for i, one in enumerate(step["records"])]
            offsets[number] += len(rows)
            queues.add(number, rows)
            result["buffered_in_partition"] = queues.partitions[number].size()
        elif "ready" in step:
            result["ready"] = queues.is_ready(now)
        elif "next" in step:
            result["picked"] = take()
        elif "run" in step or "drain" in step:
            result["picked"] = []
            while queues.size() and ("drain" in step or queues.is_ready(now)):
                result["picked"].append(take())
        for name, lag in step.get("lags", {}).items():
            queues.partitions[names.index(name)].lag = lag
        for name, time in step.get("set_partition_time", {}).items():
            queues.partitions[names.index(name)].time = time
            queues.stream_time = max(queues.stream_time, time)
        now = step.get("at", now + step.get("advance", 0))
        result["stream_time"] = queues.stream_time
        result["partition_times"] = {name: queues.partitions[number].time for number, name in enumerate(names)}
        result["buffered"] = queues.size()
        result["all_buffered"] = all(partition.size() for partition in queues.partitions)
        return result

    results: list[dict[str, Any]] = []
    for step in scenario["steps"]:
        try:
            results.append(perform(step))
        except ValueError:  # a timestamp that the policy refuses
            return results, len(results)
    return results, None
