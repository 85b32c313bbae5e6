"""Key pruning: which keys a sub-topology can read from its stores. A run restores only those.

A supplier may declare two properties of its processor:

* ``keeps_key``: it forwards records only while it handles a record, and only under that record's key.
* ``asks_own_key``: it accesses its stores only while it handles a record, and only with that record's key.

The default is false for both, as for every user processor. If all nodes of a store access it with the record's own key,
below nodes that keep the key, then only keys of the sources' records are read from it.
"""

from __future__ import annotations

from rewindow.streams.nodes import Node, ProcessorNode, SourceNode
from rewindow.streams.topology import SubTopology

Topics = frozenset[str]


def asked_by_topics(part: SubTopology) -> dict[str, Topics]:
    """Return the stores that are read only with keys of some topics' records, and these topics."""
    below: dict[str, Topics | None] = {}  # by node: the topics from which the keys of its records come
    asked: dict[str, Topics | None] = {store.name: frozenset() for store in part.stores}
    for node in part.nodes:
        if isinstance(node, SourceNode):
            below[node.name] = frozenset((node.topic,))
            continue
        above = _union([below[parent] for parent in node.parents])
        below[node.name] = above if _declares(node, "keeps_key") else None
        if isinstance(node, ProcessorNode):
            own = above if _declares(node, "asks_own_key") else None
            for store in node.stores:
                asked[store] = _union([asked[store], own])
    return {store: topics for store, topics in asked.items() if topics}


def _declares(node: Node, what: str) -> bool:
    return isinstance(node, ProcessorNode) and getattr(node.supplier, what, False) is True


def _union(some: list[Topics | None]) -> Topics | None:
    known = [topics for topics in some if topics is not None]
    return frozenset().union(*known) if len(known) == len(some) else None
