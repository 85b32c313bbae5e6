"""`GlobalKTable`: a table of which every task holds all rows, and the joins of streams with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rewindow.dsl.graph import Graph, function_of, returned_type
from rewindow.dsl.joins import Options, Unmatched, without_key
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.null_keys import let_null_keys_pass
from rewindow.dsl.operators.global_table_join import GlobalTableJoin
from rewindow.dsl.operators.stateless import KeyedOnly
from rewindow.dsl.operators.table_verbs import TableSource
from rewindow.errors import TopologyError

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream


@dataclass(frozen=True, slots=True)
class GlobalKTable:
    """A table of which every task holds all rows: see `StreamsBuilder.global_table`.

    It has no verbs: `KStream.join` and `KStream.left_join` read it. ``store`` is the name of its store.
    """

    graph: Graph
    store: str
    key: Any = None
    value: Any = None


def kept_everywhere(
    graph: Graph, source: str, key: Any, value: Any, store: StoreSpec, *, name: str | None
) -> GlobalKTable:
    """Keep the records of a source as a global table. Raises `TopologyError` for a store that is not key-value."""
    builder = materialized(store).key_values(key, value)
    name = name or (f"{builder.name}-table" if builder.name in graph.topology.nodes else builder.name)
    keyed = graph.add("keyed-only", KeyedOnly(), source)
    graph.topology.add_global_table(name, TableSource(builder.name), builder, keyed)
    return GlobalKTable(graph, builder.name, builder.key, builder.value)


def join_global(
    stream: KStream, table: GlobalKTable, key_selector: Any, joiner: Any, unmatched: Unmatched, options: Options
) -> KStream:
    """Join a stream with a global table. Raises `TopologyError` if the arguments do not fit: see `KStream.join`."""
    what = f"join of {stream.node!r} with {table.store!r}" if options.name is None else f"join {options.name!r}"
    if stream.graph is not table.graph:
        message = f"{what}: its sides come from two builders, read both topics with one StreamsBuilder"
        raise TopologyError(message)
    if not callable(joiner):
        message = (
            f"{what}: a join with a global table takes a key selector and a joiner, join(table, key_selector, joiner)"
        )
        raise TopologyError(message)
    if options.store is not None or options.grace is not None:
        message = f"{what}: a join with a global table takes neither store= nor grace=: leave them out"
        raise TopologyError(message)
    function_of(key_selector, "join", "key", "value")
    function_of(joiner, "join", *(("key", "left", "right") if options.with_key else ("left", "right")))
    joined = joiner if options.with_key else without_key(joiner)
    supplier = GlobalTableJoin(table.store, key_selector, joined, unmatched.left)
    node = stream.graph.add("join", supplier, stream.node, name=options.name, stores=(table.store,))
    if unmatched.left:
        let_null_keys_pass(stream.graph, node)
    return replace(stream, node=node, value=options.value or returned_type(joiner))
