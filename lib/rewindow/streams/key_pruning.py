"""Which keys of its stores a sub-topology can ask for: a run restores no others.

A supplier may declare two things, both of every record that its processor handles:

* ``keeps_key``: whatever it sends has the key of that record, and it sends nothing at other times.
* ``asks_own_key``: it asks its stores for the key of that record and for no other, and never at other times.

Both false where nothing is said, as for all processors of users. So a store whose nodes all ask for the record's own key,
below nodes that keep it, is asked for the keys that its sources bring, and for nothing else.
"""

from __future__ import annotations

from rewindow.streams.nodes import Node, ProcessorNode, SourceNode
from rewindow.streams.topology import SubTopology

Topics = frozenset[str]


def asked_by_topics(part: SubTopology) -> dict[str, Topics]:
    """Return the stores that are asked only for keys of some topics' records, with these topics."""
    below: dict[str, Topics | None] = {}  # of each node, the topics whose keys its records have
    asked: dict[str, Topics | None] = {store.name: frozenset() for store in part.stores}
    for node in part.nodes:
        if isinstance(node, SourceNode):
            below[node.name] = frozenset((node.topic,))
            continue
        above = _together([below[parent] for parent in node.parents])
        below[node.name] = above if _says(node, "keeps_key") else None
        if isinstance(node, ProcessorNode):
            own = above if _says(node, "asks_own_key") else None
            for store in node.stores:
                asked[store] = _together([asked[store], own])
    return {store: topics for store, topics in asked.items() if topics}


def _says(node: Node, what: str) -> bool:
    return isinstance(node, ProcessorNode) and getattr(node.supplier, what, False) is True


def _together(some: list[Topics | None]) -> Topics | None:
    known = [topics for topics in some if topics is not None]
    return frozenset().union(*known) if len(known) == len(some) else None
