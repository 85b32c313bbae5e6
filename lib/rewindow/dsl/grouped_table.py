"""Tables grouped by a new key. When a row changes, an aggregate subtracts the row's old value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rewindow.dsl.aggregating import check_functions, typed_by
from rewindow.dsl.annotations import returned_type
from rewindow.dsl.graph import Graph, internal_ends
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.builtin_aggregates import Aggregator, Count, Subtractable, described, is_aggregate
from rewindow.dsl.operators.compound import Several, several
from rewindow.dsl.operators.table_group import CustomSubtractable, ReduceSubtractable, TableAggregate
from rewindow.dsl.operators.table_view import DerivedView, StoreView
from rewindow.dsl.table import KTable
from rewindow.errors import TopologyError
from rewindow.streams.nodes import SinkNode
from rewindow.streams.serde.types_to_columns import ChangeType
from rewindow.streams.topology import REPARTITION_SUFFIX


@dataclass(frozen=True, slots=True)
class KGroupedTable:
    """The rows of a table grouped by a new key (`KTable.group_by`), to aggregate their current values.

    An update subtracts the old value of its row and adds the new value. Its result has the larger of the update's and the
    group's timestamps. A group without rows keeps its last aggregate, such as a count of 0. A tombstone is sent only if the
    result is null. Updates go through a repartition that is named after the store of the first aggregate. All aggregates of
    the group share this repartition.
    """

    graph: Graph
    node: str
    key: Any = None
    value: Any = None

    def count(self, *, store: StoreSpec, name: str | None = None) -> KTable:
        """Count the rows of each group."""
        return self.aggregate(Count(), store=store, name=name)

    def reduce(
        self,
        adder: Callable[[Any, Any], Any],
        subtractor: Callable[[Any, Any], Any],
        *,
        store: StoreSpec,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Combine values with ``adder(aggregate, value)`` and ``subtractor(aggregate, value)``.

        A group's first value is its first aggregate.
        """
        grouped = replace(self, value=value) if value else self
        return _aggregated(grouped, ReduceSubtractable(adder, subtractor), store, name)

    def aggregate(
        self,
        aggregate: Aggregator | Mapping[str, Aggregator] | Callable[[], Any],
        adder: Callable[[Any, Any, Any], Any] | None = None,
        subtractor: Callable[[Any, Any, Any], Any] | None = None,
        *,
        store: StoreSpec,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Aggregate the current values of each group.

        ``aggregate`` is a built-in aggregate that can subtract a value (`Count`, `Sum`, `Mean`, `Collect`), a dictionary from
        names to these, or an initializer. An initializer needs an ``adder(key, value, aggregate)`` and a ``subtractor(key,
        value, aggregate)``; ``value`` declares the type of their results. If one of these returns None, the group's row is
        deleted. The last bits of a sum of floats depend on the order of additions and subtractions. ``name`` names the node;
        the default is the store's name. Raises `TopologyError` for an aggregate that cannot subtract.
        """
        if adder is not None and subtractor is not None and callable(aggregate):
            made = CustomSubtractable(aggregate, adder, value or returned_type(adder), subtractor)
            return _aggregated(self, made, store, name)
        built_in = several(aggregate) if isinstance(aggregate, Mapping) else aggregate
        parts = [part for _, part in built_in.parts] if isinstance(built_in, Several) else [built_in]
        for part in parts:
            if not (is_aggregate(part) and isinstance(part, Subtractable)):
                raise TopologyError(
                    "aggregate-cannot-subtract",
                    "aggregate({aggregate}) of a grouped table cannot subtract a row: use Count, Sum, Mean or "
                    "Collect, or give initializer, adder and subtractor",
                    aggregate=described(part) if is_aggregate(part) else repr(part),
                )
        return _aggregated(self, built_in, store, name)


def _aggregated(grouped: KGroupedTable, made: Any, store: StoreSpec, name: str | None) -> KTable:
    kept, graph, key, value = materialized(store), grouped.graph, grouped.key, grouped.value
    own = kept.name
    source = _shared_repartition(grouped) or graph.topology.add_repartition(
        own, grouped.node, key=key, value=ChangeType(value)
    )
    graph.topology.add_store(kept.key_values(key, made.state_type(value)))
    supplier = TableAggregate(made, own)
    node = graph.add("table-aggregate", supplier, source, name=name or own, stores=(own,), typed_by=typed_by(made))
    check_functions(graph, node, made, key, value)
    view = DerivedView(StoreView(own), lambda _key, state: made.result(state))
    return KTable(graph, node, key, made.result_type(value), view=view)


def _shared_repartition(grouped: KGroupedTable) -> str | None:
    """Return the source of the repartition of an earlier aggregate of the group, if it has the same types; otherwise None."""
    topology, wanted = grouped.graph.topology, ((grouped.node,), grouped.key, ChangeType(grouped.value))
    for node in topology.nodes.values():
        if isinstance(node, SinkNode) and node.is_internal and (node.parents, node.key, node.value) == wanted:
            return internal_ends(node.topic.removesuffix(REPARTITION_SUFFIX))[1]
    return None
