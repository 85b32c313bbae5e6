"""Random cogroups and transformed tables, as data, for random topologies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from rewindow import (
    KStream,
    KTable,
    SessionWindowedCogroupedKStream,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    ValueTransformerWithKey,
    key_value_store,
    until_window_closes,
)


@dataclass(frozen=True)
class Cogrouping:
    """The windows of a cogroup, if any, and whether only final results are sent."""

    kind: str
    size_ms: int
    grace_ms: int
    has_finals: bool

    def windows(self) -> Any:
        size, grace = f"{self.size_ms}ms", f"{self.grace_ms}ms"
        if self.kind == "hopping":
            return TimeWindows.of(size, grace=grace).advance_by(f"{max(1, self.size_ms // 2)}ms")
        made: Any = {"tumbling": TimeWindows, "sliding": SlidingWindows, "session": SessionWindows}[self.kind]
        return made.of(size, grace=grace)


@dataclass(frozen=True)
class Transforming:
    """Whether the results of a counting transformer are kept, and the verb below."""

    is_kept: bool
    below: str


def cogroupings() -> st.SearchStrategy[Cogrouping]:
    """Draw the windows of a cogroup."""
    kinds = st.sampled_from(["none", "tumbling", "hopping", "sliding", "session"])
    return st.builds(Cogrouping, kinds, st.integers(1, 20), st.sampled_from([0, 0, 5, 13]), st.booleans())


def transformings() -> st.SearchStrategy[Transforming]:
    """Draw a transformed table."""
    return st.builds(Transforming, st.booleans(), st.sampled_from(["filter", "count", "nothing"]))


def cogrouped(name: str, one: KStream, other: KStream, plan: Cogrouping) -> KStream:
    """Aggregate two streams as text."""
    grouped = one.group_by_key().cogroup(lambda _key, value, text: f"{text};{value}"[-40:])
    both = grouped.cogroup(other.group_by_key(), lambda _key, value, text: f"{text},{value}"[-40:])
    if plan.kind == "none":
        return both.aggregate(str, store=name, value=str).to_stream()
    windowed = both.windowed_by(plan.windows())
    if isinstance(windowed, SessionWindowedCogroupedKStream):
        table = windowed.aggregate(str, lambda _key, left, right: f"{left}|{right}"[-40:], store=name, value=str)
    else:
        table = windowed.aggregate(str, store=name, value=str)
    return (table.suppress(until_window_closes()) if plan.has_finals else table).to_stream()


class Counting(ValueTransformerWithKey):
    """Numbers its calls, by key, in a store that the class names."""

    store = ""

    def init(self, context: Any) -> None:
        super().init(context)
        self.calls = context.store(self.store)

    def transform(self, key: Any, value: Any) -> Any:  # type: ignore[override]
        number = (self.calls.get(key) or 0) + 1
        self.calls.put(key, number)
        return None if value is None else f"{value}#{number}"[-40:]


def transformed(name: str, rows: KTable, plan: Transforming) -> KStream:
    """Transform the rows of a table, and apply a verb that may need their old values."""
    counting = type("Counting", (Counting,), {"store": f"{name}-calls"})
    stores = [key_value_store(f"{name}-calls", key=str, value=int)]
    table = rows.transform_values(counting, name=name, stores=stores, store=f"{name}-kept" if plan.is_kept else None)
    if plan.below == "filter":
        table = table.filter(lambda _key, value: len(str(value)) % 2 == 0)
    elif plan.below == "count":
        table = table.group_by(lambda _key, value: (str(len(str(value)) % 3), value)).count(store=f"{name}-count")
    return table.to_stream()
