"""The stream verbs that Kafka Streams has replaced, for code that is being ported. Each gives a `DeprecationWarning`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from rewindow.dsl.graph import Graph, function_of
from rewindow.dsl.operators.transform import Transform, TransformValues
from rewindow.streams.legacy import Transformer, ValueTransformer, deprecated
from rewindow.streams.state.stores import StoreBuilder


@dataclass(frozen=True, slots=True)
class LegacyVerbs:
    """The base of `KStream`: its node in the topology, and its deprecated verbs. Each verb returns the stream of a new node."""

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
        node = self.graph.add_user_processor(
            "transform", self.node, Transform(function_of(supplier, "transform")), name, stores
        )
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
        node = self.graph.add_user_processor(
            "flat-transform", self.node, Transform(function_of(supplier, "flat_transform"), is_flat=True), name, stores
        )
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
        node = self.graph.add_user_processor(
            "transform-values", self.node, TransformValues(function_of(supplier, "transform_values")), name, stores
        )
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
        node = self.graph.add_user_processor(
            "flat-transform-values",
            self.node,
            TransformValues(function_of(supplier, "flat_transform_values"), is_flat=True),
            name,
            stores,
        )
        return replace(self, node=node, value=value)
