"""The topology under construction, as the verbs share it: names for nodes, types on the way."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rewindow.errors import ConfigError, TopologyError
from rewindow.streams.processor import Processor
from rewindow.streams.serde.schema import shape_of
from rewindow.streams.settings import FAIL, OnError
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.topology import REPARTITION_SUFFIX, Topology


class NodeOptions(NamedTuple):
    """What a node of the user's may have: see `streams.nodes.ProcessorNode`."""

    holds_ms: int = 0
    on_error: OnError = FAIL


NO_OPTIONS = NodeOptions()


@dataclass
class Graph:
    """A topology and the numbers that nameless nodes get. Nodes with state are always named by the user."""

    topology: Topology = field(default_factory=Topology)
    counts: dict[str, int] = field(default_factory=dict)
    kept_longer: dict[str, None] = field(default_factory=dict)
    """The stores that keep windows until their final results have left (`finals`)."""

    def add(
        self,
        verb: str,
        supplier: Callable[[], Processor],
        *parents: str,
        name: str | None = None,
        stores: tuple[str, ...] = (),
        holds_ms: int = 0,
        on_error: OnError = FAIL,
    ) -> str:
        """Add a processor and return its name."""
        name = name or self.number(verb)
        self.topology.add_processor(name, supplier, *parents, stores=stores, holds_ms=holds_ms, on_error=on_error)
        return name

    def run(
        self,
        verb: str,
        parent: str,
        supplier: Callable[[], Processor],
        name: str,
        stores: Iterable[StoreBuilder | str],
        options: NodeOptions = NO_OPTIONS,
    ) -> str:
        """Add a processor of the user's and the stores that it brings; those given by name are there already."""
        if isinstance(stores, str | StoreBuilder):
            message = f"{verb} {name!r}: give its stores as a list, stores=[{stores!r}]"
            raise TopologyError(message)
        stores = tuple(stores)
        for store in stores:
            if isinstance(store, StoreBuilder):
                self.topology.add_store(store)
        names = tuple(store.name if isinstance(store, StoreBuilder) else store for store in stores)
        return self.add(verb, supplier, parent, name=name, stores=names, **options._asdict())

    def number(self, verb: str) -> str:
        """Return ``verb-1``, ``verb-2``, ... ."""
        self.counts[verb] = self.counts.get(verb, 0) + 1
        return f"{verb}-{self.counts[verb]}"


def function_of(given: Any, verb: str) -> Any:
    """Return the function that a verb was given. Raises `TopologyError` if it is none."""
    if not callable(given):
        message = f"{verb}({given!r}): give it a function"
        raise TopologyError(message)
    return given


def internal_ends(repartition: str) -> tuple[str, str]:
    """Return the names of the sink and the source of a repartition, given its own."""
    topic = repartition + REPARTITION_SUFFIX
    return f"{topic}-sink", f"{topic}-source"


def returned_type(function: Callable[..., Any]) -> Any:
    """Return the annotated result type of a function, or None: a lambda's is not known, and not every type has columns."""
    try:
        annotated = typing.get_type_hints(function).get("return")
    except (NameError, TypeError):
        return None
    return _with_columns(annotated)


def returned_pair(function: Callable[..., Any]) -> tuple[Any, Any]:
    """Return the annotated key and value type of a function that gives a pair, ``(None, None)`` if not known."""
    try:
        annotated = typing.get_type_hints(function).get("return")
    except (NameError, TypeError):
        return None, None
    parts = typing.get_args(annotated) if typing.get_origin(annotated) is tuple else ()
    return (_with_columns(parts[0]), _with_columns(parts[1])) if len(parts) == 2 else (None, None)


def _with_columns(annotated: Any) -> Any:
    """Return the type if it has columns, else None: what was inferred and does not fit is kept as JSON text."""
    try:
        shape_of(annotated, "value")
    except ConfigError:
        return None
    return annotated
