"""What Kafka's test driver also recorded: the buffer of each suppress after each step, and metrics of the whole scenario.

`judge` compares them only on request (`--internals`), because metrics are not results. It compares the metrics that both
have: lateness (if both run one task), the updates that suppress emits, and the records and bytes of its buffer.

Bytes are not compared in three cases. Below a `count`, Kafka's first update of a key has the initializer's 0 as its old
value, which is 8 bytes (D13). Below sessions and sliding windows, a window that is written again has no old value in Kafka
(D13). Below a repartition, an entry counts the name of its topic, which in Kafka starts with the application's id. Final
results of sessions and sliding windows are held one millisecond longer here (D10), so their buffers are not compared at all.
"""

from __future__ import annotations

from typing import Any

from rewindow import Windowed
from rewindow.streams.metrics import (
    RECORD_LATENESS,
    SUPPRESSION_BUFFER_COUNT,
    SUPPRESSION_BUFFER_SIZE,
    SUPPRESSION_EMIT,
    Measure,
    add_up,
)
from rewindow.streams.serde.key_bytes import encode_key
from rewindow.testing import TopologyTestDriver


def suppress_nodes(scenario: dict[str, Any]) -> list[str]:
    """Return the names of a scenario's suppress nodes, which are also the names of their buffers."""
    return [node["name"] for node in scenario["nodes"] if node["op"] == "suppress"]


def buffers_of(driver: TopologyTestDriver, scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the content of each suppress buffer, in the order in which it would leave."""
    found = {}
    for name in suppress_nodes(scenario):
        held = sorted(driver.store(name).items(), key=lambda item: (item[1].buffer_time, encode_key(item[0])))
        entries = [
            {"key": _readable(key), "value": entry.value, "buffer_time": entry.buffer_time, "ts": entry.timestamp}
            for key, entry in held
        ]
        found[name] = {"entries": entries, "bytes": sum(entry.size for _, entry in held)}
    return found


def metrics_of(driver: TopologyTestDriver, scenario: dict[str, Any]) -> dict[str, float | None]:
    """Return the metrics that Kafka also has, under Kafka's names."""
    sums = add_up(driver.metrics)

    def measured(level: str, node: str, name: str) -> Measure:
        return sums.get((level, node, name, ""), Measure())

    lateness = measured("task", "", RECORD_LATENESS)
    found = {"record-lateness-avg": _average(lateness), "record-lateness-max": _maximum(lateness)}
    for node in suppress_nodes(scenario):
        found[f"suppression-emit-total[{node}]"] = measured("node", node, SUPPRESSION_EMIT).total
        for name in (SUPPRESSION_BUFFER_COUNT, SUPPRESSION_BUFFER_SIZE):
            samples = measured("store", node, name)
            found[f"{name}-avg[{node}-store]"] = _average(samples)
            found[f"{name}-max[{node}-store]"] = _maximum(samples)
    return found


def difference(
    scenario: dict[str, Any], expected: dict[str, Any], metrics: dict[str, float | None], buffers: list[dict[str, Any]]
) -> str | None:
    """Describe the first difference, or return None. If the scenario ended in an error, only the buffers are compared."""
    is_one_task = expected["subtopologies"] == 1
    moves = any(node.get("type") in ("session", "sliding") for node in scenario["nodes"])
    if moves and any(node.get("until") == "window_closes" for node in scenario["nodes"]):
        return None
    weighs = is_one_task and not moves and not any(node.get("fn") == "count" for node in scenario["nodes"])
    traced = [step["buffers"] for step in expected["steps"] if "buffers" in step]
    for number, (recorded, seen) in enumerate(zip(traced, buffers, strict=False)):
        for name in recorded:
            one, other = recorded[name], seen[name]
            if one["entries"] != other["entries"] or (weighs and one["bytes"] != other["bytes"]):
                return f"step {number}: buffer {name}: recorded {one}, got {other}"
    if expected.get("error"):
        return None
    for name, value in metrics.items():
        skip = (not weighs and name.startswith(SUPPRESSION_BUFFER_SIZE)) or (
            not is_one_task and name.startswith(RECORD_LATENESS)
        )
        recorded = expected["metrics"].get(name)
        if not skip and name in expected["metrics"] and not _is_close(recorded, value):
            return f"metric {name}: recorded {recorded}, got {value}"
    return None


def _readable(key: Any) -> Any:
    if isinstance(key, Windowed):
        return {"key": key.key, "start": key.window.start_ms, "end": key.window.end_ms}
    return key


def _average(measure: Measure) -> float | None:
    return measure.total / measure.count if measure.count else None


def _maximum(measure: Measure) -> float | None:
    return measure.maximum


def _is_close(one: float | None, other: float | None) -> bool:
    return one == other if one is None or other is None else abs(one - other) < 1e-9
