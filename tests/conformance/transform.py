"""A transformer of a table's values, as a scenario describes it. With a store it numbers its calls, by key."""

from __future__ import annotations

from typing import Any

from rewindow import StoreBuilder, ValueTransformerWithKey, key_value_store
from tests.oracle.vocabulary import text_of, transformed


class Transform:
    """Makes the transformers of a node, and the store that they need."""

    def __init__(self, node: dict[str, Any]) -> None:
        self.node = node

    def stores(self) -> list[StoreBuilder]:
        return [key_value_store(self.node["store"], key=str, value=int)] if "store" in self.node else []

    def __call__(self) -> ValueTransformerWithKey:
        return _Transformer(self.node)


class _Transformer(ValueTransformerWithKey):
    def __init__(self, node: dict[str, Any]) -> None:
        self.node = node

    def init(self, context: Any) -> None:
        self.context = context
        self.calls = context.store(self.node["store"]) if "store" in self.node else None

    def transform(self, key: Any, value: Any) -> Any:  # type: ignore[override]
        number = None
        if self.calls is not None:
            number = (self.calls.get(text_of(key)) or 0) + 1
            self.calls.put(text_of(key), number)
        return transformed(self.node, key, value, number)
