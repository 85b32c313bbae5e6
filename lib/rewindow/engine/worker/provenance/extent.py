"""Decide, from the operators of a topology, which records can have contributed to a row. Only these have to be replayed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rewindow.dsl.operators import stateless
from rewindow.dsl.operators.select import Select, Where
from rewindow.dsl.operators.session_aggregate import SessionAggregate
from rewindow.dsl.operators.sliding_aggregate import SlidingAggregate
from rewindow.dsl.operators.stream_join import JoinSide, StreamJoin
from rewindow.dsl.operators.stream_table_join import StreamTableJoin
from rewindow.dsl.operators.suppress import SuppressUntilTimeLimit, SuppressUntilWindowCloses
from rewindow.dsl.operators.table_join import TableJoinResult, TableJoinSide
from rewindow.dsl.operators.table_verbs import TableDerive, TableSource, TableToStream
from rewindow.dsl.operators.window_aggregate import CogroupMerge, EmitStrategy, StreamAggregate, WindowAggregate
from rewindow.engine.worker.provenance.task_replay import Traced
from rewindow.engine.worker.provenance.watcher import entry_of
from rewindow.streams.nodes import Node, ProcessorNode
from rewindow.streams.record import Windowed
from rewindow.streams.state.stores import BUFFER, JOIN, KEY_VALUE, RECORDS, SESSION, WINDOW

_RENAMES = (stateless.Map, stateless.FlatMap, stateless.SelectKey)
"""Operators that change keys."""
_ONE_BY_ONE = (
    *_RENAMES,
    *(stateless.Filter, stateless.MapValues, stateless.FlatMapValues, stateless.Peek, stateless.PassThrough),
    *(stateless.KeyedOnly, stateless.Split, stateless.Route, Select, Where, TableSource, TableDerive, TableToStream),
)
"""Operators that process each record independently of other records, if they have no store."""
_KNOWN = (
    *_ONE_BY_ONE,
    *(StreamAggregate, WindowAggregate, SlidingAggregate, SessionAggregate, CogroupMerge),
    *(JoinSide, StreamJoin, StreamTableJoin, TableJoinSide, TableJoinResult),
    *(SuppressUntilWindowCloses, SuppressUntilTimeLimit),
)
"""Operators that neither call user code with a context nor read entries of other keys."""


@dataclass(frozen=True, slots=True)
class Extent:
    """A set of records that may suffice to replay a row.

    ``since_ms``: if not None, the set has only records with at least this order key. ``is_of_key``: whether it has only
    records with the row's own key, because no clock matters. ``clocks``: the names of the nodes whose clocks matter. If there
    are any, the set has the records with the row's own key, and the records that advance the clock of one of these nodes.
    """

    since_ms: int | None = None
    is_of_key: bool = False
    clocks: tuple[str, ...] = ()


def extents(traced: Traced, key: Any, timestamp: int) -> list[Extent]:
    """Return sets of records (extents) to replay until one gives the row with this key and timestamp, cheapest first.

    The last extent contains all records.
    """
    parts = [part for part, _ in traced.tasks()]
    nodes = [node for part in parts for node in part.nodes if isinstance(node, ProcessorNode)]
    kinds = {store.kind for part in parts for store in part.stores}
    if not all(isinstance(node.supplier, _KNOWN) for node in nodes):
        return [Extent()]
    keeps_keys = len(parts) == 1 and not any(map(changes_keys, nodes))
    if keeps_keys and kinds <= {KEY_VALUE} and key.__class__ is not Windowed:
        return [Extent(is_of_key=True), Extent()]
    start_ms = timestamp
    if key.__class__ is Windowed:
        own, (start_ms, end_ms, _) = key
        if own.__class__ is Windowed:
            return [Extent()]
        if any(isinstance(node.supplier, SlidingAggregate) for node in nodes):
            # A sliding window may begin right after a record. The window depends on this record, but does not contain it.
            start_ms -= end_ms - start_ms + 1
    retained = max((s.retention_ms for part in parts for s in part.stores if s.kind == JOIN), default=0)
    joins = {RECORDS} if JOIN in kinds else set()
    timed = {WINDOW, SESSION, BUFFER} if key.__class__ is Windowed else set()
    if kinds and kinds <= {JOIN} | joins | timed:
        since = Extent(since_ms=max(start_ms - retained, 0))
        clocks = _clocks(traced) if keeps_keys and key.__class__ is Windowed else ()
        return [*([replace(since, clocks=clocks)] if clocks else []), since, Extent()]
    return [Extent()]


def _clocks(traced: Traced) -> tuple[str, ...]:
    """Return the nodes on whose clocks a windowed row depends, if records of other keys matter only for these clocks.

    Otherwise return no nodes. Records of other keys matter only for clocks if the topology has a single windowed aggregate,
    with or without a suppress. One form is excluded: a suppress below an aggregate that itself sends results when windows
    close. These results have the times of their windows, so the clock of the suppress depends on the results of other keys.
    """
    nodes, above = {node.name: node for node in traced.part.nodes}, list(traced.sink.parents)
    suppliers_of: dict[str, Any] = {}
    while above:
        node = nodes.get(above.pop())
        if isinstance(node, ProcessorNode):
            supplier = node.supplier
            if isinstance(supplier, WindowAggregate | SessionAggregate | SuppressUntilWindowCloses):
                suppliers_of[node.name] = supplier
            elif node.stores or not isinstance(supplier, _ONE_BY_ONE):
                return ()
        above += node.parents if node is not None else ()
    suppliers = list(suppliers_of.values())
    aggregates = [supplier for supplier in suppliers if not isinstance(supplier, SuppressUntilWindowCloses)]
    if len(aggregates) != 1 or len(suppliers) > 2 or aggregates[0].clock is not None:
        return ()
    if len(suppliers) == 2 and aggregates[0].emit is EmitStrategy.ON_WINDOW_CLOSE:
        return ()
    return tuple(suppliers_of)


def changes_keys(node: Node) -> bool:
    """Return whether a node may change the keys of records."""
    return isinstance(node, ProcessorNode) and isinstance(node.supplier, _RENAMES)


def own_key(key: Any) -> Any:
    """Return the key within a windowed key."""
    return entry_of(key)[0]
