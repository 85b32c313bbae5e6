"""How long the nodes of a topology may hold results back, by which the watermark below them is lowered (D22).

They are computed from `Topology.describe`, which the ledger keeps for each run: another job that reads an output needs the
lag of a run whose code may be gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

REPARTITION_SUFFIX = "-repartition"
GLOBAL_SUFFIX = "-global"


def node_lags(topology: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how long the ancestors of each node may hold results back, in ms: the sum along the longest path."""
    internal = _internal_topics(topology)
    lags: dict[str, int] = {}
    below: dict[str, int] = {}
    written: dict[str, int] = {}
    for part in topology:
        for node in part["nodes"]:
            name, topic = node["name"], node.get("source")
            if topic is None:
                lags[name] = max(below[parent] for parent in node["parents"])
            else:
                lags[name] = written.get(topic, 0) if topic in internal else 0
            below[name] = lags[name] + node.get("holds_ms", 0)
            if "sink" in node:
                written[node["sink"]] = max(written.get(node["sink"], 0), lags[name])
    return lags


def output_lags(topology: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how long the results of each output, by its topic, may be held back, in ms."""
    lags, internal = node_lags(topology), _internal_topics(topology)
    sinks = (node for part in topology for node in part["nodes"] if "sink" in node)
    return {sink["sink"]: lags[sink["name"]] for sink in sinks if sink["sink"] not in internal}


def _internal_topics(topology: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the topics between sub-topologies. An output may have a name with their suffix, but nothing here reads it."""
    read = [node["source"] for part in topology for node in part["nodes"] if node.get("source") is not None]
    return frozenset(topic for topic in read if topic.endswith((REPARTITION_SUFFIX, GLOBAL_SUFFIX)))
