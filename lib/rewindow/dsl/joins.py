"""How joins become nodes: two sides by their keys, their stores, and the node that joins them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rewindow.core.join_windows import JoinWindows
from rewindow.core.stores import RECORDS, StoreBuilder
from rewindow.dsl.graph import returned_type
from rewindow.dsl.materialized import Materialized, StoreSpec, materialized
from rewindow.errors import TopologyError
from rewindow.operators.stream_join import JoinSide, SideStores, StreamJoin

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream

JoinStores = StoreSpec | tuple[StoreSpec, StoreSpec]
"""One name (or `Materialized`) from which those of both sides are made, or one for this and one for the other side."""

ValueJoiner = Callable[..., Any]


class Keeps(NamedTuple):
    """Which sides of a join are sent without a partner too."""

    left: bool = False
    right: bool = False


class Options(NamedTuple):
    """What the user says of a join besides what is joined: see `KStream.join`."""

    name: str
    store: JoinStores | None
    with_key: bool
    value: Any


INNER, LEFT, OUTER = Keeps(), Keeps(left=True), Keeps(left=True, right=True)


def join_streams(
    left: KStream,
    right: KStream,
    keeps: Keeps,
    joiner: ValueJoiner,
    windows: JoinWindows,
    options: Options,
) -> KStream:
    """Return the join of two streams. Raises `TopologyError` for anything that is not what it should be."""
    name, store, with_key, value = options
    given: object = windows  # it is up to the user
    if not isinstance(given, JoinWindows):
        message = f'join {name!r} of two streams: name its windows, as in JoinWindows.of("10m", grace="1m")'
        raise TopologyError(message)
    if left.graph is not right.graph:
        message = f"join {name!r}: its sides come from two builders: read both topics with one StreamsBuilder"
        raise TopologyError(message)
    _check_keys(left.key, right.key, name)
    graph = left.graph
    sides = [_side(left, name, "left"), _side(right, name, "right")]
    kept = _kept(store or name)
    first, second = (
        _stores(side, spec, windows, waits=waits and not windows.is_eager)
        for side, spec, waits in zip(sides, kept, keeps, strict=True)
    )
    supplier = StreamJoin(windows, joiner if with_key else _without_key(joiner), first, second, *keeps)
    names = tuple(store for store in (*first, *second) if store is not None)
    holds_ms = windows.holds_ms if first.unmatched or second.unmatched else 0
    parents = [
        graph.add("join-side", JoinSide(is_left=where == "left"), side.node, name=f"{name}-{where}")
        for side, where in zip(sides, ("left", "right"), strict=True)
    ]
    node = graph.add("join", supplier, *parents, name=name, stores=names, holds_ms=holds_ms)
    return replace(sides[0], node=node, value=value or returned_type(joiner))


def _check_keys(left: Any, right: Any, name: str) -> None:
    if isinstance(left, type) and isinstance(right, type) and left is not right:
        message = (
            f"join {name!r}: the keys of its sides are {left.__name__} and {right.__name__}, so equal ones would lie in "
            "different partitions: convert one side with select_key"
        )
        raise TopologyError(message)


def _side(stream: KStream, name: str, where: str) -> KStream:
    """Return a side with its records in the partitions of their keys; those without a key go along."""
    return stream.repartition(name=f"{name}-{where}") if stream.is_rekeyed else stream


def _kept(store: JoinStores) -> tuple[Materialized, Materialized]:
    if isinstance(store, tuple):
        return materialized(store[0]), materialized(store[1])
    both = materialized(store)
    if both.ready_made is not None:
        message = f"store {both.name!r} cannot keep both sides of a join: give a pair, store=(this, other)"
        raise TopologyError(message)
    return replace(both, name=f"{both.name}-left"), replace(both, name=f"{both.name}-right")


def _stores(side: KStream, kept: Materialized, windows: JoinWindows, *, waits: bool) -> SideStores:
    topology = side.graph.topology
    topology.add_store(kept.joined(windows, side.key, side.value))
    unmatched = f"{kept.name}-unmatched" if waits else None
    if unmatched is not None:
        topology.add_store(StoreBuilder(unmatched, RECORDS, side.key, side.value))
    return SideStores(kept.name, unmatched)


def _without_key(joiner: ValueJoiner) -> Callable[[Any, Any, Any], Any]:
    return lambda _key, left, right: joiner(left, right)
