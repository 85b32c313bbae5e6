"""Where a scenario's graph is cut: above a node that needs equal keys in one partition, if the key may have changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAKES_TABLE = ("aggregate", "suppress", "to_table", "table_table_join", "foreign_key_join")
DERIVE = ("filter", "map_values", "transform_values")
"""The verbs that make a table of a table."""
TOGETHER = ("repartition", "aggregate", "cogroup", "to_table", "stream_stream_join", "stream_table_join")


@dataclass
class Part:
    """One sub-topology: the topics that it reads, and the names of its nodes including the topics."""

    topics: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def repartition_topic(node: str, side: int) -> str:
    """Return the name of the repartition topic of a node's input."""
    return f"{node}-repartition" if side == 0 else f"{node}-repartition-{side}"


def answer_topic(node: str) -> str:
    """Return the name of the topic of a foreign-key join's results."""
    return f"{node}-answer"


def keyed_repartitions(nodes: list[Mapping[str, Any]]) -> set[str]:
    """Return the repartitions that drop null keys: those above no join that sends them (KIP-962)."""
    found, sending = set(), set()
    for node in reversed(nodes):
        above = set(node["in"] if isinstance(node["in"], list) else [node["in"]])
        if node["name"] in sending or (
            (node["op"].endswith("stream_join") or node["op"].endswith("table_join"))
            and (node["how"] != "inner" and node["op"] != "table_table_join")
        ):
            sending |= above
        if node["op"] == "repartition" and node["name"] not in sending:
            found.add(node["name"])
    return found


def grouped_tables(scenario: Mapping[str, Any]) -> set[str]:
    """Return the nodes that group a table. All aggregates below such a node read the same topic."""
    tables = {source["name"] for source in scenario["sources"] if source["kind"] == "table"}
    grouped = set()
    for node in scenario["nodes"]:
        above = node["in"][0] if isinstance(node["in"], list) else node["in"]
        if node["op"] == "group_by" and above in tables:
            grouped.add(node["name"])
        elif node["op"] in MAKES_TABLE or (node["op"] in DERIVE and above in tables):
            tables.add(node["name"])
    return grouped


def cut_at_repartitions(scenario: Mapping[str, Any], *, is_one_task: bool) -> list[Part]:
    """Return the parts, upstream first. With ``is_one_task`` there is a single part, as in Kafka's test driver.

    A global table is a part of its own either way: its records move no clock of the others.
    """
    rekeyed = {source["name"]: False for source in scenario["sources"]}
    part_of = {source["name"]: number for number, source in enumerate(scenario["sources"])}
    topics = list(part_of)
    alone = [source["name"] for source in scenario["sources"] if source["kind"] == "global"]
    shared = grouped_tables(scenario)
    for node in scenario["nodes"]:
        name, parents = node["name"], node["in"] if isinstance(node["in"], list) else [node["in"]]
        needs_cut = node["op"] in TOGETHER
        feeding = []
        for side, parent in enumerate(parents):
            if node["op"] == "repartition" or (needs_cut and rekeyed[parent]):
                topic = repartition_topic(name if parent not in shared else parent, side)
                if topic not in topics:
                    topics.append(topic)
                    part_of[topic] = max(part_of.values()) + 1
                feeding.append(topic)
            else:
                feeding.append(parent)
        is_rekeyed = not needs_cut and any(rekeyed[parent] for parent in parents)
        rekeyed[name] = is_rekeyed or node["op"] in ("select_key", "group_by", "processor")
        joined = {part_of[one] for one in feeding if one not in alone}
        last = max(joined)
        if node["op"] == "foreign_key_join":  # the tables are a part each, and their results a topic of a third
            joined, last = set(), max(part_of.values()) + 1
            topics.append(answer_topic(name))
            part_of[answer_topic(name)] = last
        part_of = {known: last if part in joined else part for known, part in part_of.items()}
        part_of[name] = last
    parts: dict[int, Part] = {}
    for name, number in part_of.items():
        together = -1 if is_one_task and name not in alone else number
        part = parts.setdefault(together, Part())
        part.names.append(name)
        if name in topics:
            part.topics.append(name)
    return [part for _, part in sorted(parts.items())]
