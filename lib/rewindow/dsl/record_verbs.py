"""The stateless verbs of a stream, which handle one record at a time, and verbs that Kafka Streams has deprecated.

The deprecated verbs are for code that is being ported. Each gives a `DeprecationWarning`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from rewindow.dsl.annotations import function_of, returned_pair, returned_type, shown
from rewindow.dsl.graph import Graph, NodeOptions
from rewindow.dsl.operators import stateless
from rewindow.dsl.operators.conditions import parse
from rewindow.dsl.operators.select import Select, Where, read_fields, type_of
from rewindow.dsl.operators.transform import Transform, TransformValues
from rewindow.dsl.type_checks import ConditionReads
from rewindow.errors import TopologyError
from rewindow.streams.deprecated_processors import Transformer, ValueTransformer, ValueTransformerWithKey, deprecated
from rewindow.streams.nodes import TypedBy
from rewindow.streams.processor import Processor
from rewindow.streams.state.stores import StoreBuilder


@dataclass(frozen=True, slots=True)
class _LegacyVerbs:
    """The base of `KStream`, with the deprecated verbs. Each verb adds a node and returns the stream of the new node.

    ``node`` is the name of the stream's node, ``key`` and ``value`` are its declared types. ``is_rekeyed``: whether keys may
    have changed since the last repartition.
    """

    graph: Graph
    node: str
    key: Any = None
    value: Any = None
    is_rekeyed: bool = False

    def transform(
        self,
        supplier: Callable[[], Transformer],
        *,
        name: str,
        stores: Iterable[StoreBuilder | str] = (),
        key: Any = None,
        value: Any = None,
    ) -> Self:
        """Run a `Transformer` and forward the pair that it returns (deprecated by KIP-820: use `process`)."""
        deprecated("transform", "process")
        made = Transform(function_of(supplier, "transform"))
        node = self._transformed(TypedBy("transform"), made, name, stores)
        return replace(self, node=node, key=key, value=value, is_rekeyed=True)

    def flat_transform(
        self,
        supplier: Callable[[], Transformer],
        *,
        name: str,
        stores: Iterable[StoreBuilder | str] = (),
        key: Any = None,
        value: Any = None,
    ) -> Self:
        """Run a `Transformer` that returns any number of pairs (KIP-313, deprecated by KIP-820: use `process`)."""
        deprecated("flat_transform", "process")
        made = Transform(function_of(supplier, "flat_transform"), is_flat=True)
        node = self._transformed(TypedBy("flat_transform"), made, name, stores)
        return replace(self, node=node, key=key, value=value, is_rekeyed=True)

    def transform_values(
        self,
        supplier: Callable[[], ValueTransformer],
        *,
        name: str,
        stores: Iterable[StoreBuilder | str] = (),
        value: Any = None,
    ) -> Self:
        """Run a `ValueTransformer`, which returns the new value (deprecated by KIP-820: use `process_values`)."""
        deprecated("transform_values", "process_values")
        made = TransformValues(function_of(supplier, "transform_values"))
        node = self._transformed(TypedBy("transform_values", ("value",)), made, name, stores)
        return replace(self, node=node, value=value)

    def flat_transform_values(
        self,
        supplier: Callable[[], ValueTransformer],
        *,
        name: str,
        stores: Iterable[StoreBuilder | str] = (),
        value: Any = None,
    ) -> Self:
        """Run a `ValueTransformer` that returns any number of values (KIP-313, deprecated by KIP-820: use `process_values`)."""
        deprecated("flat_transform_values", "process_values")
        made = TransformValues(function_of(supplier, "flat_transform_values"), is_flat=True)
        node = self._transformed(TypedBy("flat_transform_values", ("value",)), made, name, stores)
        return replace(self, node=node, value=value)

    def _transformed(
        self, typed_by: TypedBy, made: Transform | TransformValues, name: str, stores: Iterable[StoreBuilder | str]
    ) -> str:
        verb = typed_by.method.replace("_", "-")
        node = self.graph.add_user_processor(verb, self.node, made, name, stores, NodeOptions(typed_by))
        of: Any = made.supplier
        has_key = isinstance(made, Transform) or (isinstance(of, type) and issubclass(of, ValueTransformerWithKey))
        self.graph.calls_method(node, of, "transform", with_key=has_key, key=self.key, value=self.value)
        return node


@dataclass(frozen=True, slots=True)
class RecordVerbs(_LegacyVerbs):
    """The stateless verbs of `KStream`.

    A result has the timestamp and headers of its record, and results keep the order of their records. If a function raises an
    exception, the run fails (exit code 65) with an error that names the node and the record. Raises `TopologyError` for an
    argument that should be a function, but is not.
    """

    def filter(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> Self:
        """Keep the records for which ``predicate(key, value)`` is true."""
        supplier = stateless.Filter(predicate)
        return self._calling("filter", self._then("filter", supplier, name), predicate)

    def where(self, condition: str, *, name: str | None = None) -> Self:
        """Keep the records that satisfy a condition, as in ``where("amount >= 10")``.

        Conditions are a small subset of SQL. They may use the value's fields, ``key``, ``value`` and ``timestamp``
        (`dsl.operators.conditions`). Unlike a function, a condition can be evaluated on whole columns. Raises `ConfigError`
        for a text that cannot be parsed, and for a text with more than 200 names and literals, more than 50 nested levels, or
        more than 100 digits in a number.
        """
        # User code may pass any object.
        given: object = condition
        if not isinstance(given, str):
            raise TopologyError(
                "condition-not-text",
                'where({given}): a condition is a text, as in where("amount >= 10"). For a function use filter',
                given=shown(given),
            )
        read = Where(parse(condition))
        stream = self._then("where", read, name)
        self.graph.topology.reads.append((stream.node, ConditionReads(read.condition, self.key, self.value)))
        return stream

    def select(self, fields: str, *, name: str | None = None) -> Self:
        """Replace the value by a row of expressions, as in ``select("user, price * pieces as total")``.

        Expressions are a small subset of SQL: fields, ``key``, ``value``, ``timestamp``, literals, and ``+ - *`` of integers
        and floats (`dsl.operators.expressions`); ``as`` names a field. Unlike a function, expressions can be evaluated on
        whole columns. A null value gives a row of null fields. The key does not change. The bounds of `where` apply to each
        field. Raises `ConfigError` for a text that cannot be parsed.
        """
        # User code may pass any object.
        given: object = fields
        if not isinstance(given, str):
            raise TopologyError(
                "selected-fields-not-text",
                'select({given}): name the fields in one text, as in select("user, price * pieces as total"). For '
                "a function use map_values",
                given=shown(given),
            )
        read = read_fields(fields)
        return self._then("select", Select(read), name, value=type_of(read, self.key, self.value))

    def filter_not(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> Self:
        """Keep the records for which ``predicate(key, value)`` is false."""
        supplier = stateless.Filter(predicate, negate=True)
        return self._calling("filter_not", self._then("filter", supplier, name), predicate)

    def map(
        self,
        mapper: Callable[[Any, Any], tuple[Any, Any]],
        *,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> Self:
        """Replace key and value: ``mapper(key, value) -> (key, value)``. A grouping or join below needs a repartition."""
        returned = returned_pair(mapper)
        stream = self._then("map", stateless.Map(mapper), name, key=key or returned[0], value=value or returned[1])
        return self._calling("map", stream, mapper)

    def flat_map(
        self,
        mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]],
        *,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> Self:
        """Replace each record by any number of records: ``mapper(key, value) -> [(key, value), ...]``."""
        stream = self._then("flat-map", stateless.FlatMap(mapper), name, key=key, value=value)
        return self._calling("flat_map", stream, mapper)

    def map_values(
        self, mapper: Callable[..., Any], *, with_key: bool = False, value: Any = None, name: str | None = None
    ) -> Self:
        """Replace the value by ``mapper(value)`` or, with ``with_key``, by ``mapper(key, value)``. The key does not change."""
        of = value or returned_type(mapper)
        stream = self._then("map-values", stateless.MapValues(mapper, with_key, of), name, value=of)
        return self._calling("map_values", stream, mapper, with_key=with_key)

    def flat_map_values(
        self,
        mapper: Callable[..., Iterable[Any]],
        *,
        with_key: bool = False,
        value: Any = None,
        name: str | None = None,
    ) -> Self:
        """Replace the value by any number of values: ``mapper(value)`` or, with ``with_key``, ``mapper(key, value)``."""
        stream = self._then("flat-map-values", stateless.FlatMapValues(mapper, with_key, value), name, value=value)
        return self._calling("flat_map_values", stream, mapper, with_key=with_key)

    def select_key(self, mapper: Callable[[Any, Any], Any], *, key: Any = None, name: str | None = None) -> Self:
        """Replace the key by ``mapper(key, value)``. A grouping or join below needs a repartition."""
        of = key or returned_type(mapper)
        stream = self._then("select-key", stateless.SelectKey(mapper), name, key=of)
        return self._calling("select_key", stream, mapper)

    def peek(self, action: Callable[[Any, Any], None], *, name: str | None = None) -> Self:
        """Call ``action(key, value)`` for each record, and pass the record on.

        If the task is retried, the action is called again.
        """
        return self._calling("peek", self._then("peek", stateless.Peek(action), name), action)

    def _calling(self, verb: str, stream: Self, function: Callable[..., Any], *, with_key: bool = True) -> Self:
        """Return ``stream``, whose node calls ``function`` with records of this stream. Check it (`Graph.calls`)."""
        self.graph.calls(stream.node, verb, function, with_key=with_key, key=self.key, value=self.value)
        return stream

    def _then(self, verb: str, supplier: Callable[[], Processor], name: str | None, **types: Any) -> Self:
        """Return the stream of a new node. Given types are those of new keys or values; other types are passed on."""
        typed_by = TypedBy(verb.replace("-", "_"), tuple(types))
        node = self.graph.add(verb, supplier, self.node, name=name, typed_by=typed_by)
        return replace(self, node=node, **types, is_rekeyed=self.is_rekeyed or "key" in types)
