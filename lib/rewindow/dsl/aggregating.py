"""What the verbs of grouped and windowed streams share: aggregates as they are given, and records where their keys are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rewindow.dsl.graph import returned_type
from rewindow.dsl.operators import stateless
from rewindow.dsl.operators.aggregates import Aggregator, Mergeable, is_aggregate
from rewindow.dsl.operators.compound import Custom, several
from rewindow.dsl.operators.session_aggregate import Merger, Merging
from rewindow.errors import TopologyError

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream

Initializer = Callable[[], Any]
AggregateSpec = Aggregator | Mapping[str, Aggregator] | Initializer
AddFunction = Callable[[Any, Any, Any], Any]


def keyed(stream: KStream, store: str) -> KStream:
    """Return the stream with its records in the partitions of their keys, without those that have none."""
    if not stream.is_rekeyed:
        return stream
    node = stream.graph.add("keyed-only", stateless.KeyedOnly(), stream.node)
    return replace(stream, node=node).repartition(name=store)


def aggregator_of(aggregate: AggregateSpec, aggregator: AddFunction | None, value: Any) -> Aggregator:
    """Return the aggregator that a verb was given. Raises `TopologyError` for anything else."""
    if isinstance(aggregate, Mapping):
        return several(aggregate)
    if aggregator is not None and callable(aggregate):
        return Custom(aggregate, aggregator, value or returned_type(aggregator))
    if is_aggregate(aggregate):
        return aggregate
    message = (
        f"aggregate({aggregate!r}): give a built-in aggregate, a dict of them, or an initializer and an aggregator"
    )
    raise TopologyError(message)


def merger_of(aggregate: AggregateSpec, made: Aggregator, merger: Merger | None) -> Merger:
    """Return what makes one state of those of two sessions. Raises `TopologyError` if there is nothing."""
    if merger is not None:
        return merger
    parts = list(aggregate.values()) if isinstance(aggregate, Mapping) else [made]
    for part in parts:
        if not isinstance(part, Mergeable):
            message = (
                f"sessions can become one, and {part!r} does not say how: give aggregate(initializer, aggregator, merger) "
                "its merger(key, one, later), or an aggregator of your own the method merge(state, later)"
            )
            raise TopologyError(message)
    return Merging(made)
