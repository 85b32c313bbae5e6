"""Sinks of a stream, for one topic or for several among which a function chooses, as nodes of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.dsl.graph import Graph, function_of
from rewindow.dsl.operators.route import Route, TopicNameExtractor
from rewindow.errors import TopologyError


def add_sinks(
    graph: Graph,
    parent: str,
    topic: str | TopicNameExtractor,
    outputs: Sequence[str] | None,
    types: Mapping[str, Any],
    name: str | None,
) -> None:
    """Add the sinks of `KStream.to`. Raises `TopologyError` unless ``outputs`` are distinct names, or not needed."""
    if callable(topic):
        sinks = {output: f"{output}-sink" for output in _declared(outputs)}
        route = Route(function_of(topic, "to", "key", "value"), tuple(sinks.items()))
        parent = graph.add("route", route, parent, name=name)
        for output, sink in sinks.items():
            graph.topology.add_sink(sink, output, parent, **types)
        return
    if outputs is not None:
        message = f"to({topic!r}): outputs= is for a function that names the topic: leave it out"
        raise TopologyError(message)
    graph.topology.add_sink(name or f"{topic}-sink", topic, parent, **types)


def _declared(outputs: object) -> Sequence[str]:
    if not isinstance(outputs, list | tuple) or not outputs or not all(isinstance(one, str) and one for one in outputs):
        message = f"to(function, outputs={outputs!r}): list the topics that the function may name, outputs=['a', 'b']"
        raise TopologyError(message)
    if len(set(outputs)) < len(outputs):
        message = f"to(function, outputs={outputs!r}): a topic is listed twice: list each once"
        raise TopologyError(message)
    return outputs
