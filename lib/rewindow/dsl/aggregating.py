"""Helpers that grouped and windowed streams share: repartitioning by key, and the aggregates that verbs accept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rewindow.dsl.graph import function_of, returned_type, shown
from rewindow.dsl.operators.aggregates import Aggregator, Mergeable, is_aggregate
from rewindow.dsl.operators.compound import Custom, several
from rewindow.dsl.operators.session_aggregate import Merger, Merging
from rewindow.errors import TopologyError

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream

Initializer = Callable[[], Any]
AggregateSpec = Aggregator | Mapping[str, Aggregator] | Initializer
AddFunction = Callable[[Any, Any, Any], Any]


def keyed(stream: KStream, name: str) -> KStream:
    """Return the stream with each record in the partition of its key.

    A stream whose keys were changed crosses a repartition with this name, which drops records with a null key.
    """
    return stream.repartition(name=name) if stream.is_rekeyed else stream


def aggregator_of(aggregate: AggregateSpec, aggregator: AddFunction | None, value: Any) -> Aggregator:
    """Return the aggregator for the arguments of the verb ``aggregate``. ``value`` is the declared type of its result.

    Raises `TopologyError` if the arguments are not an aggregate.
    """
    if isinstance(aggregate, Mapping):
        return several(aggregate)
    if aggregator is not None and callable(aggregate):
        function_of(aggregator, "aggregate", "key", "value", "aggregate")
        return Custom(aggregate, aggregator, value or returned_type(aggregator))
    if is_aggregate(aggregate):
        return aggregate
    raise TopologyError(
        "aggregate-not-understood",
        "aggregate({given}): give a built-in aggregate, a dict of them, or an initializer and an aggregator",
        given=shown(aggregate),
    )


def merger_of(aggregate: AggregateSpec, made: Aggregator, merger: Merger | None) -> Merger:
    """Return the function that merges the states of two sessions. ``made`` is the aggregator for ``aggregate``.

    Raises `TopologyError` if no merger was given and an aggregator cannot merge.
    """
    if merger is not None:
        function_of(merger, "aggregate(merger)", "key", "one", "later")
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
