"""Which records can be behind a row, so that a replay needs no others: derived from the topology's own operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewindow.engine.worker.provenance.replay import Traced
from rewindow.engine.worker.provenance.watcher import entry_of
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.record import Windowed
from rewindow.streams.state.stores import BUFFER, JOIN, KEY_VALUE, RECORDS, SESSION, WINDOW

_OPERATORS = "rewindow.dsl.operators."
_FOREIGN = frozenset(
    ("transform", "table_transform", "table_group", "foreign_key_join", "global_table_join", "foreach")
)
"""Modules of operators that run user code with a context, or read entries of other keys."""
_RENAMES = frozenset(("Map", "FlatMap", "SelectKey"))
"""Operators that change keys."""
_SLIDING = "SlidingAggregate"
"""The operator whose windows begin right after a record, which is in none of them."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What a replay needs to read.

    ``since_ms``: no record whose order key is below can matter; None for the beginning. ``is_of_key``: only records with the
    row's own key can matter, and no clock does.
    """

    since_ms: int | None = None
    is_of_key: bool = False


def extents(traced: Traced, key: Any, timestamp: int) -> list[Extent]:
    """Return the ways to replay a row of a key, cheapest first. The last one reads everything."""
    parts = [part for part, _ in traced.tasks()]
    nodes = [node for part in parts for node in part.nodes if isinstance(node, ProcessorNode)]
    kinds = {store.kind for part in parts for store in part.stores}
    if not all(_is_known(node) for node in nodes):
        return [Extent()]
    keeps_keys = len(parts) == 1 and not any(type(node.supplier).__name__ in _RENAMES for node in nodes)
    if keeps_keys and kinds <= {KEY_VALUE} and key.__class__ is not Windowed:
        return [Extent(is_of_key=True), Extent()]
    start_ms = timestamp
    if key.__class__ is Windowed:
        own, (start_ms, end_ms, _) = key
        if own.__class__ is Windowed:
            return [Extent()]
        if any(type(node.supplier).__name__ == _SLIDING for node in nodes):
            start_ms -= end_ms - start_ms + 1
    retained = max((s.retention_ms for part in parts for s in part.stores if s.kind == JOIN), default=0)
    joins = {RECORDS} if JOIN in kinds else set()
    timed = {WINDOW, SESSION, BUFFER} if key.__class__ is Windowed else set()
    if kinds and kinds <= {JOIN} | joins | timed:
        return [Extent(since_ms=max(start_ms - retained, 0)), Extent()]
    return [Extent()]


def own_key(key: Any) -> Any:
    """Return the key within a windowed key."""
    return entry_of(key)[0]


def window_of(key: Any) -> tuple[int, int] | None:
    """Return the times ``[start, end]`` that records of a windowed key may have; None for another key."""
    if key.__class__ is not Windowed:
        return None
    start_ms, end_ms, is_session = key.window
    return start_ms, end_ms if is_session else end_ms - 1


def _is_known(node: ProcessorNode) -> bool:
    module = type(node.supplier).__module__
    return module.startswith(_OPERATORS) and module.removeprefix(_OPERATORS) not in _FOREIGN
