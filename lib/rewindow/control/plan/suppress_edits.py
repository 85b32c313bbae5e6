"""A suppress is put into a running job and taken out again without a new branch (KIP-328, `withName`).

Rules of this file:

1. A suppress that only one of two topologies has is no difference; nor is one that a time limit of zero disables in one
   of them. Everything else has to be the same, with the parents of those below it set as if it were not there.
2. One that is put in begins empty. What one that is taken out still holds would be lost, so it must hold nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewindow.control.plan.spec import JobBinding, canonical_json
from rewindow.streams.state.stores import SESSION

Topology = Sequence[Mapping[str, Any]]


def without_edits(before: JobBinding, now: JobBinding) -> tuple[JobBinding, JobBinding]:
    """Return two bindings without the suppresses that make no difference between them."""
    one, other = _suppresses(before), _suppresses(now)
    edited = [name for name in {**one, **other} if _is_edited(name, one, other, before, now)]
    if not edited:
        return before, now
    retentions = _retentions(before, now)
    return _without(before, edited, retentions), _without(now, edited, retentions)


def taken_out(before: JobBinding, now: JobBinding) -> list[str]:
    """Return the suppresses (each also the name of its buffer) that are there no more."""
    return sorted(set(_suppresses(before)) - set(_suppresses(now)))


def _suppresses(binding: JobBinding) -> dict[str, str]:
    """Return what each suppress does, by name."""
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
        # A store of that name that is something else makes the two different.
        return name not in (now if name in one else before).stores
    is_switched = one[name] != other[name] and any(
        "(until_time_limit, limit=0," in text for text in (one[name], other[name])
    )
    return is_switched and before.stores[name] == now.stores[name]


def _without(binding: JobBinding, names: Sequence[str], retentions: Mapping[str, int]) -> JobBinding:
    topology = [
        {
            **part,
            "nodes": [node for node in _rewired(part["nodes"], names) if node["name"] not in names],
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
    """Return the retentions of session stores that differ by the millisecond that final results ask for (`dsl.finals`)."""
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


def _rewired(nodes: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    parent_of = {node["name"]: node["parents"][0] for node in nodes if node["name"] in names}

    def above(name: str) -> str:
        return above(parent_of[name]) if name in parent_of else name

    return [{**node, "parents": [above(parent) for parent in node["parents"]]} for node in nodes]
