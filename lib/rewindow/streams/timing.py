"""What the nodes of a topology keep until a clock is late enough: results of windows, buffered updates, records in joins.

The suppliers of the nodes declare it, and the ledger has it with each plan. So a report explains a run whose code is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from rewindow.streams.duration import in_words
from rewindow.streams.record import MAX_MS, TopicPartition
from rewindow.streams.state.stores import BUFFER, RECORDS


@dataclass(frozen=True, slots=True)
class Timing:
    """How a store of a node depends on the node's clock.

    ``final_after_ms`` is how long after a window's end (for a time limit: after an entry's buffer time, in a join: after a
    record's time) the entry is final; None if the node sends each result at once. ``durations`` are those that define it, in
    milliseconds by name: size, advance, difference, gap, limit, grace.
    """

    store: str
    final_after_ms: int | None
    durations: Mapping[str, int] = field(default_factory=dict)
    sends_nulls: bool = False
    """Whether a result without a value is sent, too."""


class Timed(Protocol):
    """A supplier whose node waits for its clock, or drops what is late for it."""

    def timings(self) -> Sequence[Timing]:
        """Return the stores that depend on the clock."""
        ...


@dataclass(frozen=True, slots=True)
class TimedNode:
    """A node with a store that depends on its clock, and its place in the topology. For the other fields, see `Timing`."""

    node: str
    sub_topology: int
    store: str
    kind: str
    """The kind of the store."""
    final_after_ms: int | None
    durations: Mapping[str, int]
    sends_nulls: bool
    topics: tuple[str, ...]
    """The topics that its sub-topology reads."""
    spans: Mapping[str, int]
    """The durations of the windows whose results it gets or makes, if it holds results back."""

    @property
    def is_join(self) -> bool:
        """Whether records wait in it, not results."""
        return self.kind == RECORDS

    @property
    def is_buffer(self) -> bool:
        """Whether it is a suppress, which counts what it holds."""
        return self.kind == BUFFER

    @property
    def grace_ms(self) -> int | None:
        """The grace of its windows; None if it has none."""
        return self.durations.get("grace")

    @property
    def has_one_window(self) -> bool:
        """Whether each record has one window, so that it is late at most once."""
        durations = self.durations
        return "gap" in durations or ("size" in durations and durations.get("advance") == durations["size"])

    @property
    def windows(self) -> str:
        """The durations as people read them."""
        durations = self.durations
        left_out = {"advance"} if durations.get("advance") == durations.get("size") else set()
        return ", ".join(f"{name} {in_words(ms)}" for name, ms in durations.items() if name not in left_out)

    def reads(self, topic_partition: TopicPartition, partition: int) -> bool:
        """Whether its task of a partition reads a topic-partition: a feed may have logs that the job does not read."""
        return topic_partition.partition == partition and topic_partition.topic in self.topics

    def all_final_at(self, clock_ms: int) -> int:
        """Return when all results are final that a clock has let in: the last windows of records up to it, plus grace."""
        if "size" in self.spans:
            last = clock_ms - clock_ms % self.spans.get("advance", self.spans["size"])
            end = last + self.spans["size"]
        else:
            # A session ends with its last record, a sliding window later by the difference.
            end = clock_ms + self.spans.get("difference", 0)
        return end + (self.final_after_ms or 0)

    def closes_at(self, time_ms: int) -> int:
        """Return when an entry is final, given its window's end, its buffer time or its record's time."""
        return min(time_ms + (self.final_after_ms or 0), MAX_MS)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "topics": list(self.topics)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TimedNode:
        """Return the value of a JSON form."""
        return replace(cls(**data), topics=tuple(data["topics"]))


def timings_of(supplier: object) -> Sequence[Timing]:
    """Return what a supplier declares; nothing if it declares nothing, as those of users."""
    declared = getattr(supplier, "timings", None)
    return declared() if callable(declared) else ()


def holding_nodes(nodes: Sequence[TimedNode]) -> Iterator[TimedNode]:
    """Yield the nodes that hold results back, without joins, in which records wait."""
    return (node for node in nodes if node.final_after_ms is not None and not node.is_join)
