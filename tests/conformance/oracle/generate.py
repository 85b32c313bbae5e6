"""New scenarios in the manner of given ones: the same graphs with other windows, bounds, joins and inputs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

TIMES = ("size", "advance", "grace", "gap", "diff", "start", "ms", "before", "after", "retention")
JUMPS = (-20, -10, -5, -3, -2, -1, 1, 2, 3, 5, 10, 20)


def generate(base: Sequence[dict[str, Any]], seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield new scenarios. The same seed gives the same ones."""
    chance = random.Random(seed)
    for number in range(count):
        scenario = deepcopy(chance.choice(base))
        scenario["nodes"] = [_node(node, chance) if chance.random() < 0.7 else node for node in scenario["nodes"]]
        scenario["steps"] = _steps(scenario["steps"], chance)
        scenario["trace_buffers"] = False
        scenario["name"] = f"new_{seed}_{number}_{scenario['name']}"
        yield scenario


def _node(node: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    for name in TIMES:
        if name in node and chance.random() < 0.4:
            node[name] = _number(node[name], chance)
    if "size" in node:
        node["size"] = max(1, node["size"])
    if "diff" in node:
        node["diff"] = max(1, node["diff"])  # Kafka fails at the first record of sliding windows with a difference of 0
    if "advance" in node:
        node["advance"] = min(max(1, node["advance"]), node["size"])
    if node["op"].endswith("_join") and chance.random() < 0.3:
        node["how"] = chance.choice(["inner", "left", *([] if node["op"] == "stream_table_join" else ["outer"])])
    for name, bound in node.get("buffer", {}).items():
        if isinstance(bound, int) and chance.random() < 0.4:
            node["buffer"][name] = _number(bound, chance)
    return node


def _number(before: int, chance: random.Random) -> int:
    near = (before, before, before + 1, before - 1, before * 2, before // 2, chance.randint(0, 12), 0, 1)
    return max(0, chance.choice(near))


def _steps(steps: list[dict[str, Any]], chance: random.Random) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for step in steps:
        for record in step.get("batch", [step] if "pipe" in step else []):
            _record(record, chance)
        made += [step] * chance.choices((0, 1, 2), (6, 88, 6))[0]
    for place in range(len(made) - 1):
        if chance.random() < 0.1:
            made[place], made[place + 1] = made[place + 1], made[place]
    return _batched(made, chance)


def _record(record: dict[str, Any], chance: random.Random) -> None:
    if chance.random() < 0.3:
        record["ts"] = max(0, record["ts"] + chance.choice(JUMPS))
    if chance.random() < 0.2:
        record["key"] = chance.choice(["A", "AA", "B", "C", "A", "B"])
    if chance.random() < 0.03:
        record["key"] = None
    if chance.random() < 0.15 and isinstance(record["value"], int):
        record["value"] = chance.randint(0, 9)
    if chance.random() < 0.05:
        record["value"] = None


def _batched(steps: list[dict[str, Any]], chance: random.Random) -> list[dict[str, Any]]:
    """Now and then give three steps at once."""
    if len(steps) < 5 or chance.random() > 0.3:
        return steps
    first = chance.randint(0, len(steps) - 3)
    some = steps[first : first + 3]
    if not all("pipe" in step for step in some):
        return steps
    batch = [{"topic": step["pipe"], **{name: step[name] for name in ("key", "value", "ts")}} for step in some]
    return [*steps[:first], {"batch": batch}, *steps[first + 3 :]]
