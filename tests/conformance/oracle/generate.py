"""Generate scenarios from given ones: the same graphs with other windows, bounds, joins and inputs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from tests.conformance.scenario import read, vector_files

TIMES = ("size", "advance", "grace", "gap", "diff", "start", "ms", "before", "after", "retention")
JUMPS = (-20, -10, -5, -3, -2, -1, 1, 2, 3, 5, 10, 20)


def recorded(like: str = "") -> list[dict[str, Any]]:
    """Return the recorded scenarios that can be varied, of files whose names contain a text.

    The corners hold only for their own inputs: a wall clock that starts with the first record, keys of several columns.
    """
    files = [file for file in vector_files() if like in file.stem and file.stem != "corners"]
    return [case.scenario for file in files for case in read(file) if case.mode == "driver"]


def generate(base: Sequence[dict[str, Any]], seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield new scenarios. The same seed gives the same ones."""
    rng = random.Random(seed)
    for number in range(count):
        scenario = deepcopy(rng.choice(base))
        scenario["nodes"] = [_node(node, rng) if rng.random() < 0.7 else node for node in scenario["nodes"]]
        is_batched = all(source["kind"] != "global" for source in scenario["sources"])
        scenario["steps"] = _steps(scenario["steps"], rng, is_batched=is_batched)
        scenario["trace_buffers"] = False
        scenario["name"] = f"new_{seed}_{number}_{scenario['name']}"
        yield scenario


def _node(node: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    for name in TIMES:
        if name in node and rng.random() < 0.4:
            node[name] = _number(node[name], rng)
    if "size" in node:
        node["size"] = max(1, node["size"])
    if "diff" in node:
        node["diff"] = max(1, node["diff"])  # Kafka fails at the first record of sliding windows with a difference of 0
    if "advance" in node:
        node["advance"] = min(max(1, node["advance"]), node["size"])
    if node["op"].endswith("_join") and rng.random() < 0.3:
        node["how"] = rng.choice(["inner", "left", *([] if node["op"] == "stream_table_join" else ["outer"])])
    for name, bound in node.get("buffer", {}).items():
        if isinstance(bound, int) and rng.random() < 0.4:
            node["buffer"][name] = _number(bound, rng)
    return node


def _number(before: int, rng: random.Random) -> int:
    near = (before, before, before + 1, before - 1, before * 2, before // 2, rng.randint(0, 12), 0, 1)
    return max(0, rng.choice(near))


def _steps(steps: list[dict[str, Any]], rng: random.Random, *, is_batched: bool) -> list[dict[str, Any]]:
    """Return varied steps. Not ``is_batched``: of several records, Kafka takes those of a global table first."""
    made: list[dict[str, Any]] = []
    for step in steps:
        for record in step.get("batch", [step] if "pipe" in step else []):
            _record(record, rng)
        made += [step] * rng.choices((0, 1, 2), (6, 88, 6))[0]
    for index in range(len(made) - 1):
        if rng.random() < 0.1:
            made[index], made[index + 1] = made[index + 1], made[index]
    return _batched(made, rng) if is_batched else made


def _record(record: dict[str, Any], rng: random.Random) -> None:
    if rng.random() < 0.3:
        record["ts"] = max(0, record["ts"] + rng.choice(JUMPS))
    if rng.random() < 0.2:
        record["key"] = rng.choice(["A", "AA", "B", "C", "A", "B"])
    if rng.random() < 0.03:
        record["key"] = None
    if rng.random() < 0.15 and isinstance(record["value"], int):
        record["value"] = rng.randint(0, 9)
    if rng.random() < 0.05:
        record["value"] = None


def _batched(steps: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    """Sometimes combine three steps into one batch."""
    if len(steps) < 5 or rng.random() > 0.3:
        return steps
    first = rng.randint(0, len(steps) - 3)
    some = steps[first : first + 3]
    if not all("pipe" in step for step in some):
        return steps
    batch = [{"topic": step["pipe"], **{name: step[name] for name in ("key", "value", "ts")}} for step in some]
    return [*steps[:first], {"batch": batch}, *steps[first + 3 :]]
