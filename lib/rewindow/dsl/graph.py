"""The topology that is being built. All streams and tables of one `StreamsBuilder` share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rewindow.dsl.annotations import function_of
from rewindow.dsl.type_checks import FunctionReads
from rewindow.errors import TopologyError
from rewindow.streams.nodes import TypedBy
from rewindow.streams.processor import Processor
from rewindow.streams.settings import FAIL, OnError
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.topology import REPARTITION_SUFFIX, Topology

if TYPE_CHECKING:
    from rewindow.dsl.grouped_table import KGroupedTable
    from rewindow.dsl.stream import KStream


class FluentClasses(NamedTuple):
    """The classes `KStream` and `KGroupedTable`, which `KTable` needs but cannot import, because their modules import it."""

    stream: type[KStream]
    grouped_table: type[KGroupedTable]


class NodeOptions(NamedTuple):
    """Options of a node that runs a user's processor: see `streams.nodes.ProcessorNode`."""

    typed_by: TypedBy
    holds_ms: int = 0
    on_error: OnError = FAIL


KEEPS_TYPES = TypedBy("", ())
JOIN = TypedBy("join", ("value",))


@dataclass
class Graph:
    """A topology that is being built. ``counts`` maps a verb to the number of its unnamed nodes.

    The user always names nodes with state.
    """

    fluent: FluentClasses
    topology: Topology = field(default_factory=Topology)
    counts: dict[str, int] = field(default_factory=dict)
    kept_longer: dict[str, None] = field(default_factory=dict)
    """The stores whose retention was extended for final results (`finals`)."""

    def add(
        self,
        verb: str,
        supplier: Callable[[], Processor],
        *parents: str,
        name: str | None = None,
        stores: tuple[str, ...] = (),
        typed_by: TypedBy = KEEPS_TYPES,
        holds_ms: int = 0,
        on_error: OnError = FAIL,
    ) -> str:
        """Add a processor node and return its name. If ``name`` is None, the node gets a number: ``verb-1``."""
        name = name or self.number(verb)
        self.topology.add_processor(
            name, supplier, *parents, stores=stores, holds_ms=holds_ms, on_error=on_error, typed_by=typed_by
        )
        return name

    def reads(self, node: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Record that a node calls ``function`` with arguments of these declared types. `dsl.type_checks` checks it later."""
        self.topology.reads.append((node, FunctionReads(function, arguments)))

    def calls(
        self, node: str, verb: str, function: Callable[..., Any], /, *, with_key: bool = True, **arguments: Any
    ) -> None:
        """Check a function that a node calls with these arguments, given by name with their declared types.

        ``with_key``: whether the node passes the ``key``. Raises `TopologyError` as `function_of` does. The attributes that
        the function reads are checked later, as in `reads`.
        """
        if not with_key:
            del arguments["key"]
        self.reads(node, function_of(function, verb, *arguments), *arguments.values())

    def calls_method(self, node: str, supplier: Callable[[], Any], method: str, /, **arguments: Any) -> None:
        """Check a method of a class that a verb was given: see `calls`.

        If the verb was given a function that makes objects, these are not checked.
        """
        if isinstance(supplier, type) and hasattr(supplier, method):
            self.calls(node, f"node {node!r}", getattr(supplier, method), self=None, **arguments)

    def add_user_processor(
        self,
        verb: str,
        parent: str,
        supplier: Callable[[], Processor],
        name: str,
        stores: Iterable[StoreBuilder | str],
        options: NodeOptions,
    ) -> str:
        """Add a user's processor, and the stores in ``stores``. A store given by name must have been added before."""
        names = self.add_user_stores(f"{verb} {name!r}", stores)
        return self.add(verb, supplier, parent, name=name, stores=names, **options._asdict())

    def add_user_stores(self, node: str, stores: Iterable[StoreBuilder | str]) -> tuple[str, ...]:
        """Add the stores that are not given by name, and return the names of all stores.

        ``node``: the node's name, for messages.
        """
        if isinstance(stores, str | StoreBuilder):
            raise TopologyError(
                "stores-not-listed", "{node}: give its stores as a list, as in stores=[store]", node=node
            )
        stores = tuple(stores)
        for store in stores:
            if isinstance(store, StoreBuilder):
                self.topology.add_store(store)
        return tuple(store.name if isinstance(store, StoreBuilder) else store for store in stores)

    def number(self, verb: str) -> str:
        """Return the name of the verb's next unnamed node: ``verb-1``, ``verb-2`` and so on."""
        self.counts[verb] = self.counts.get(verb, 0) + 1
        return f"{verb}-{self.counts[verb]}"


def internal_ends(repartition: str) -> tuple[str, str]:
    """Return the names of a repartition's sink and source."""
    topic = repartition + REPARTITION_SUFFIX
    return f"{topic}-sink", f"{topic}-source"
