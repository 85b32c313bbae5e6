"""The topology that is being built. All streams and tables of one `StreamsBuilder` share it."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rewindow.dsl.type_checks import FunctionReads
from rewindow.errors import ConfigError, TopologyError
from rewindow.streams.nodes import TypedBy
from rewindow.streams.processor import Processor
from rewindow.streams.serde.normalizers import unannotated
from rewindow.streams.serde.schema import shape_of
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

    Nodes with state are always named by the user.
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
        """Add a processor node and return its name. Without a name, the node is numbered: ``verb-1``."""
        name = name or self.number(verb)
        self.topology.add_processor(
            name, supplier, *parents, stores=stores, holds_ms=holds_ms, on_error=on_error, typed_by=typed_by
        )
        return name

    def reads(self, node: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Record that a node calls ``function`` with arguments of these declared types, to be checked (see `dsl.type_checks`)."""
        self.topology.reads.append((node, FunctionReads(function, arguments)))

    def calls(
        self, node: str, verb: str, function: Callable[..., Any], /, *, with_key: bool = True, **arguments: Any
    ) -> None:
        """Check a function that a node calls with these arguments, given by name with their declared types.

        Not ``with_key``: the node does not pass the ``key``. Raises `TopologyError` as `function_of` does. What the function
        reads is checked later, as in `reads`.
        """
        if not with_key:
            del arguments["key"]
        self.reads(node, function_of(function, verb, *arguments), *arguments.values())

    def calls_method(self, node: str, supplier: Callable[[], Any], method: str, /, **arguments: Any) -> None:
        """Check a method of a class that a verb was given: see `calls`. The objects that a function makes are not checked."""
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
        """Add the stores that are not given by name, and return the names of all stores. ``node`` is for errors."""
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


def shown(given: object) -> str:
    """Return a value as text for a message: functions, classes and stores by name, other objects without their addresses."""
    if isinstance(given, StoreBuilder):
        return repr(given.name)
    name = getattr(given, "__name__", None)
    return name if callable(given) and isinstance(name, str) else re.sub(r" at 0x[0-9a-f]+", "", repr(given))


def function_of(given: Any, verb: str, *arguments: str) -> Any:
    """Return ``given``, the function that was passed to a verb, after checks. It is called with ``arguments``.

    Raises `TopologyError`, with file and line, if it is not callable or does not take that many arguments. The number is not
    checked if no ``arguments`` are named.
    """
    if not callable(given):
        raise TopologyError(
            "function-not-callable", "{verb}({given}): give it a function", verb=verb, given=shown(given)
        )
    if arguments:
        _check_takes(given, verb, arguments)
    return given


def _check_takes(function: Callable[..., Any], verb: str, arguments: tuple[str, ...]) -> None:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        # Classes and functions written in C may have no signature.
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        code = getattr(inspect.unwrap(function), "__code__", None)
        location = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
        name = getattr(function, "__name__", type(function).__name__)
        raise TopologyError(
            "function-parameters-wrong",
            "{verb}: {function} takes {signature}, but is called with ({arguments}): change its parameters",
            verb=verb,
            function=("the lambda" if name == "<lambda>" else name) + location,
            signature=str(signature),
            arguments=", ".join(arguments),
        ) from error


def internal_ends(repartition: str) -> tuple[str, str]:
    """Return the names of a repartition's sink and source."""
    topic = repartition + REPARTITION_SUFFIX
    return f"{topic}-sink", f"{topic}-source"


def returned_type(function: Callable[..., Any]) -> Any:
    """Return a function's annotated result type; None if it has no annotation, or if the type does not map to columns."""
    return _with_columns(_annotated_result(function))


def returned_pair(function: Callable[..., Any]) -> tuple[Any, Any]:
    """Return ``(key type, value type)`` of a function annotated with ``tuple[key, value]``. An unknown type is None."""
    annotated = unannotated(_annotated_result(function))
    parts = typing.get_args(annotated) if typing.get_origin(annotated) is tuple else ()
    return (_with_columns(parts[0]), _with_columns(parts[1])) if len(parts) == 2 else (None, None)


def _annotated_result(function: Callable[..., Any]) -> Any:
    try:
        return typing.get_type_hints(function, include_extras=True).get("return")
    except (NameError, TypeError):
        return None


def _with_columns(annotated: Any) -> Any:
    """Return the type if it maps to columns, else None: values of another annotated type are stored as JSON text.

    Raises `TopologyError` for an invalid decimal type.
    """
    try:
        shape_of(annotated, "value")
    except TopologyError:
        raise
    except ConfigError:
        return None
    return annotated
