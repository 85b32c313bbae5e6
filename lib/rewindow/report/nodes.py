"""What a run's topology says of its windowed nodes and buffers, as the ledger describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewindow.control.plan.compatibility import topics_of
from rewindow.streams.duration import to_ms
from rewindow.streams.record import TopicPartition

_DURATION = re.compile(r"\b(grace|size|difference|gap|limit|advance)=((?:\d+(?:ms|[smhdw]))+)")
_WAITS = re.compile(r"\b(before|after|grace)=(-?(?:\d+(?:ms|[smhdw]))+)")
_UNMATCHED = "-unmatched"
"""The end of the name of a store with the records of one side of a join that wait for a partner."""


@dataclass(frozen=True, slots=True)
class TimedNode:
    """A node that keeps results of a store until a clock reaches a time.

    ``final_after_ms`` is how long after a window's end (for `until_time_limit`: after an entry's buffer time) its result is
    final; None for a node whose results are never held back. ``sends_nulls``: a result without a value is sent too.
    """

    node: str
    sub_topology: int
    store: str
    kind: str
    windows: str
    grace_ms: int | None
    final_after_ms: int | None
    sends_nulls: bool
    has_one_window: bool
    """Whether each record has one window, so that it is late at most once."""
    topics: tuple[str, ...] = ()
    """The topics that its sub-topology reads."""
    spans: Mapping[str, int] = field(default_factory=dict)
    """The size, advance, difference or gap of its windows, in milliseconds."""

    def reads(self, one: TopicPartition, partition: int) -> bool:
        """Whether its task of a partition reads a topic-partition: a feed may have logs that the job does not read."""
        return one.partition == partition and one.topic in self.topics

    def all_final_at(self, clock_ms: int) -> int:
        """Return when all results are final that a clock has let in: the last windows of records up to it, plus grace."""
        if "size" in self.spans:
            last = clock_ms - clock_ms % self.spans.get("advance", self.spans["size"])
            end = last + self.spans["size"]
        else:
            end = clock_ms + self.spans.get("difference", 0)  # a session ends with its last record
        return end + (self.final_after_ms or 0)


def topics_read(topology: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the topics that a topology reads."""
    return {topic for part in topology for topic in topics_of(part)}


def timed_nodes(topology: Sequence[Mapping[str, Any]]) -> Iterator[TimedNode]:
    """Yield the windowed aggregates and suppresses of a topology, given its description in the ledger."""
    for part in topology:
        kinds = {store["name"]: store["kind"] for store in part["stores"]}
        for node in part["nodes"]:
            does = node.get("processor") or ""
            verb = does.partition("(")[0]
            stores = node.get("stores") or ()
            if verb not in ("window", "suppress") or not stores:
                continue
            store, spans = stores[0], {name: to_ms(text) for name, text in _DURATION.findall(does)}
            grace = spans.get("grace")
            if verb == "suppress":
                final: int | None = grace if grace is not None else spans.get("limit", 0)
            else:
                final = _final_after(spans) if "emit=window_close" in does else None
            yield TimedNode(
                node=node["name"],
                sub_topology=part["sub_topology"],
                store=store,
                kind=kinds.get(store, ""),
                windows=_windows(does),
                grace_ms=grace,
                final_after_ms=final,
                sends_nulls="limit" in spans,
                has_one_window="gap" in spans or ("size" in spans and spans.get("advance") == spans["size"]),
                topics=topics_of(part),
                spans=_spans_above(part["nodes"], node) if final is not None else {},
            )


def waiting_joins(topology: Sequence[Mapping[str, Any]]) -> Iterator[TimedNode]:
    """Yield the joins whose records wait in a store of their own: of two streams for a partner, with a table for its grace.

    ``final_after_ms`` is how long after a record's time the clock ends its wait.
    """
    for part in topology:
        kinds = {store["name"]: store["kind"] for store in part["stores"]}
        for node in part["nodes"]:
            does, stores = node.get("processor") or "", node.get("stores") or ()
            waits = {name: to_ms(text) for name, text in _WAITS.findall(does)}
            for store in (one for one in stores if kinds.get(one) == "records"):
                if does.startswith("stream_join("):
                    is_left = f"left={store.removesuffix(_UNMATCHED)}," in does
                    after = waits["after" if is_left else "before"] + waits["grace"] + 1
                elif does.startswith("stream_table_join(") and "grace" in waits:
                    after = waits["grace"]
                else:
                    continue
                yield TimedNode(
                    node=node["name"],
                    sub_topology=part["sub_topology"],
                    store=store,
                    kind=kinds[store],
                    windows="",
                    grace_ms=waits["grace"],
                    final_after_ms=after,
                    sends_nulls=False,
                    has_one_window=True,
                    topics=topics_of(part),
                )


def _spans_above(nodes: Sequence[Mapping[str, Any]], node: Mapping[str, Any]) -> dict[str, int]:
    """Return the durations of the windowed aggregate whose results a node gets; none if there is none."""
    known, due = {one["name"]: one for one in nodes}, [node]
    while due:
        one = due.pop()
        does = one.get("processor") or ""
        if does.startswith("window("):
            return {name: to_ms(text) for name, text in _DURATION.findall(does)}
        due += [known[parent] for parent in one["parents"] if parent in known]
    return {}


def _final_after(spans: Mapping[str, int]) -> int:
    """Return how long after a window's end a windowed aggregate sends its result (D10)."""
    if "gap" in spans:
        return spans["gap"] + spans.get("grace", 0) + 1
    return spans.get("grace", 0) + ("difference" in spans)


def _windows(does: str) -> str:
    """Return the sizes in a node's description as people read them."""
    found = dict(_DURATION.findall(does))
    if found.get("advance") == found.get("size"):
        found.pop("advance", None)
    return ", ".join(f"{name} {text}" for name, text in found.items())
