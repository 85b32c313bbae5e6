"""Describe how a job differs from the one that wrote a checkpoint, as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewindow.contracts.expectations import EXPECTATIONS
from rewindow.contracts.staged_files import QUARANTINE
from rewindow.control.plan.branches import Branch
from rewindow.control.plan.description_diff import changed_parameters, named_duration
from rewindow.control.plan.spec import OUTPUT, JobBinding, TableSpec, canonical_json
from rewindow.control.plan.suppress_edits import without_edits


def changes_since(branch: Branch, now: JobBinding) -> list[str]:
    """Return what changed since a branch's last run. Paths of output tables differ between branches and do not count."""
    if branch.head is None:
        return []
    before = branch.head.spec.binding
    own = {**now.tables, **branch.tables} if branch.has_own_runs else now.tables
    tables = {
        target: replace(table, path=own[target].path) if target.startswith(OUTPUT) and target in own else table
        for target, table in before.tables.items()
    }
    return differences(replace(before, tables=tables), now)


def differences_besides_tables(before: JobBinding, now: JobBinding) -> list[str]:
    """Return `differences`, but those of tables: an output has another path on each branch."""
    return differences(replace(before, tables=now.tables), now)


def differences(before: JobBinding, now: JobBinding) -> list[str]:
    """Return what changed in topology, semantics, stores and tables, with the old and the new; empty if nothing did.

    Adding, removing, disabling or enabling a suppress (`suppress_edits`) and quarantining dropped records do not count.
    """
    before, now = without_edits(before, now)
    lines = [
        *_changes("node", _named(before.topology, "nodes"), _named(now.topology, "nodes")),
        *_changes("store", _named(before.topology, "stores"), _named(now.topology, "stores")),
        *_changes("columns of store", _columns(before.stores), _columns(now.stores)),
        *_changes("setting", before.semantics, now.semantics),
        *_changes("table of", _tables(before.tables), _tables(now.tables)),
    ]
    if before.feed != now.feed:
        lines.append(f"feed: {before.feed} -> {now.feed}")
    lines += code_changes(before.code, now.code)
    if not lines and before.fingerprint != now.fingerprint:
        lines.append(f"fingerprint: {before.fingerprint[:12]} -> {now.fingerprint[:12]}")
    return lines


def code_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return which functions, classes and values of the project changed; nothing if either version is not known."""
    if not before or not now:
        return []
    said = {name: "is gone" for name in before if name not in now}
    said |= {name: "is new" for name in now if name not in before}
    said |= {name: "changed" for name, known in now.items() if before.get(name, known) != known}
    return [f"{name} {what}" for name, what in sorted(said.items())]


def _changes(what: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    lines = []
    for name in sorted({**before, **now}):
        if name not in now:
            lines.append(f"{what} {name}: is removed")
        elif name not in before:
            lines.append(f"{what} {name}: is new")
        else:
            lines += _described(what, name, before[name], now[name])
    return lines


def _described(what: str, name: str, before: Any, now: Any) -> list[str]:
    """Return what differs in one node, store, setting or table; of what a node does and of durations, in words."""
    lines = []
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        if isinstance(before.get("processor"), str) and isinstance(now.get("processor"), str):
            if before["processor"] != now["processor"]:
                lines += changed_parameters(name, before["processor"], now["processor"])
            before, now = _without(before, "processor"), _without(now, "processor")
        for part in ("retention_ms", "window_size_ms", "holds_ms"):
            old, new = (named_duration(part, one.get(part)) for one in (before, now))
            if old and new and old != new:
                lines.append(f"{old[0]} of {what} {name} changed: {old[1]} -> {new[1]}")
            before, now = _without(before, part), _without(now, part)
    return [*lines, *(f"{what} {name}: {change}" for change in _change(before, now))]


def _without(parts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return {one: value for one, value in parts.items() if one != name}


def _change(before: Any, now: Any) -> list[str]:
    """Return what differs between two values; of mappings and lists, only the parts that differ."""
    if canonical_json(before) == canonical_json(now):
        return []
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        parts = _changes("", before, now)
        return [part.strip() for part in parts]
    if isinstance(before, list) and isinstance(now, list):
        removed, added = [item for item in before if item not in now], [item for item in now if item not in before]
        if removed or added:
            before, now = removed, added
    return [f"{_short(before)} -> {_short(now)}"]


def _named(topology: Sequence[Mapping[str, Any]], part: str) -> dict[str, Any]:
    """Return nodes or stores by name, each with its sub-topology, but without types, which the columns show."""
    return {
        item["name"]: {name: item[name] for name in item if name not in ("key", "value")}
        | {"sub_topology": sub_topology["sub_topology"]}
        for sub_topology in topology
        for item in sub_topology[part]
    }


def _columns(stores: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    return {name: [" ".join(column) for column in columns] for name, columns in stores.items()}


def _tables(tables: Mapping[str, TableSpec]) -> dict[str, Any]:
    """Return the tables except changelogs, whose columns are those of their stores, and tables that no row depends on."""
    return {
        target: table.as_json() | {"columns": [" ".join(column) for column in table.columns]}
        for target, table in tables.items()
        if not target.startswith("changelog/") and target not in (QUARANTINE, EXPECTATIONS)
    }


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_short(item) for item in value) or "nothing"
    return value if isinstance(value, str) else canonical_json(value)
