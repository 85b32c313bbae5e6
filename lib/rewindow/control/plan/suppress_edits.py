"""Let a job add and remove a suppress without a new branch (KIP-328, `withName`).

1. A suppress that only one of two topologies has does not make them different, nor does one that a time limit of zero
   disables in one of them. Everything else must be equal once the suppress is bypassed.
2. An added suppress starts empty. A removed one must be empty, because its buffered records would be lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewindow.control.plan.spec import JobBinding, canonical_json
from rewindow.streams.state.stores import SESSION

Topology = Sequence[Mapping[str, Any]]


def without_edits(before: JobBinding, now: JobBinding) -> tuple[JobBinding, JobBinding]:
    """Return two bindings without the suppresses whose change between them does not count."""
    one, other = _suppresses(before), _suppresses(now)
    edited = [name for name in {**one, **other} if _is_edited(name, one, other, before, now)]
    if not edited:
        return before, now
    retentions = _retentions(before, now)
    return _without(before, edited, retentions), _without(now, edited, retentions)


def removed_suppresses(before: JobBinding, now: JobBinding) -> list[str]:
    """Return the names of removed suppresses, which are also the names of their buffers."""
    return sorted(set(_suppresses(before)) - set(_suppresses(now)))


def _suppresses(binding: JobBinding) -> dict[str, str]:
    """Return the description of each suppress, by name."""
    return {
        node["name"]: node["processor"]
        for part in binding.topology
        for node in part["nodes"]
        if str(node.get("processor", "")).startswith("suppress(") and node.get("stores") == [node["name"]]
    }


def _is_edited(
    name: str, one: Mapping[str, str], other: Mapping[str, str], before: JobBinding, now: JobBinding
) -> bool:
    if name not in one or name not in other:
        # Added or removed, unless the other binding uses the name for a different store.
        return name not in (now if name in one else before).stores
    is_switched = one[name] != other[name] and any(
        "(until_time_limit, limit=0s," in text for text in (one[name], other[name])
    )
    return is_switched and before.stores[name] == now.stores[name]


def _without(binding: JobBinding, names: Sequence[str], retentions: Mapping[str, int]) -> JobBinding:
    topology = [
        {
            **part,
            "nodes": [node for node in _bypass(part["nodes"], names) if node["name"] not in names],
            "stores": [
                {**store, "retention_ms": retentions.get(store["name"], store["retention_ms"])}
                for store in part["stores"]
                if store["name"] not in names
            ],
        }
        for part in binding.topology
    ]
    changelogs = [f"changelog/{name}" for name in names]
    return replace(
        binding,
        fingerprint=canonical_json(topology),
        topology=topology,
        stores={name: columns for name, columns in binding.stores.items() if name not in names},
        tables={target: table for target, table in binding.tables.items() if target not in changelogs},
    )


def _retentions(before: JobBinding, now: JobBinding) -> dict[str, int]:
    """Return the retentions of session stores that differ only by the millisecond that final results add (`dsl.finals`)."""
    one, other = (
        {
            store["name"]: store["retention_ms"]
            for part in binding.topology
            for store in part["stores"]
            if _has_sessions(store)
        }
        for binding in (before, now)
    )
    return {name: other[name] for name in one if name in other and abs(one[name] - other[name]) == 1}


def _has_sessions(store: Mapping[str, Any]) -> bool:
    return bool(store["kind"] == SESSION)


def _bypass(nodes: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    parent_of = {node["name"]: node["parents"][0] for node in nodes if node["name"] in names}

    def above(name: str) -> str:
        return above(parent_of[name]) if name in parent_of else name

    return [{**node, "parents": [above(parent) for parent in node["parents"]]} for node in nodes]
