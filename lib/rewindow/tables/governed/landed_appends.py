"""What the generations of a feed have landed, grouped as it was appended: what logs are published from, and blocks read.

The appends that a stored fold covers were published before it was stored. Of them it keeps how many there are, which of them are
the last with rows of each topic, and where each partition ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import LogSpan
from rewindow.control.ingest.landings import LandedRange
from rewindow.control.plan.job_state import LedgerRow
from rewindow.streams.record import TopicPartition
from rewindow.tables.governed.blocks import block_path
from rewindow.tables.governed.folds import KeptFold
from rewindow.tables.shared.feeds import generations

QUARANTINED = ""
"""Stands for the quarantine where topics are named."""
Due = tuple[tuple[int, Sequence[tuple[str, str]]], ...]
"""The numbers of appends that have rows, with path and attempt of each block."""


class LandedAppends(NamedTuple):
    """The definition of a generation, and its appends with landings. The first ``before`` of them are covered by a stored fold.

    ``last``: the numbers of the last covered ones with rows, by topic. ``appends`` are the bodies of the others.
    """

    definition: Mapping[str, Any]
    before: int
    last: Mapping[str, int]
    appends: list[list[Mapping[str, Any]]]

    @property
    def number(self) -> int:
        """The number of the last append with landings."""
        return self.before + len(self.appends)

    def due(self, topic: str) -> Due:
        """Return the blocks of a topic, or of the quarantine, in the appends that no stored fold covers."""
        part, named = ("quarantine", None) if topic == QUARANTINED else ("files", topic)
        every = (_files(append, part, named) for append in self.appends)
        return tuple((number, files) for number, files in enumerate(every, self.before + 1) if files)

    def last_of(self, topic: str) -> int:
        """Return the number of the last append with rows of a topic, or of the quarantine; 0 for none."""
        due = self.due(topic)
        return due[-1][0] if due else self.last.get(topic, 0)


def landed_appends(kept: KeptFold | None, later: Sequence[Sequence[LedgerRow]]) -> list[LandedAppends]:
    """Return what each generation has landed, from the stored fold of a feed, if it has one, and the appends after it."""
    stored = kept.landed["generations"] if kept else ()
    before = [LandedAppends(definition, number, last, []) for definition, number, last in stored]
    begun = before.pop() if before else None
    found = [LandedAppends(one, 0, {}, appends) for one, appends in generations(later, begun and begun.definition)]
    if begun:
        found[0] = begun._replace(appends=found[0].appends)
    return [*before, *found]


def to_store(landed: Sequence[LandedAppends], ranges: Mapping[TopicPartition, LandedRange]) -> dict[str, Any]:
    """Return what a stored fold keeps of the landings that it covers, as JSON. ``ranges``: the last of each partition."""
    made = []
    for one in landed:
        last = {topic: one.last_of(topic) for topic in (*one.definition["logs"], QUARANTINED)}
        made.append([one.definition, one.number, {topic: number for topic, number in last.items() if number}])
    ends: dict[str, dict[int, int]] = {}
    for (topic, partition), landed_range in ranges.items():
        ends.setdefault(topic, {})[partition] = landed_range.end
    return {"generations": made, "ends": ends}


def is_covered(kept: KeptFold, topic: str, partition: int, spans: Sequence[LogSpan]) -> bool:
    """Return whether landings that a stored fold covers may have some offsets of a partition."""
    end = kept.landed["ends"].get(topic, {}).get(str(partition), 0)
    return any(span.first < end for span in spans)


def _files(bodies: Sequence[Mapping[str, Any]], part: str, topic: str | None) -> list[tuple[str, str]]:
    """Return path and attempt of the blocks that landings name: of one topic, or of all."""
    return [
        (block_path(body["attempt"], staged.target, staged.path), body["attempt"])
        for body in bodies
        for one, files in body[part].items()
        if topic in (None, one)
        for staged in map(StagedFile.from_json, files)
    ]
