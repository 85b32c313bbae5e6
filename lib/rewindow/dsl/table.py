"""`KTable`: the current value of each key, the verbs on its updates, and the stores that keep it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rewindow.dsl.annotations import function_of, returned_pair, returned_type, shown
from rewindow.dsl.finals import keep_until_final
from rewindow.dsl.graph import KEEPS_TYPES, Graph
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.suppress import BufferTime, SuppressUntilTimeLimit, SuppressUntilWindowCloses
from rewindow.dsl.operators.table_group import TableGroupBy
from rewindow.dsl.operators.table_join import TableJoinResult, TableJoinSide
from rewindow.dsl.operators.table_verbs import FILTER, FILTER_NOT, TableDerive, TableSource, TableToStream, kept_by
from rewindow.dsl.operators.table_view import DerivedView, HeldBackView, StoreView, TableView
from rewindow.dsl.operators.transform import TableTransform, TransformedView
from rewindow.dsl.suppressed import Suppressed
from rewindow.dsl.table_joins import INNER, LEFT, OUTER, ForeignKey, Joiner, Unmatched, join_by_foreign_key, join_tables
from rewindow.errors import TopologyError
from rewindow.streams.deprecated_processors import ValueTransformerWithKey
from rewindow.streams.nodes import ProcessorNode, SourceNode, TypedBy
from rewindow.streams.state.stores import BUFFER, VERSIONED, StoreBuilder
from rewindow.streams.topology import Topology
from rewindow.streams.windows.time import Windows

if TYPE_CHECKING:
    from rewindow.dsl.grouped_table import KGroupedTable
    from rewindow.dsl.stream import KStream


_JOINS_AND_SUPPRESSES = (TableJoinSide, TableJoinResult, SuppressUntilTimeLimit, SuppressUntilWindowCloses)


@dataclass(frozen=True, slots=True)
class KTable:
    """A table: the current value of each key. Every update is sent downstream, because there is no record cache.

    ``key`` and ``value`` are the types of keys and values; None if unknown. ``windows`` is set for a windowed table. ``view``
    looks up the current value of a key, for joins. ``knows_old``: whether an update contains the value that was last sent for
    its key. `filter`, `group_by` and `suppress` need this value. Only the results of some joins lack it (see `join`).
    """

    graph: Graph
    node: str
    key: Any = None
    value: Any = None
    windows: Windows | None = None
    view: TableView | None = None
    knows_old: bool = True

    def filter(
        self, predicate: Callable[[Any, Any], bool], *, store: StoreSpec | None = None, name: str | None = None
    ) -> KTable:
        """Keep the rows for which ``predicate(key, value)`` is true. A row that no longer matches becomes a tombstone.

        An update is not sent if neither the old nor the new row matches. Exception: for a versioned table, a tombstone is
        sent in this case. Its updates may be out of order, so the old row may not be the row that was last sent (KIP-914).
        With ``store``, the matching rows are kept in a store. Results have the timestamps of the updates.
        """
        return self._filtered(predicate, store, name, negate=False)

    def filter_not(
        self, predicate: Callable[[Any, Any], bool], *, store: StoreSpec | None = None, name: str | None = None
    ) -> KTable:
        """Keep the rows for which ``predicate(key, value)`` is false: see `filter`."""
        return self._filtered(predicate, store, name, negate=True)

    def map_values(
        self,
        mapper: Callable[..., Any],
        *,
        with_key: bool = False,
        store: StoreSpec | None = None,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Replace each value by ``mapper(value)`` or, with ``with_key``, by ``mapper(key, value)``.

        A tombstone stays a tombstone. If the mapper returns None, a tombstone is sent. With ``store``, the mapped values are
        kept in a store. ``value`` declares their type. Results have the timestamps of the updates.
        """
        derive = mapper if with_key else lambda _key, value: mapper(value)
        typed_by, value = TypedBy("map_values", ("value",)), value or returned_type(mapper)
        table = self._derived(TableDerive("table_map_values", derive), store, name, value, typed_by)
        self.graph.calls(table.node, "map_values", mapper, with_key=with_key, key=self.key, value=self.value)
        return table

    def transform_values(
        self,
        supplier: Callable[[], ValueTransformerWithKey],
        *,
        name: str,
        stores: Iterable[StoreBuilder | str] = (),
        store: StoreSpec | None = None,
        value: Any = None,
    ) -> KTable:
        """Replace each value by the result of your `ValueTransformerWithKey`, which may have stores and schedules (KIP-292).

        Unlike a mapper of `map_values`, the transformer is also called for tombstones, and may return a value for them. With
        ``store``, the results are kept in a store. ``value`` declares their type. Results have the timestamps of the updates.

        Without ``store``, the transformer may be called more often. If a verb below needs old values (`filter`, `group_by`,
        `suppress`, left, outer and foreign-key joins), the transformer is also called for the old value of an update, after
        the new value. A join below calls another instance of the transformer for each row that it looks up. So give a
        ``store`` to a transformer with state. If a transformer has ``stores``, a join below can look up its rows only if it
        also has a ``store``.
        """
        return _transform_values(self, supplier, name=name, stores=stores, store=store, value=value)

    def group_by(
        self,
        mapper: Callable[[Any, Any], tuple[Any, Any]],
        *,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> KGroupedTable:
        """Group the rows by ``mapper(key, value) -> (group, value)``, to aggregate their current values.

        A row whose group or value is null belongs to no group. ``key`` and ``value`` declare the types of the result. By default
        the types come from the mapper's annotation; without an annotation the columns are JSON text. Late updates of a
        versioned table are dropped and counted.
        """
        self.check_old("group_by")
        returned = returned_pair(mapper)
        node = self.graph.add(
            "table-group-by", TableGroupBy(mapper), self.node, name=name, typed_by=TypedBy("group_by")
        )
        self.graph.calls(node, "group_by", mapper, key=self.key, value=self.value)
        return self.graph.fluent.grouped_table(self.graph, node, key or returned[0], value or returned[1])

    def join(
        self,
        other: KTable,
        joiner: Joiner,
        *,
        foreign_key: ForeignKey | None = None,
        store: StoreSpec | None = None,
        with_key: bool = False,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Inner-join with another table: ``joiner(value, other_value)`` for keys that both tables have.

        With ``with_key``, the result is ``joiner(key, value, other_value)``, with the key of this table's row. An update of
        either table sends the joined row; a deletion sends a tombstone. Both have the larger of the two rows' timestamps. As
        long as the other table lacks the row, nothing is sent. As long as it has the row, each repeated tombstone is sent
        again. With ``store``, the joined rows are kept in a store. ``value`` declares their type. Late updates of a versioned
        table are dropped and counted. Both tables must be partitioned in the same way: the same feed, the same key.

        One update may reach both sides, if a table is joined with itself or with its own filter. It is then joined twice,
        each time with the value that the other side has at that moment, and both results are sent. Deleting a row from both
        sides sends nothing. Without ``store``, the updates of such a join do not contain the value that was last sent.

        With ``foreign_key``, each row is joined with the row of the other table whose key is ``foreign_key(key, value)``
        (KIP-213). The result must be kept in ``store``. An update of the other table sends all rows that refer to the updated
        row, with the timestamp of the update. A row whose foreign key is null or not found is not in the result. If the
        result may have had the row before, a tombstone is sent. The join consists of three sub-topologies linked by internal
        logs. So if a row has several updates in one epoch, it may be that only the last is joined. Tables of the same
        sub-topology must be separated first, with ``other.to_stream().repartition(name=...).to_table(store=...)``. The names
        of the join's stores begin with ``name``, by default the name of ``store``: ``<name>-left`` (a copy of this table),
        ``<name>-subscribers`` and ``<name>-updates``.

        Raises `TopologyError` if a table keeps no values to look up, or for a foreign key without ``store``.
        """
        return self._joined(INNER, other, joiner, foreign_key, store, with_key=with_key, value=value, name=name)

    def left_join(
        self,
        other: KTable,
        joiner: Joiner,
        *,
        foreign_key: ForeignKey | None = None,
        store: StoreSpec | None = None,
        with_key: bool = False,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Join as `join` does, and keep rows without a match in the other table: ``joiner(value, None)``."""
        return self._joined(LEFT, other, joiner, foreign_key, store, with_key=with_key, value=value, name=name)

    def outer_join(
        self,
        other: KTable,
        joiner: Joiner,
        *,
        store: StoreSpec | None = None,
        with_key: bool = False,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Join as `left_join` does, and also keep the other table's rows without a match: ``joiner(None, other_value)``."""
        return self._joined(OUTER, other, joiner, None, store, with_key=with_key, value=value, name=name)

    def suppress(self, suppressed: Suppressed, *, name: str | None = None) -> KTable:
        """Hold updates back and send only a key's last update: see `until_window_closes`, `until_time_limit` (KIP-328).

        The buffer's clock is the highest timestamp of the updates that have reached it. A result has the timestamp of its
        last update, and its old value is the value that was last sent for its key (D13). ``name`` (or the configuration's
        name) names the node and its buffer; the default is ``<parent>-suppress``. A named suppress can be added to a running
        job. Its buffer is then empty at first. It can be removed while its buffer is empty. A time limit of zero disables it.
        Raises `TopologyError` if the configuration needs windows and the table has none, and for a versioned table, whose
        late updates do not change its current value.
        """
        # User code may pass any object.
        given: object = suppressed
        if not isinstance(given, Suppressed):
            raise TopologyError(
                "suppress-argument-invalid",
                "suppress({given}) after {node!r}: give it until_window_closes() or until_time_limit(...)",
                given=shown(suppressed),
                node=self.node,
            )
        self.check_old("suppress")
        if self.view is not None and self.view.history_ms is not None:
            raise TopologyError(
                "suppress-after-versioned-table",
                "suppress after {node!r}, which is versioned: keep its values in an unversioned store first, "
                "map_values(..., store=...)",
                node=self.node,
            )
        store = name or suppressed.name or f"{self.node}-suppress"
        bounds, windows = suppressed.buffer.bounds, self.windows
        supplier: SuppressUntilTimeLimit | SuppressUntilWindowCloses
        if suppressed.limit_ms is not None and (windows or suppressed.buffer_time is not BufferTime.WINDOW_START):
            supplier = SuppressUntilTimeLimit(suppressed.limit_ms, store, suppressed.buffer_time, bounds)
            holds_ms = suppressed.limit_ms
        elif windows is not None:
            supplier = SuppressUntilWindowCloses(windows.final_after_end_ms, store, bounds)
            holds_ms = windows.holds_ms
            keep_until_final(self.graph, self.node)
        else:
            raise TopologyError(
                "suppress-without-windows",
                "suppress({store!r}) after {node!r}: the table is not windowed: use windowed_by before it, or a "
                "time limit",
                store=store,
                node=self.node,
            )
        records, size = bounds.memory
        buffer = StoreBuilder(store, BUFFER, self.key, self.value, memory_records=records, memory_bytes=size)
        is_final = isinstance(supplier, SuppressUntilWindowCloses)
        self.graph.topology.add_store(replace(buffer, sends_tombstones=not is_final))
        node = self.graph.add("suppress", supplier, self.node, name=store, stores=(store,), holds_ms=holds_ms)
        return replace(self, node=node, view=self.view and HeldBackView(self.view, store))

    def to_stream(self, *, name: str | None = None) -> KStream:
        """Send each update as a record with the new value. A tombstone is sent as a record with a null value."""
        node = self.graph.add("to-stream", TableToStream(), self.node, name=name)
        return self.graph.fluent.stream(self.graph, node, self.key, self.value)

    def _joined(
        self,
        unmatched: Unmatched,
        other: KTable,
        joiner: Joiner,
        foreign_key: ForeignKey | None,
        store: StoreSpec | None,
        **options: Any,
    ) -> KTable:
        # User code may pass any object.
        given: object = other
        if not isinstance(given, KTable) or given.graph is not self.graph:
            raise TopologyError(
                "table-join-input-invalid",
                "join of {node!r} with {other}: give it a KTable of the same StreamsBuilder; a stream joins a table, "
                "stream.join(table, ...)",
                node=self.node,
                other=repr(getattr(other, "node", other)),
            )
        if foreign_key is None:
            return join_tables(self, other, joiner, unmatched, store=store, **options)
        if store is None:
            raise TopologyError(
                "foreign-key-join-without-store",
                "the foreign-key join of {node!r} must keep its result: give it a store=...",
                node=self.node,
            )
        return join_by_foreign_key(self, other, foreign_key, joiner, store=store, keeps_left=unmatched.left, **options)

    def _filtered(
        self, predicate: Callable[[Any, Any], bool], store: StoreSpec | None, name: str | None, *, negate: bool
    ) -> KTable:
        verb = FILTER_NOT if negate else FILTER
        if store is None:
            self.check_old(verb.removeprefix("table_"))
        else:
            _ask_for_old_values(self.graph.topology, self.node)
        is_versioned = self.view is not None and self.view.history_ms is not None
        supplier = TableDerive(
            verb,
            kept_by(predicate, negate=negate),
            skips_empty=not is_versioned,
        )
        table = self._derived(supplier, store, name, self.value)
        self.graph.calls(table.node, verb.removeprefix("table_"), predicate, key=self.key, value=self.value)
        return table

    def _derived(
        self,
        supplier: TableDerive,
        store: StoreSpec | None,
        name: str | None,
        value: Any,
        typed_by: TypedBy = KEEPS_TYPES,
    ) -> KTable:
        verb = supplier.verb.replace("_", "-")
        if store is None:
            node = self.graph.add(verb, supplier, self.node, name=name, typed_by=typed_by)
            view = None if self.view is None else DerivedView(self.view, supplier.derive)
            return replace(self, node=node, value=value, view=view)
        kept = materialized(store)
        self.graph.topology.add_store(kept.key_values(self.key, value))
        stored = replace(supplier, store=kept.name)
        node = self.graph.add(verb, stored, self.node, name=name or kept.name, stores=(kept.name,), typed_by=typed_by)
        return replace(self, node=node, value=value, view=StoreView(kept.name), knows_old=True)

    def check_old(self, verb: str) -> None:
        """Make the nodes above send old values, for a verb that needs the value that was last sent for a key.

        Raises `TopologyError` if the table's updates do not contain this value.
        """
        if not self.knows_old:
            raise TopologyError(
                "old-values-unknown",
                "{verb} after {node!r} needs the value that was last sent for a key, and a join above it gets the "
                "same update on both sides: give the join a store=...",
                verb=verb,
                node=self.node,
            )
        _ask_for_old_values(self.graph.topology, self.node)


def kept_table(graph: Graph, parent: str, key: Any, value: Any, store: StoreSpec, *, name: str | None = None) -> KTable:
    """Return a table with the records of the node ``parent``. ``store`` may be a `versioned_store`.

    Raises `TopologyError` for a window or session store.
    """
    kept = materialized(store)
    made = kept.ready_made
    is_versioned = made is not None and made.kind == VERSIONED
    if made is not None and is_versioned:
        builder = replace(made, key=made.key or key, value=made.value or value)
    else:
        builder = kept.key_values(key, value)
    graph.topology.add_store(builder)
    taken = isinstance(graph.topology.nodes.get(builder.name), SourceNode)
    name = name or (f"{builder.name}-table" if taken else builder.name)
    supplier = TableSource(builder.name, is_versioned=is_versioned)
    node = graph.add("table", supplier, parent, name=name, stores=(builder.name,))
    view = StoreView(builder.name, builder.retention_ms if is_versioned else None)
    return KTable(graph, node, key, value, view=view)


def _transform_values(
    table: KTable,
    supplier: Callable[[], ValueTransformerWithKey],
    *,
    name: str,
    stores: Iterable[StoreBuilder | str],
    store: StoreSpec | None,
    value: Any,
) -> KTable:
    """Transform the values of a table with a user's transformer. See `KTable.transform_values`."""
    graph, function_ = table.graph, function_of(supplier, "transform_values")
    names = graph.add_user_stores(f"transform_values {name!r}", stores)
    made, view = TableTransform(function_, bool(names)), _view(table, function_, names)
    if store is not None:
        kept = materialized(store)
        graph.topology.add_store(kept.key_values(table.key, value))
        made, names, view = replace(made, store=kept.name), (*names, kept.name), StoreView(kept.name)
    typed_by = TypedBy("transform_values", ("value",))
    node = graph.add("transform-values", made, table.node, name=name, stores=names, typed_by=typed_by)
    graph.calls_method(node, supplier, "transform", key=table.key, value=table.value)
    return replace(table, node=node, value=value, view=view, knows_old=table.knows_old or store is not None)


def _ask_for_old_values(topology: Topology, name: str) -> None:
    """Make the transformers above a node transform old values as well as new values, as in Kafka.

    Goes up through joins, suppresses and nodes that derive values without a store. Stops at other nodes, which send old
    values anyway, because they read them from their stores.
    """
    node = topology.nodes[name]
    supplier = node.supplier if isinstance(node, ProcessorNode) else None
    is_derived = isinstance(supplier, TableTransform | TableDerive) and supplier.store is None
    if not is_derived and not isinstance(supplier, _JOINS_AND_SUPPRESSES):
        return
    if isinstance(node, ProcessorNode) and isinstance(supplier, TableTransform):
        topology.nodes[name] = replace(node, supplier=replace(supplier, calls_old=True))
    for parent in node.parents:
        _ask_for_old_values(topology, parent)


def _view(table: KTable, supplier: Callable[[], ValueTransformerWithKey], stores: tuple[str, ...]) -> TableView | None:
    """Return a view that transforms each value that it looks up; None if the table cannot be looked up."""
    # A join has no access to the stores of a transformer.
    return None if table.view is None or stores else TransformedView(table.view, supplier)
