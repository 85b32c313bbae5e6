"""Where a scenario's graph is cut: above an aggregate whose records may have another key than their topic's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Part:
    """One sub-topology: the topics it reads and the names of its nodes, topics included."""

    topics: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def cut_at_repartitions(scenario: Mapping[str, Any], *, is_one_task: bool) -> list[Part]:
    """Return the parts, upstream first; with ``is_one_task`` all in one, as Kafka's test driver has them."""
    rekeyed = {source["name"]: False for source in scenario["sources"]}
    part_of = {source["name"]: number for number, source in enumerate(scenario["sources"])}
    topics = list(part_of)
    for node in scenario["nodes"]:
        name, parents = node["name"], node["in"] if isinstance(node["in"], list) else [node["in"]]
        is_rekeyed = any(rekeyed[parent] for parent in parents)
        if node["op"] == "aggregate" and is_rekeyed:
            topic = f"{name}-repartition"
            topics.append(topic)
            part_of[topic] = part_of[name] = max(part_of.values()) + 1
            rekeyed[name] = False
            continue
        rekeyed[name] = is_rekeyed or node["op"] in ("select_key", "group_by", "processor")
        joined = {part_of[parent] for parent in parents}
        part_of = {known: min(joined) if part in joined else part for known, part in part_of.items()}
        part_of[name] = min(joined)
    parts: dict[int, Part] = {}
    for name, number in part_of.items():
        part = parts.setdefault(0 if is_one_task else number, Part())
        part.names.append(name)
        if name in topics:
            part.topics.append(name)
    return [part for _, part in sorted(parts.items())]
