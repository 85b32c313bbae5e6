"""The durations for which the nodes of a topology keep results of windows, buffered updates and records in joins.

The suppliers of the nodes declare these durations, and the ledger stores them with each plan. So a report can explain a run
whose code no longer exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rewindow.streams.duration import in_words
from rewindow.streams.record import MAX_MS, TopicPartition
from rewindow.streams.state.stores import BUFFER, RECORDS


@dataclass(frozen=True, slots=True)
class Timing:
    """Describes how a store of a node depends on the node's clock.

    An entry of the store is final ``final_after_ms`` after its base time. The base time is the end of the entry's window; in
    a suppress with a time limit, the entry's buffer time; in a join, the record's timestamp. ``final_after_ms`` is None if
    the node sends each result at once. ``durations`` maps the names of the defining durations (size, advance, difference,
    gap, limit, grace) to milliseconds. Windows in local time have no fixed size: the upper bound of their size is ``longest``.
    """

    store: str
    final_after_ms: int | None
    durations: Mapping[str, int] = field(default_factory=dict)
    sends_nulls: bool = False
    """Whether the node also sends final results whose value is null."""
    calendar: str = ""
    """The size and zone of windows in local time, as text; empty for other windows."""
    zone: str = ""
    """The zone of windows in local time."""


@dataclass(frozen=True, slots=True)
class TimedNode:
    """A node whose store depends on the node's clock, with its place in the topology. For the other fields, see `Timing`."""

    node: str
    sub_topology: int
    store: str
    kind: str
    """The kind of the store."""
    final_after_ms: int | None
    durations: Mapping[str, int]
    sends_nulls: bool
    topics: tuple[str, ...]
    """The topics that the node's sub-topology reads."""
    spans: Mapping[str, int]
    """If the node holds results back: the durations (see `Timing`) of the windows whose results it receives or makes."""
    calendar: str = ""
    """See `Timing`."""
    zone: str = ""
    """If the node holds results of windows in local time back: the zone of these windows."""

    @property
    def is_join(self) -> bool:
        """Whether the node is a stream-stream join, which holds records, not results."""
        return self.kind == RECORDS

    @property
    def is_buffer(self) -> bool:
        """Whether the node is a suppress, which counts the results that it holds."""
        return self.kind == BUFFER

    @property
    def grace_ms(self) -> int | None:
        """The grace period of the node's windows in ms; None if they have no grace period."""
        return self.durations.get("grace")

    @property
    def has_one_window(self) -> bool:
        """Whether each record belongs to exactly one window. If so, a record is late for at most one window."""
        durations = self.durations
        size_ms = durations.get("size", durations.get("longest"))
        return "gap" in durations or (size_ms is not None and durations.get("advance") == size_ms)

    @property
    def windows(self) -> str:
        """The durations as text: ``size 1h, grace 10m``."""
        durations = self.durations
        left_out = {"advance"} if durations.get("advance") == durations.get("size") else set()
        left_out |= {"longest", "advance"} if self.calendar else set()
        texts = [f"{name} {in_words(ms)}" for name, ms in durations.items() if name not in left_out]
        return ", ".join([f"size {self.calendar}", *texts] if self.calendar else texts)

    def reads(self, topic_partition: TopicPartition, partition: int) -> bool:
        """Whether the node's task with the number ``partition`` reads a topic-partition.

        A job may read only some logs of a feed.
        """
        return topic_partition.partition == partition and topic_partition.topic in self.topics

    def all_final_at(self, clock_ms: int, zone_ends: Mapping[str, int]) -> int:
        """Return the time (epoch ms) at which all results of records up to ``clock_ms`` are final.

        It is the latest end of a window that can contain such a record, plus ``final_after_ms``. For windows in local time, it
        is an upper bound. ``zone_ends`` has, by zone, the latest end of such a window in the job's stores.
        """
        if "size" in self.spans:
            last = clock_ms - clock_ms % self.spans.get("advance", self.spans["size"])
            end = last + self.spans["size"]
        else:
            # A session ends at its last record. A sliding window ends at most the difference after a record.
            end = clock_ms + self.spans.get("longest", self.spans.get("difference", 0))
        return min(end, zone_ends.get(self.zone, end)) + (self.final_after_ms or 0)

    def closes_at(self, time_ms: int) -> int:
        """Return the time (epoch ms) at which an entry is final, given its base time: see `Timing`."""
        return min(time_ms + (self.final_after_ms or 0), MAX_MS)

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary for `json`."""
        form = {**asdict(self), "topics": list(self.topics)}
        # Omitted if empty, so that older versions can read the rows of jobs without such windows.
        return {name: value for name, value in form.items() if value or name not in {"calendar", "zone"}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TimedNode:
        """Return the node that `as_json` described."""
        return replace(cls(**data), topics=tuple(data["topics"]))


def timings_of(supplier: object) -> Sequence[Timing]:
    """Return the timings that a supplier declares; empty if it declares none, as users' suppliers do."""
    declared = getattr(supplier, "timings", None)
    return declared() if callable(declared) else ()


def holding_nodes(nodes: Sequence[TimedNode]) -> Iterator[TimedNode]:
    """Yield the nodes that hold results back. Joins are left out, because they hold records."""
    return (node for node in nodes if node.final_after_ms is not None and not node.is_join)
