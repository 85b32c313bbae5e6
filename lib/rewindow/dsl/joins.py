"""Joins of a stream with a stream, a table or a global table, as nodes of the graph.

A repartition drops records with a null key, unless a join below sends records without a match (KIP-962).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from rewindow.dsl.annotations import returned_type
from rewindow.dsl.graph import JOIN, Graph
from rewindow.dsl.materialized import Materialized, StoreSpec, materialized
from rewindow.dsl.operators.stateless import KeyedOnly
from rewindow.dsl.operators.stream_join import Joiner, JoinSide, SideStores, StreamJoin
from rewindow.dsl.operators.stream_table_join import GlobalTableJoin, StreamTableJoin
from rewindow.dsl.operators.table_verbs import TableSource
from rewindow.dsl.table import KTable
from rewindow.dsl.table_joins import Unmatched, view_of
from rewindow.dsl.type_checks import EqualKeys
from rewindow.dsl.windowed import check_made
from rewindow.errors import TopologyError
from rewindow.streams.duration import in_words, to_ms
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.serde.types_to_columns import EqualType
from rewindow.streams.state.stores import RECORDS, StoreBuilder
from rewindow.streams.windows.join import JoinWindows

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream


JoinStores = StoreSpec | tuple[StoreSpec, StoreSpec]
"""The stores of both sides of a join: a base name or `Materialized` for both, or a pair ``(this side, other side)``."""


_ValueJoiner = Callable[..., Any]


class Options(NamedTuple):
    """Arguments of `KStream.join`, with the same names."""

    windows: Any
    name: str | None
    store: JoinStores | None
    grace: str | timedelta | None
    with_key: bool
    value: Any


def join(
    left: KStream, other: KStream | KTable, unmatched: Unmatched, joiner: _ValueJoiner, options: Options
) -> KStream:
    """Join a stream with a stream or a table. Raises `TopologyError` if the arguments do not fit: see `KStream.join`."""
    if not isinstance(other, type(left) | KTable):
        raise TopologyError(
            "join-input-invalid",
            "join of {node!r} with {other}: give it a KStream or a KTable (outer joins have no GlobalKTable)",
            node=left.node,
            other=repr(getattr(other, "node", other)),
        )
    description = f"join of {left.node!r} with {other.node!r}" if options.name is None else f"join {options.name!r}"
    check_builders(left.graph, other.graph, description)
    check_keys(left.key, other.key, description)
    joined = joiner if options.with_key else _without_key(joiner)
    if isinstance(other, KTable):
        node = _table_join(left, other, unmatched, joined, options, description)
    else:
        node = _stream_join(left, other, unmatched, joined, options, description)
    left.graph.calls(node, "join", joiner, with_key=options.with_key, key=left.key, left=left.value, right=other.value)
    left.graph.topology.reads.append((node, EqualKeys("join", left.key, other.key)))
    if unmatched.left:
        _let_null_keys_pass(left.graph, node)
    # Only an outer join sends results with keys of the other side.
    has_both_keys = unmatched.right and left.key != other.key
    key = EqualType((left.key, other.key)) if has_both_keys else left.key
    return replace(left, node=node, key=key, value=options.value or returned_type(joiner), is_rekeyed=False)


def check_builders(left: Graph, right: Graph, description: str) -> None:
    """Raise `TopologyError` if the two sides of a join come from different `StreamsBuilder`s."""
    if left is not right:
        raise TopologyError(
            "sides-from-two-builders",
            "{join}: its sides come from two builders: read both topics with one StreamsBuilder",
            join=description,
        )


def check_keys(left: Any, right: Any, description: str) -> None:
    """Raise `TopologyError` for keys of different Python types, because equal keys might be in different partitions."""
    if isinstance(left, type) and isinstance(right, type) and left is not right:
        raise TopologyError(
            "join-key-types-differ",
            "{join}: the keys of its sides are {left} and {right}, so equal keys would be in different partitions: "
            "convert one side with select_key",
            join=description,
            left=left.__name__,
            right=right.__name__,
        )


@dataclass(frozen=True, slots=True)
class GlobalKTable:
    """A table of which every task holds all rows: see `StreamsBuilder.global_table`.

    A global table has no verbs. `KStream.join` and `KStream.left_join` read it. ``store`` is the name of its store.
    """

    graph: Graph
    store: str
    key: Any = None
    value: Any = None


def kept_everywhere(
    graph: Graph, source: str, key: Any, value: Any, store: StoreSpec, *, name: str | None
) -> GlobalKTable:
    """Return a global table with the records of a source node. Raises `TopologyError` for a store that is not key-value."""
    builder = materialized(store).key_values(key, value)
    name = name or (f"{builder.name}-table" if builder.name in graph.topology.nodes else builder.name)
    keyed = graph.add("keyed-only", KeyedOnly(), source)
    graph.topology.add_global_table(name, TableSource(builder.name), builder, keyed)
    return GlobalKTable(graph, builder.name, builder.key, builder.value)


def join_global(
    stream: KStream, table: GlobalKTable, key_selector: Any, joiner: Any, unmatched: Unmatched, options: Options
) -> KStream:
    """Join a stream with a global table. Raises `TopologyError` if the arguments do not fit: see `KStream.join`."""
    description = f"join of {stream.node!r} with {table.store!r}" if options.name is None else f"join {options.name!r}"
    check_builders(stream.graph, table.graph, description)
    if not callable(joiner):
        raise TopologyError(
            "global-join-without-joiner",
            "{join}: a join with a global table takes a key selector and a joiner, join(table, key_selector, joiner)",
            join=description,
        )
    if options.store is not None or options.grace is not None:
        raise TopologyError(
            "global-join-option-refused",
            "{join}: a join with a global table takes neither store= nor grace=: leave them out",
            join=description,
        )
    joined = joiner if options.with_key else _without_key(joiner)
    supplier = GlobalTableJoin(table.store, key_selector, joined, unmatched.left)
    node = stream.graph.add("join", supplier, stream.node, name=options.name, stores=(table.store,), typed_by=JOIN)
    stream.graph.calls(node, "join", key_selector, key=stream.key, value=stream.value)
    stream.graph.calls(
        node, "join", joiner, with_key=options.with_key, key=stream.key, left=stream.value, right=table.value
    )
    if unmatched.left:
        _let_null_keys_pass(stream.graph, node)
    return replace(stream, node=node, value=options.value or returned_type(joiner))


def _stream_join(
    left: KStream, right: KStream, unmatched: Unmatched, joiner: Joiner, options: Options, description: str
) -> str:
    graph, windows, name = left.graph, options.windows, options.name
    if not isinstance(windows, JoinWindows):
        raise TopologyError(
            "stream-join-without-windows",
            '{join}: a join of two streams needs windows, as in JoinWindows.of("10m", grace="1m")',
            join=description,
        )
    check_made(windows)
    if options.grace is not None:
        raise TopologyError(
            "stream-join-grace-misplaced",
            "{join}: the grace of a join of two streams belongs to its windows, JoinWindows.of(..., grace=...)",
            join=description,
        )
    if name is None:
        raise TopologyError(
            "stream-join-unnamed",
            "{join}: a join of two streams stores the records of both sides: give it a name, name=...",
            join=description,
        )
    left_kept, right_kept = _kept(options.store or name)
    left_side, right_side = _side(left, f"{name}-left"), _side(right, f"{name}-right")
    stores = (
        _stores(left_side, left_kept, windows, waits=unmatched.left and not windows.is_eager),
        _stores(right_side, right_kept, windows, waits=unmatched.right and not windows.is_eager),
    )
    parents = (
        graph.add("join-side", JoinSide(is_left=True), left_side.node, name=f"{name}-left"),
        graph.add("join-side", JoinSide(is_left=False), right_side.node, name=f"{name}-right"),
    )
    supplier = StreamJoin(windows, joiner, *stores, *unmatched)
    names = tuple(store for side in stores for store in side if store is not None)
    # Results are held back only for records that wait for a partner.
    holds_ms = windows.holds_ms if any(side.unmatched for side in stores) else 0
    return graph.add("join", supplier, *parents, name=name, stores=names, typed_by=JOIN, holds_ms=holds_ms)


def _table_join(
    left: KStream, table: KTable, unmatched: Unmatched, joiner: Joiner, options: Options, description: str
) -> str:
    graph, name, view = left.graph, options.name, view_of(table, options.name or table.node)
    if options.windows is not None or options.store is not None:
        raise TopologyError(
            "table-join-option-refused",
            "{join}: a join with a table takes neither windows= nor store=: leave them out",
            join=description,
        )
    if unmatched.right:
        raise TopologyError(
            "outer-join-with-table",
            "{join}: updates of a table send no results, so a table has no outer join: use left_join, or to_stream()",
            join=description,
        )
    if name is None and (left.is_rekeyed or options.grace is not None):
        rekeyed = "its records were re-keyed and cross a repartition"
        why = rekeyed if left.is_rekeyed else "its records wait for the grace"
        raise TopologyError(
            "table-join-unnamed", "{join}: {reason}. Give it a name, name=...", join=description, reason=why
        )
    if options.grace is None:
        side = _side(left, str(name))
        supplier = StreamTableJoin(view, joiner, unmatched.left)
        return graph.add("join", supplier, side.node, name=name, stores=view.stores, typed_by=JOIN)
    name, grace_ms = str(name), to_ms(options.grace)
    if grace_ms < 0:
        raise TopologyError(
            "join-grace-negative",
            "{join}: the grace {grace} is negative: give 0 or more",
            join=description,
            grace=repr(options.grace),
        )
    if view.history_ms is None or grace_ms > view.history_ms:
        kept = "no history" if view.history_ms is None else f"a history of {in_words(view.history_ms)}"
        raise TopologyError(
            "join-history-too-short",
            "{join}: the grace {grace} needs a versioned table with at least that much history, and this one has "
            "{history}: use versioned_store(name, history=...) for its store",
            join=description,
            grace=repr(options.grace),
            history=kept,
        )
    side = _side(left, name)
    graph.topology.add_store(StoreBuilder(name, RECORDS, side.key, side.value))
    supplier = StreamTableJoin(view, joiner, unmatched.left, grace_ms, name)
    stores = (name, *view.stores)
    return graph.add(
        "join", supplier, side.node, table.node, name=name, stores=stores, typed_by=JOIN, holds_ms=grace_ms
    )


def _side(stream: KStream, name: str) -> KStream:
    """Return one side of a join. If its keys were changed, it goes through a repartition with this name."""
    if not stream.is_rekeyed:
        return stream
    node = stream.graph.topology.add_repartition(name, stream.node, key=stream.key, value=stream.value)
    return replace(stream, node=node, is_rekeyed=False)


def _kept(store: JoinStores) -> tuple[Materialized, Materialized]:
    if isinstance(store, tuple):
        this, other = materialized(store[0]), materialized(store[1])
        if this.name == other.name:
            raise TopologyError(
                "join-sides-share-store",
                "store {store!r} cannot keep both sides of a join: give each its own name",
                store=this.name,
            )
        return this, other
    both = materialized(store)
    if both.ready_made is not None:
        raise TopologyError(
            "join-store-not-pair",
            "store {store!r} cannot keep both sides of a join: give a pair, store=(this, other)",
            store=both.name,
        )
    return replace(both, name=f"{both.name}-left"), replace(both, name=f"{both.name}-right")


def _stores(side: KStream, kept: Materialized, windows: JoinWindows, *, waits: bool) -> SideStores:
    topology = side.graph.topology
    topology.add_store(kept.joined(windows, side.key, side.value))
    unmatched = f"{kept.name}-unmatched" if waits else None
    if unmatched is not None:
        topology.add_store(StoreBuilder(unmatched, RECORDS, side.key, side.value))
    return SideStores(kept.name, unmatched)


def _without_key(joiner: _ValueJoiner) -> Joiner:
    """Return a function ``(key, left, right)`` that calls a joiner without the key."""
    return lambda _key, left, right: joiner(left, right)


def _let_null_keys_pass(graph: Graph, join: str) -> None:
    """Let records with a null key pass all repartitions above a left or outer join, because the join sends them, too."""
    nodes = graph.topology.nodes
    for node in graph.topology.above(nodes[join]):
        if isinstance(node, ProcessorNode) and isinstance(node.supplier, KeyedOnly):
            nodes[node.name] = replace(node, supplier=replace(node.supplier, lets_pass=True))
