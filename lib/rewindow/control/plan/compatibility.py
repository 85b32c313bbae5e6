"""Decide whether a changed job can resume from a checkpoint, store by store. Pure.

A store is kept only if its entries still mean the same: same kind, key and columns, in the same sub-topology, used by the
same nodes with the same description. Anything else is refused, because it would silently give wrong rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rewindow.control.plan.job_diff import changed_parameters, without_edits
from rewindow.control.plan.output_columns import changed_columns
from rewindow.control.plan.spec import OUTPUT, JobBinding, TableSpec


class Fit(StrEnum):
    """What happens to a store."""

    KEPT = "is kept"
    NEW = "is new and starts empty"
    REMOVED = "is removed, and its entries are lost"
    INCOMPATIBLE = "is incompatible"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to one store, and why it is incompatible if it is."""

    store: str
    fit: Fit
    why: str = ""

    def __str__(self) -> str:
        """Return the verdict as a sentence."""
        return f"store {self.store} {self.fit}" + (f": {self.why}" if self.why else "")


def verdicts(before: JobBinding, now: JobBinding) -> list[Verdict]:
    """Return the verdict on each store of either job, by name, except buffers of suppresses that may change freely."""
    before, now = without_edits(before, now)
    result = []
    for name in sorted({**before.stores, **now.stores}):
        if name not in before.stores:
            result.append(Verdict(name, Fit.NEW))
        elif name not in now.stores:
            result.append(Verdict(name, Fit.REMOVED))
        else:
            why = "; ".join(_changes(before, now, name))
            result.append(Verdict(name, Fit.INCOMPATIBLE if why else Fit.KEPT, why))
    return result


def obstacles(before: JobBinding, now: JobBinding, tables: Mapping[str, TableSpec]) -> list[str]:
    """Return the reasons why a job cannot resume from a checkpoint; empty if it can. ``tables`` are the branch's own."""
    before, now = without_edits(before, now)
    reasons = [str(verdict) for verdict in verdicts(before, now) if verdict.fit is Fit.INCOMPATIBLE]
    if before.feed != now.feed:
        reasons.append(f"the job reads feed {now.feed}, but the checkpoint is of feed {before.feed}")
    topics_before, topics_now = _topics(before.topology), _topics(now.topology)
    for part in sorted({**topics_before, **topics_now}):
        was, is_now = topics_before.get(part, ()), topics_now.get(part, ())
        if was != is_now:
            reasons.append(f"sub-topology {part} reads {_listed(is_now)}, but read {_listed(was)} in the checkpoint")
    for target, table in now.tables.items():
        here = tables.get(target)
        if target.startswith(OUTPUT) and here is not None and here.path != table.path:
            reasons.append(f"output {target.removeprefix(OUTPUT)} has another table: {table.path}, was {here.path}")
    for output, here, changes in changed_columns(tables, now.tables):
        reasons.append(f"output {output} has other columns than {here.path}: {changes}")
    return reasons


def _changes(before: JobBinding, now: JobBinding, store: str) -> Iterator[str]:
    if before.stores[store] != now.stores[store] or before.keys.get(store) != now.keys.get(store):
        yield "it has other columns"
    (old_part, was), (new_part, is_now) = _described(before.topology, store), _described(now.topology, store)
    if was["kind"] != is_now["kind"]:
        yield f"it was a {was['kind']} store and is a {is_now['kind']} store"
    if old_part != new_part:
        yield f"it was in sub-topology {old_part} and is in {new_part}"
    users, others = _users(before.topology, store), _users(now.topology, store)
    for node in sorted({**users, **others}):
        old, new = users.get(node), others.get(node)
        if old is None or new is None:
            yield f"node {node} {'did not use it and does' if old is None else 'used it and does not'} now"
        elif old != new:
            yield from changed_parameters(node, old, new)


def _described(topology: Sequence[Mapping[str, Any]], store: str) -> tuple[int, Mapping[str, Any]]:
    return next(
        (part["sub_topology"], stored) for part in topology for stored in part["stores"] if stored["name"] == store
    )


def _users(topology: Sequence[Mapping[str, Any]], store: str) -> dict[str, str]:
    """Return the descriptions of the nodes that use a store, by name."""
    return {
        node["name"]: str(node.get("processor", ""))
        for part in topology
        for node in part["nodes"]
        if store in node.get("stores", ())
    }


def _topics(topology: Sequence[Mapping[str, Any]]) -> dict[int, tuple[str, ...]]:
    return {part["sub_topology"]: topics_of(part) for part in topology}


def topics_of(part: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the topics that a sub-topology reads, given its description in the ledger."""
    return tuple(sorted(node["source"] for node in part["nodes"] if "source" in node))


def _listed(topics: Sequence[str]) -> str:
    return ", ".join(topics) or "nothing"
