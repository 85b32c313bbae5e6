"""Tables: the newest value of each key, and the verbs on their updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rewindow.dsl.finals import keep_until_final
from rewindow.dsl.foreign_key import ForeignKey, join_by_foreign_key
from rewindow.dsl.graph import Graph, function_of, returned_pair, returned_type
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.suppress import BufferTime, SuppressUntilTimeLimit, SuppressUntilWindowCloses
from rewindow.dsl.operators.table_group import TableGroupBy
from rewindow.dsl.operators.table_verbs import TableDerive, TableToStream, kept_by
from rewindow.dsl.operators.table_view import DerivedView, HeldBackView, StoreView, TableView
from rewindow.dsl.suppressed import Suppressed
from rewindow.dsl.table_joins import Joiner, Kept, join_tables
from rewindow.errors import TopologyError
from rewindow.streams.state.stores import BUFFER, StoreBuilder
from rewindow.streams.windows.time import Windows

if TYPE_CHECKING:
    from rewindow.dsl.grouped_table import KGroupedTable
    from rewindow.dsl.stream import KStream


@dataclass(frozen=True, slots=True)
class KTable:
    """A table. Every update goes downstream: there is no record cache. ``windows`` is set for windowed tables.

    ``view`` says how joins look the current value of a key up (`TableView`). ``knows_old``: an update has with it what
    was last emitted, which `filter`, `group_by` and `suppress` need (see `join` for the one table that does not).
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
        """Keep the rows for which ``predicate(key, value)`` is true; one that fits no longer becomes a tombstone.

        An update from a row that did not fit to another one sends nothing; of a versioned table it sends a tombstone,
        as its order says nothing of what was sent before (KIP-914). ``store`` keeps the rows in a store of that name.
        The timestamp is the update's.
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
        """Make a new value, ``mapper(value)`` or with ``with_key`` ``mapper(key, value)``; a tombstone stays one.

        A mapper that gives None makes a tombstone. ``store`` keeps the mapped values. The timestamp is the update's.
        """
        function_of(mapper, "map_values")
        derive = mapper if with_key else lambda _key, value: mapper(value)
        return self._derived(TableDerive("table_map_values", derive), store, name, value or returned_type(mapper))

    def group_by(
        self,
        mapper: Callable[[Any, Any], tuple[Any, Any]],
        *,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> KGroupedTable:
        """Group the rows, ``mapper(key, value) -> (group, value)``, to aggregate them as they are now (`KGroupedTable`).

        A row whose group or value is null belongs to none. ``key`` and ``value`` declare the types that the mapper
        gives; one that is not declared is taken from its annotation, else kept as JSON text.
        Of a versioned table late updates are dropped and counted.
        """
        from rewindow.dsl.grouped_table import KGroupedTable  # noqa: PLC0415 - tables and groups make each other

        self.check_old("group_by")
        known = returned_pair(mapper)
        node = self.graph.add("table-group-by", TableGroupBy(function_of(mapper, "group_by")), self.node, name=name)
        return KGroupedTable(self.graph, node, key or known[0], value or known[1])

    def join(
        self,
        other: KTable,
        joiner: Joiner,
        *,
        foreign_key: ForeignKey | None = None,
        store: StoreSpec | None = None,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Join with the row of the same key in another table, ``joiner(value, other_value)``: rows that both have.

        An update of either side sends the joined row with the larger of both timestamps, a deletion a tombstone; nothing
        is sent where the other side has no row. A repeated tombstone is sent again while the other side has its row.
        ``store`` keeps the joined rows, ``value`` declares their type. Of a versioned side late updates are dropped and
        counted. Both tables must be in the same partitions: of the same feed, by the same key.

        Where one update reaches both sides (a table joined with itself, or with its own filter) it is joined twice, each
        time with what the other side says by then; both results are sent, and the deletion of a row in both sends
        nothing. Such a join does not know what it emitted last unless it has a store.

        With ``foreign_key`` each row is joined with the row that it names, ``foreign_key(key, value)`` (KIP-213), and the
        result is kept in ``store``, which is needed. An update of the other table sends all rows that name it, with its
        own timestamp. A row that names none, or one that is not there, is not in the result: a tombstone is sent where
        it may have been. It takes three sub-topologies and internal logs between them: of several updates of a row in
        one epoch only the last may be joined. Tables of one sub-topology (a table joined with itself) are parted first:
        ``other.to_stream().repartition(name=...).to_table(store=...)``. ``name`` (by default the store's) also names
        ``<name>-left``, a copy of this table, ``<name>-subscribers`` and ``<name>-updates``.
        Raises `TopologyError` if a side keeps nothing to look up, or a foreign key comes without a store.
        """
        return self._joined(Kept(), other, joiner, foreign_key, store, value, name)

    def left_join(
        self,
        other: KTable,
        joiner: Joiner,
        *,
        foreign_key: ForeignKey | None = None,
        store: StoreSpec | None = None,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Join as `join` does, and keep the rows that the other table has not: ``joiner(value, None)``."""
        return self._joined(Kept(left=True), other, joiner, foreign_key, store, value, name)

    def outer_join(
        self,
        other: KTable,
        joiner: Joiner,
        *,
        store: StoreSpec | None = None,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Join as `join` does, and keep the rows that only one table has: ``joiner(value, None)``, ``joiner(None, other)``."""
        return self._joined(Kept(left=True, right=True), other, joiner, None, store, value, name)

    def suppress(self, suppressed: Suppressed, *, name: str | None = None) -> KTable:
        """Hold updates back as `until_window_closes` or `until_time_limit` says; only the newest of a key leaves (KIP-328).

        Time is the node's own: the highest timestamp of the updates that reach it. What leaves has the timestamp of its
        newest update, and its old value is what was last emitted of its key (D13). ``name`` (or the configuration's)
        is that of node and buffer; by default ``<parent>-suppress``. A named one may be put into a running job, where
        it begins empty, and taken out while it is empty; a time limit of zero disables it.
        Raises `TopologyError` if there is no window where one is needed, for anything but these two, and for a versioned
        table, whose late updates are no news.
        """
        given: object = suppressed  # it is up to the user
        if not isinstance(given, Suppressed):
            message = (
                f"suppress({suppressed!r}) after {self.node!r}: give it until_window_closes() or until_time_limit(...)"
            )
            raise TopologyError(message)
        self.check_old("suppress")
        if self.view is not None and self.view.history_ms is not None:
            message = f"suppress after {self.node!r}, which is versioned: keep its values in a plain store first"
            raise TopologyError(f"{message}, map_values(..., store=...)")
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
            message = (
                f"suppress({store!r}) after {self.node!r}: there is no window; use windowed_by before, or a time limit"
            )
            raise TopologyError(message)
        records, size = bounds.memory
        self.graph.topology.add_store(
            StoreBuilder(store, BUFFER, self.key, self.value, memory_records=records, memory_bytes=size)
        )
        node = self.graph.add("suppress", supplier, self.node, name=store, stores=(store,), holds_ms=holds_ms)
        return replace(self, node=node, view=self.view and HeldBackView(self.view, store))

    def to_stream(self, *, name: str | None = None) -> KStream:
        """Send the updates as records: the new value, null for a tombstone."""
        from rewindow.dsl.stream import KStream  # noqa: PLC0415 - streams and tables make each other

        node = self.graph.add("to-stream", TableToStream(), self.node, name=name)
        return KStream(self.graph, node, self.key, self.value)

    def _joined(
        self,
        kept: Kept,
        other: KTable,
        joiner: Joiner,
        foreign_key: ForeignKey | None,
        store: StoreSpec | None,
        value: Any,
        name: str | None,
    ) -> KTable:
        given: object = other  # it is up to the user
        if not isinstance(given, KTable) or given.graph is not self.graph:
            message = f"join of {self.node!r} with {getattr(other, 'node', other)!r}: give it a KTable of the same StreamsBuilder"
            raise TopologyError(f"{message}; a stream joins a table, stream.join(table, ...)")
        function_of(joiner, "join")
        if foreign_key is None:
            return join_tables(self, other, joiner, kept, store=store, value=value, name=name)
        function_of(foreign_key, "foreign_key=")
        if store is None:
            message = f"the join of {self.node!r} by a foreign key keeps its result: give it a store=..."
            raise TopologyError(message)
        return join_by_foreign_key(
            self, other, foreign_key, joiner, store=store, keeps_left=kept.left, value=value, name=name
        )

    def _filtered(
        self, predicate: Callable[[Any, Any], bool], store: StoreSpec | None, name: str | None, *, negate: bool
    ) -> KTable:
        verb = "table_filter_not" if negate else "table_filter"
        if store is None:
            self.check_old(verb.removeprefix("table_"))
        is_versioned = self.view is not None and self.view.history_ms is not None
        supplier = TableDerive(
            verb,
            kept_by(function_of(predicate, verb.removeprefix("table_")), negate=negate),
            skips_empty=not is_versioned,
        )
        return self._derived(supplier, store, name, self.value)

    def _derived(self, supplier: TableDerive, store: StoreSpec | None, name: str | None, value: Any) -> KTable:
        verb = supplier.verb.replace("_", "-")
        if store is None:
            node = self.graph.add(verb, supplier, self.node, name=name)
            view = None if self.view is None else DerivedView(self.view, supplier.derive)
            return replace(self, node=node, value=value, view=view)
        kept = materialized(store)
        self.graph.topology.add_store(kept.key_values(self.key, value))
        keep_functions = replace(supplier, store=kept.name)
        node = self.graph.add(verb, keep_functions, self.node, name=name or kept.name, stores=(kept.name,))
        return replace(self, node=node, value=value, view=StoreView(kept.name), knows_old=True)

    def check_old(self, verb: str) -> None:
        """Raise `TopologyError` if a verb needs what was last emitted, and the table does not know it."""
        if not self.knows_old:
            message = (
                f"{verb} after {self.node!r} needs to know what was emitted last, and above it is a join both of whose "
                "sides get the same update: give the join a store=..."
            )
            raise TopologyError(message)
