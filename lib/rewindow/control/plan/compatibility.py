"""Whether a changed job may go on from the checkpoint of another: store by store, and what else it would have to fit. Pure.

A store goes on as it is only if what it holds still means the same: same kind, key and columns, in the same sub-topology,
used by the same nodes doing the same. Everything else is refused: it would be wrong rows, in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rewindow.control.plan.spec import OUTPUT, JobBinding, TableSpec
from rewindow.control.plan.suppress_edits import without_edits


class Fit(StrEnum):
    """What becomes of a store."""

    AS_IS = "goes on as it is"
    NEW = "is new and begins empty"
    LEFT = "is left behind"
    INCOMPATIBLE = "is incompatible"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one store, and why if it cannot go on."""

    store: str
    fit: Fit
    why: str = ""

    def __str__(self) -> str:
        """Say it to a person."""
        return f"store {self.store} {self.fit}" + (f": {self.why}" if self.why else "")


def verdicts(before: JobBinding, now: JobBinding) -> list[Verdict]:
    """Return what becomes of each store of either job, by name; not of a suppress that may come and go anyway."""
    before, now = without_edits(before, now)
    found = []
    for name in sorted({**before.stores, **now.stores}):
        if name not in before.stores:
            found.append(Verdict(name, Fit.NEW))
        elif name not in now.stores:
            found.append(Verdict(name, Fit.LEFT))
        else:
            why = "; ".join(_changes(before, now, name))
            found.append(Verdict(name, Fit.INCOMPATIBLE if why else Fit.AS_IS, why))
    return found


def obstacles(before: JobBinding, now: JobBinding, tables: Mapping[str, TableSpec]) -> list[str]:
    """Return why a checkpoint cannot be gone on from; nothing if it can. ``tables`` are those that the branch has."""
    before, now = without_edits(before, now)
    found = [str(verdict) for verdict in verdicts(before, now) if verdict.fit is Fit.INCOMPATIBLE]
    if before.feed != now.feed:
        found.append(f"it reads the feed {now.feed}, the checkpoint is of {before.feed}")
    one, other = _topics(before.topology), _topics(now.topology)
    for stage in sorted({**one, **other}):
        was, is_now = one.get(stage, ()), other.get(stage, ())
        if was != is_now:
            found.append(f"sub-topology {stage} reads {_listed(is_now)}, the checkpoint's read {_listed(was)}")
    for target, table in now.tables.items():
        here = tables.get(target)
        if target.startswith(OUTPUT) and here is not None and (here.path, here.columns) != (table.path, table.columns):
            found.append(f"the table of {target.removeprefix(OUTPUT)} is another, or has other columns")
    return found


def _changes(before: JobBinding, now: JobBinding, store: str) -> Iterator[str]:
    if before.stores[store] != now.stores[store] or before.keys.get(store) != now.keys.get(store):
        yield "it has other columns"
    (stage, was), (place, is_now) = _described(before.topology, store), _described(now.topology, store)
    if was["kind"] != is_now["kind"]:
        yield f"it was a {was['kind']} store and is a {is_now['kind']} store"
    if stage != place:
        yield f"it was in sub-topology {stage} and is in {place}"
    users, others = _users(before.topology, store), _users(now.topology, store)
    for node in sorted({**users, **others}):
        if users.get(node) != others.get(node):
            yield f"node {node} {_said(users.get(node))}, now {_said(others.get(node))}"


def _described(topology: Sequence[Mapping[str, Any]], store: str) -> tuple[int, Mapping[str, Any]]:
    return next(
        (part["sub_topology"], known) for part in topology for known in part["stores"] if known["name"] == store
    )


def _users(topology: Sequence[Mapping[str, Any]], store: str) -> dict[str, str]:
    """Return what the nodes that use a store do, by name."""
    return {
        node["name"]: str(node.get("processor", ""))
        for part in topology
        for node in part["nodes"]
        if store in node.get("stores", ())
    }


def _topics(topology: Sequence[Mapping[str, Any]]) -> dict[int, tuple[str, ...]]:
    return {
        part["sub_topology"]: tuple(sorted(node["source"] for node in part["nodes"] if "source" in node))
        for part in topology
    }


def _said(does: str | None) -> str:
    return "did not use it" if does is None else f"did {does or 'something'}"


def _listed(topics: Sequence[str]) -> str:
    return ", ".join(topics) or "nothing"
