"""Describe how a job has changed since a checkpoint, node by node and parameter by parameter, as lines of text.

A suppress can be added and removed without a new branch (KIP-328, `withName`):

1. It is no difference if only one of two topologies has a suppress, or if one disables it with a time limit of zero. But the
   two topologies without this suppress must be equal.
2. An added suppress starts empty. A removed suppress must be empty, because its buffered records would be lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rewindow.contracts.expectations import EXPECTATIONS
from rewindow.contracts.staged_files import QUARANTINE
from rewindow.control.plan.job_state import Branch
from rewindow.control.plan.spec import OUTPUT, JobBinding, TableSpec, canonical_json
from rewindow.control.plan.zone_clocks import clock_changes
from rewindow.streams.duration import in_words
from rewindow.streams.state.stores import SESSION

_STORE_PARTS: Final = {"retention_ms": "retention", "window_size_ms": "window size", "holds_ms": "holding time"}
"""Maps the name of a duration in the description of a node or store to the name that users see."""


def changes_since(branch: Branch, now: JobBinding) -> list[str]:
    """Return what changed since a branch's last run. Paths of output tables differ between branches and are not compared."""
    if branch.head is None:
        return []
    before = branch.head.spec.binding
    own = {**now.tables, **branch.tables} if branch.has_own_runs else now.tables
    tables = {
        target: replace(table, path=own[target].path) if target.startswith(OUTPUT) and target in own else table
        for target, table in before.tables.items()
    }
    clocks = clock_changes(before, now, branch.head.commit.zone_ends)
    return [*differences(replace(before, tables=tables), now), *clocks]


def differences_besides_tables(before: JobBinding, now: JobBinding) -> list[str]:
    """Return `differences` without those of tables. Each branch has its own paths of output tables."""
    return differences(replace(before, tables=now.tables), now)


def differences(before: JobBinding, now: JobBinding) -> list[str]:
    """Return a line with old and new value for each change in topology, semantics, stores and tables.

    Two kinds of change are left out: a suppress is added, removed, disabled or enabled (`without_edits`), and dropped records
    are quarantined.
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
    """Return which functions, classes and values differ between two versions of the code; empty if one version is unknown."""
    if not before or not now:
        return []
    said = {name: "is gone" for name in before if name not in now}
    said |= {name: "is new" for name in now if name not in before}
    said |= {name: "changed" for name, part_digest in now.items() if before.get(name, part_digest) != part_digest}
    return [f"{name} {change}" for name, change in sorted(said.items())]


def changed_parameters(name: str, before: str, now: str) -> list[str]:
    """Return what differs between two descriptions of a node, as in ``grace of NAME changed: 6h -> 12h``.

    If the kinds of node or the names of parameters differ, the result is one line with both descriptions.
    """
    verb, parameters = _parsed(before)
    other_verb, others = _parsed(now)
    if verb != other_verb or parameters.keys() != others.keys() or not parameters:
        return [f"{name} changed: {before or 'no description'} -> {now or 'no description'}"]
    different = [key for key in parameters if parameters[key] != others[key]]
    return [f"{f'{key} of ' if key else ''}{name} changed: {parameters[key]} -> {others[key]}" for key in different]


def without_edits(before: JobBinding, now: JobBinding) -> tuple[JobBinding, JobBinding]:
    """Return both bindings without the suppresses that may differ (see the docstring of this module)."""
    suppresses_before, suppresses_now = _suppresses(before), _suppresses(now)
    edited = [
        name
        for name in {**suppresses_before, **suppresses_now}
        if _is_edited(name, suppresses_before, suppresses_now, before, now)
    ]
    if not edited:
        return before, now
    retentions = _retentions(before, now)
    return _without_suppresses(before, edited, retentions), _without_suppresses(now, edited, retentions)


def removed_suppresses(before: JobBinding, now: JobBinding) -> list[str]:
    """Return the suppresses of the version ``before`` that ``now`` lacks. A suppress has the name of its buffer."""
    return sorted(set(_suppresses(before)) - set(_suppresses(now)))


def _changes(kind: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    lines = []
    for name in sorted({**before, **now}):
        if name not in now:
            lines.append(f"{kind} {name}: is removed")
        elif name not in before:
            lines.append(f"{kind} {name}: is new")
        else:
            lines += _described(kind, name, before[name], now[name])
    return lines


def _described(kind: str, name: str, before: Any, now: Any) -> list[str]:
    """Return what differs in one node, store, setting or table.

    Durations and parameters of processors are described as text.
    """
    lines = []
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        if isinstance(before.get("processor"), str) and isinstance(now.get("processor"), str):
            if before["processor"] != now["processor"]:
                lines += changed_parameters(name, before["processor"], now["processor"])
            before, now = _without(before, "processor"), _without(now, "processor")
        for part in ("retention_ms", "window_size_ms", "holds_ms"):
            old, new = (_named_duration(part, version.get(part)) for version in (before, now))
            if old and new and old != new:
                lines.append(f"{old[0]} of {kind} {name} changed: {old[1]} -> {new[1]}")
            before, now = _without(before, part), _without(now, part)
    return [*lines, *(f"{kind} {name}: {change}" for change in _change(before, now))]


def _without(parts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return {part: value for part, value in parts.items() if part != name}


def _change(before: Any, now: Any) -> list[str]:
    """Return what differs between two values. For mappings and lists, return only the parts that differ."""
    if canonical_json(before) == canonical_json(now):
        return []
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        parts = _changes("", before, now)
        return [part.strip() for part in parts]
    if isinstance(before, list) and isinstance(now, list):
        removed, added = [item for item in before if item not in now], [item for item in now if item not in before]
        if removed and added:
            before, now = removed, added
        elif removed or added:
            items = removed or added
            return [f"{_short(items)} {'is' if len(items) == 1 else 'are'} {'removed' if removed else 'new'}"]
    return [f"{_short(before)} -> {_short(now)}"]


def _named(topology: Sequence[Mapping[str, Any]], part: str) -> dict[str, Any]:
    """Return nodes or stores by name, each with its sub-topology. Types are left out, because columns are compared, too."""
    return {
        item["name"]: {name: item[name] for name in item if name not in ("key", "value")}
        | {"sub_topology": sub_topology["sub_topology"]}
        for sub_topology in topology
        for item in sub_topology[part]
    }


def _columns(stores: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    return {name: [" ".join(column) for column in columns] for name, columns in stores.items()}


def _tables(tables: Mapping[str, TableSpec]) -> dict[str, Any]:
    """Return the tables that a diff compares.

    Changelogs are left out, because their columns follow from their stores. The quarantine and the table of expectations are left
    out, because no output depends on them.
    """
    return {
        target: table.as_json() | {"columns": [" ".join(column) for column in table.columns]}
        for target, table in tables.items()
        if not target.startswith("changelog/") and target not in (QUARANTINE, EXPECTATIONS)
    }


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_short(item) for item in value) or "nothing"
    return value if isinstance(value, str) else canonical_json(value)


def _named_duration(part: str, value: Any) -> tuple[str, str] | None:
    """Return a duration's name and length, both as users know them; None for a part that is not a duration."""
    if part not in _STORE_PARTS:
        return None
    return _STORE_PARTS[part], "none" if value is None else in_words(value)


