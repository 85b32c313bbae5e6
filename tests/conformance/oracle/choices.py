"""Draw scenarios of what user code chooses: the row of a global table, the topic of a record, its partition."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

KEYS = ("A", "A", "B", "C", "AA", None)
ROWS = ("A", "B", "AA", "0", "1", "2", "3", "all", None)
LEAPS = (0, 0, 1, 2, 5, 12)
LATE = (0, 0, 0, 1, 4, 9)


def choices(seed: int, count: int) -> Iterator[Json]:
    """Yield scenarios. The same seed gives the same ones."""
    rng = random.Random(seed)
    for number in range(count):
        yield scenario(rng, f"choices_{seed}_{number}")


def scenario(rng: random.Random, name: str) -> Json:
    """Return a scenario with one or two streams, up to two global tables, and routes or ordinary sinks."""
    tables = [f"g{number}" for number in range(rng.choice((0, 1, 1, 1, 2)))]
    streams = ["x", "y"] if rng.random() < 0.3 else ["x"]
    topics = [*tables, *streams]
    rng.shuffle(topics)
    nodes: list[Json] = []
    sinks: list[Json] = []
    for stream in streams:
        last = _chain(rng, stream, tables, nodes)
        sinks.append(
            _route(rng, f"out-{stream}", last) if rng.random() < 0.6 else {"name": f"out-{stream}", "in": last}
        )
    return {
        "name": name,
        "config": {"wall_clock": 0, "max_task_idle_ms": 0},
        "sources": [
            {"name": topic, "kind": "global" if topic in tables else "stream", "value": "long"} for topic in topics
        ],
        "nodes": nodes,
        "sinks": sinks,
        "steps": [_step(rng, topics, tables, now) for now in _times(rng)],
    }


def _chain(rng: random.Random, stream: str, tables: list[str], nodes: list[Json]) -> str:
    """Add the nodes below a stream; return the last one. Its values are numbers before a join, and texts after it."""
    last = stream
    for number in range(rng.randint(0, 2)):
        node = rng.choice(
            (
                {"op": "filter", "pred": {"not": {"lt": rng.randint(0, 4)}}},
                {"op": "map_values", "fn": {"add": rng.randint(1, 3)}},
                {"op": "map_values", "fn": {"null_if": {"gt": rng.randint(5, 9)}}},
                {"op": "select_key", "by": rng.choice(({"value_mod": 3}, {"key_prefix": 1}))},
                {"op": "repartition", "partitioner": {"value_mod": rng.randint(1, 4)}},
                {"op": "repartition"},
            )
        )
        last = _add(nodes, f"{stream}{number}", last, node)
    for number, table in enumerate(rng.sample(tables, rng.randint(min(1, len(tables)), len(tables)))):
        by = rng.choice(({"key_text": True}, {"key_prefix": 1}, {"const": "all"}, _of_value(rng, is_text=number > 0)))
        join = {"op": "global_table_join", "how": rng.choice(("inner", "left")), "by": by, "keys": rng.random() < 0.3}
        last = _add(nodes, f"{stream}-join{number}", [last, table], join)
    if rng.random() < 0.3:
        grouped = _add(nodes, f"{stream}-grouped", last, {"op": "group_by_key"})
        counted = _add(nodes, f"{stream}-count", grouped, {"op": "aggregate", "fn": "count"})
        last = _add(nodes, f"{stream}-stream", counted, {"op": "to_stream"})
    return last


def _of_value(rng: random.Random, *, is_text: bool) -> Json:
    return {"value_prefix": 1} if is_text else {"value_mod": rng.randint(2, 4)}


def _add(nodes: list[Json], name: str, above: Any, node: Json) -> str:
    nodes.append({"name": name, **node, "in": above})
    return name


def _route(rng: random.Random, name: str, above: str) -> Json:
    by = rng.choice(({"key_prefix": 1}, {"value_prefix": 1}))
    known = ["A", "B", "C", "n", "null", *"0123456789"]
    return {"name": name, "in": above, "route": by, "outputs": [f"{name}-{known}" for known in known]}


def _times(rng: random.Random) -> Iterator[int]:
    now = rng.randint(0, 9)
    for _ in range(rng.randint(4, 20)):
        now += rng.choice(LEAPS)
        yield max(0, now - rng.choice(LATE))


def _step(rng: random.Random, topics: list[str], tables: list[str], timestamp: int) -> Json:
    """Return a step with one record: Kafka takes several records of a global table before all others."""
    topic = rng.choice(topics)
    key = rng.choice(ROWS if topic in tables else KEYS)
    value = None if rng.random() < 0.15 else rng.randint(0, 9)
    return {"pipe": topic, "key": key, "value": value, "ts": timestamp}
