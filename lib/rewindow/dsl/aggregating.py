"""Helpers that grouped and windowed streams share: repartitioning by key, and the aggregates that verbs accept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rewindow.dsl.annotations import function_of, returned_type, shown
from rewindow.dsl.graph import Graph
from rewindow.dsl.operators.builtin_aggregates import Aggregator, Mergeable, is_aggregate
from rewindow.dsl.operators.compound import Custom, Reduce, Several, several
from rewindow.dsl.operators.session_aggregate import Merger, Merging
from rewindow.errors import TopologyError
from rewindow.streams.nodes import TypedBy

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream

Initializer = Callable[[], Any]
AggregateSpec = Aggregator | Mapping[str, Aggregator] | Initializer
AddFunction = Callable[[Any, Any, Any], Any]


def keyed(stream: KStream, name: str) -> KStream:
    """Return the stream with each record in the partition of its key.

    If the keys of the stream were changed, it goes through a repartition with this name, which drops records with a null key.
    """
    return stream.repartition(name=name) if stream.is_rekeyed else stream


def aggregator_of(aggregate: AggregateSpec, aggregator: AddFunction | None, value: Any) -> Aggregator:
    """Return the aggregator for the arguments of the verb ``aggregate``. ``value`` is the declared type of its result.

    Raises `TopologyError` if the arguments are not an aggregate.
    """
    if isinstance(aggregate, Mapping):
        return several(aggregate)
    if aggregator is not None and callable(aggregate):
        return Custom(aggregate, function_of(aggregator, "aggregate"), value or returned_type(aggregator))
    if is_aggregate(aggregate):
        return aggregate
    raise TopologyError(
        "aggregate-not-understood",
        "aggregate({given}): give a built-in aggregate, a dict of them, or an initializer and an aggregator",
        given=shown(aggregate),
    )


def check_functions(graph: Graph, node: str, made: Any, key: Any, value: Any, *, verb: str = "aggregate") -> None:
    """Check the user's functions in the aggregator of a node that gets records with these types. See `Graph.calls`."""
    if isinstance(made, Several):
        for _, part in made.parts:
            check_functions(graph, node, part, key, value)
        return
    state = made.state_type(value)
    names: tuple[str, ...] = ("add",)
    arguments = {"key": key, "value": value, "aggregate": state}
    if isinstance(made, Reduce):
        verb, names, arguments = "reduce", ("reducer", "subtractor"), {"aggregate": state, "value": value}
    elif isinstance(made, Custom):
        names = ("aggregator", "subtractor")
    for name in names:
        if hasattr(made, name):
            graph.calls(node, verb, getattr(made, name), **arguments)


def typed_by(made: Aggregator) -> TypedBy:
    """Return the method that adds a node with this aggregator."""
    return TypedBy("reduce" if isinstance(made, Reduce) else "aggregate", ("value",))


def merger_of(aggregate: AggregateSpec, made: Aggregator, merger: Merger | None) -> Merger:
    """Return the function that merges the states of two sessions. ``made`` is the aggregator for ``aggregate``.

    Raises `TopologyError` if no merger was given and an aggregator cannot merge.
    """
    if merger is not None:
        return merger
    parts = list(aggregate.values()) if isinstance(aggregate, Mapping) else [made]
    for part in parts:
        if not isinstance(part, Mergeable):
            raise TopologyError(
                "session-states-not-mergeable",
                "sessions can merge, and {aggregate} cannot merge their states: give aggregate(initializer, "
                "aggregator, merger) a merger(key, one, later), or your own aggregator a method merge(state, later)",
                aggregate="aggregate(initializer, aggregator)" if isinstance(part, Custom) else shown(part),
            )
    return Merging(made)
