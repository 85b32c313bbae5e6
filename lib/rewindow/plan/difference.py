"""How a job differs from what made a checkpoint, in lines for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.plan.spec import JobBinding, TableSpec, canonical_json


def differences(before: JobBinding, now: JobBinding) -> list[str]:
    """Return what changed in the topology, the semantics, the stores and the tables; nothing if the checkpoint fits."""
    lines = [
        *_changes("node", _named(before.topology, "nodes"), _named(now.topology, "nodes")),
        *_changes("store", _named(before.topology, "stores"), _named(now.topology, "stores")),
        *_changes("columns of store", _plain(before.stores), _plain(now.stores)),
        *_changes("setting", before.semantics, now.semantics),
        *_changes("table of", _tables(before.tables), _tables(now.tables)),
    ]
    if before.feed != now.feed:
        lines.append(f"feed: was {before.feed}, is {now.feed}")
    if not lines and before.fingerprint != now.fingerprint:
        lines.append(f"fingerprint: was {before.fingerprint[:12]}, is {now.fingerprint[:12]}")
    return lines


def _changes(what: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    lines = []
    for name in sorted({**before, **now}):
        if name not in now:
            lines.append(f"{what} {name}: is gone")
        elif name not in before:
            lines.append(f"{what} {name}: is new")
        elif canonical_json(before[name]) != canonical_json(now[name]):
            lines.append(f"{what} {name}: was {_short(before[name])}, is {_short(now[name])}")
    return lines


def _named(topology: Sequence[Mapping[str, Any]], part: str) -> dict[str, Any]:
    """Return nodes or stores by name, with the sub-topology each belongs to."""
    return {
        item["name"]: {**item, "sub_topology": sub_topology["sub_topology"]}
        for sub_topology in topology
        for item in sub_topology[part]
    }


def _plain(stores: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    return {name: [" ".join(column) for column in columns] for name, columns in stores.items()}


def _tables(tables: Mapping[str, TableSpec]) -> dict[str, Any]:
    return {target: table.as_json() for target, table in tables.items()}


def _short(value: Any) -> str:
    return canonical_json(value)