def _parsed(description: str) -> tuple[str, Mapping[str, str]]:
    """Return verb and parameters of a description ``verb(what, key=value, ...)``.

    Parameters without a name are joined under ``""``.

    The mapping is empty if there are no parameters, or if two have the same name.
    """
    verb, bracket, rest = description.partition("(")
    if not bracket or not rest.endswith(")"):
        return description, {}
    parameters: dict[str, str] = {}
    for part in _split(rest[:-1]):
        key, is_named, value = part.partition("=")
        if not is_named or not key.isidentifier():
            key, value = "", ", ".join([*([parameters[""]] if "" in parameters else []), part])
        elif key in parameters:
            return verb, {}
        parameters[key] = value
    return verb, parameters


def _split(text: str) -> Iterator[str]:
    """Yield the parts of a text between commas. A comma within parentheses does not separate parts."""
    depth, part = 0, ""
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += character
    if part.strip():
        yield part.strip()


def _suppresses(binding: JobBinding) -> dict[str, str]:
    """Return the description of each suppress, by name."""
    return {
        node["name"]: node["processor"]
        for part in binding.topology
        for node in part["nodes"]
        if str(node.get("processor", "")).startswith("suppress(") and node.get("stores") == [node["name"]]
    }


def _is_edited(name: str, old: Mapping[str, str], new: Mapping[str, str], before: JobBinding, now: JobBinding) -> bool:
    if name not in old or name not in new:
        # The suppress was added or removed, unless the other binding uses the name for a different store.
        return name not in (now if name in old else before).stores
    is_switched = old[name] != new[name] and any(
        "(until_time_limit, limit=0s," in text for text in (old[name], new[name])
    )
    return is_switched and before.stores[name] == now.stores[name]


def _without_suppresses(binding: JobBinding, names: Sequence[str], retentions: Mapping[str, int]) -> JobBinding:
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
    """Return the new retention (ms) of each session store that changed only by the 1 ms for final results (`dsl.finals`)."""
    old, new = (
        {
            store["name"]: store["retention_ms"]
            for part in binding.topology
            for store in part["stores"]
            if store["kind"] == SESSION
        }
        for binding in (before, now)
    )
    return {name: new[name] for name in old if name in new and abs(old[name] - new[name]) == 1}


def _bypass(nodes: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    parent_of = {node["name"]: node["parents"][0] for node in nodes if node["name"] in names}

    def above(name: str) -> str:
        return above(parent_of[name]) if name in parent_of else name

    return [{**node, "parents": [above(parent) for parent in node["parents"]]} for node in nodes]
