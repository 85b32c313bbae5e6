"""Convert a feed's progress to text and back, so that the ledger rows need not be folded again (ADR-127). Pure.

The ledger rows decide; the text is only a cache of the progress into which they fold. A landing is decoded from its line on first
use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from rewindow.control.ingest.feed_definition import definition_as_json, definition_from_json
from rewindow.control.ingest.landings import GENERATION, LANDING, Feed, Landing
from rewindow.control.ingest.watermarks import Delivery, HeldFile
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.sequence import History, MadeWhenUsed
from rewindow.control.plan.spec import Attempt
from rewindow.control.plan.stored_rows import known_part
from rewindow.streams.record import TopicPartition


@dataclass(frozen=True, slots=True)
class Made:
    """What a generation has landed: the bodies of its GENERATION row and of its LANDING rows.

    ``bodies`` lacks the kept landings, and the landings that a stored fold covers. ``through``: the number of the last landing
    that ``bodies`` lacks. ``refused``: how many of the generation's landings that ``bodies`` lacks have quarantined rows.
    """

    generation: Mapping[str, Any]
    through: int
    refused: int
    bodies: list[Mapping[str, Any]]


class StoredLandings(MadeWhenUsed[Landing]):
    """The landings of a stored feed. Each is decoded from its line on first use."""

    def __init__(self, lines: Sequence[str], ends: Sequence[int | None]) -> None:
        """``lines``: one for each landing. ``ends``: see `interval_ends`."""
        self._lines, self.ends = lines, ends
        self._made: dict[int, Landing] = {}

    def __len__(self) -> int:
        """Return the number of landings."""
        return len(self._lines)

    def at(self, position: int) -> Landing:
        """See `MadeWhenUsed`."""
        if position not in self._made:
            self._made[position] = Landing.from_json(json.loads(self._lines[position]))
        return self._made[position]


def interval_ends(feed: Feed) -> Iterator[int | None]:
    """Yield the end (epoch ms) of the interval of arrival of each landing; None for a landing without an interval."""
    head = feed.landings.head
    before = len(head) if isinstance(head, StoredLandings) else 0
    if isinstance(head, StoredLandings):
        yield from head.ends
    for index in range(before, len(feed.landings)):
        interval = feed.landings[index].interval
        yield interval[1] if interval else None


def made_by(rows: Sequence[LedgerRow], *, is_whole: bool = False) -> list[Made]:
    """Return what each generation has landed. With ``is_whole``, also read the bodies of rows that a stored fold covers."""
    stored, later = known_part(rows)
    made: list[Made] = []
    if stored is not None and not is_whole:
        made = [Made(generation, through, refused, []) for generation, through, refused in json.loads(stored.lines[2])]
    for row in rows if is_whole else later:
        if row.kind == GENERATION:
            made.append(Made(row.body, row.body["kept"], 0, []))
        elif row.kind == LANDING and made:
            made[-1].bodies.append(row.body)
    return made


def feed_of(lines: Sequence[str], ledger: str) -> Feed | None:
    """Return the feed that `feed_lines` converted; None before the first generation. ``ledger`` is the first row's token."""
    data = json.loads(lines[0])
    if data["definition"] is None:
        return None
    landings = StoredLandings(lines[3:], data["ends"])
    return Feed(definition_from_json(data["definition"]), History(head=landings), ledger)


def feed_lines(feed: Feed | None, made: Sequence[Made], progress: Mapping[str, Any]) -> list[str]:
    """Return a feed as lines: its definition, its progress, what each generation has landed, and a line for each landing."""
    data = {
        "definition": definition_as_json(feed.definition) if feed else None,
        "ends": [*interval_ends(feed)] if feed else [],
    }
    of = [
        [
            item.generation,
            max((body["landing"] for body in item.bodies), default=item.through),
            item.refused + sum(1 for body in item.bodies if body.get("quarantine")),
        ]
        for item in made
    ]
    landings = [landing.as_json() for landing in feed.landings] if feed else []
    return [json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in (data, progress, of, *landings)]


def deliveries_data(deliveries: Mapping[TopicPartition, Delivery]) -> list[list[Any]]:
    """Return the last delivery of each topic-partition as JSON values."""
    return [[*tp, *astuple(delivery)] for tp, delivery in sorted(deliveries.items())]


def deliveries_of(data: Sequence[Sequence[Any]]) -> dict[TopicPartition, Delivery]:
    """Return the deliveries that `deliveries_data` converted."""
    return {TopicPartition(*delivery[:2]): Delivery(*delivery[2:]) for delivery in data}


def held_data(held: Mapping[TopicPartition, Sequence[HeldFile]]) -> list[list[Any]]:
    """Return the files with unreleased records as JSON values."""
    return [[*tp, [astuple(file) for file in files]] for tp, files in sorted(held.items())]


def held_of(data: Sequence[Sequence[Any]]) -> dict[TopicPartition, tuple[HeldFile, ...]]:
    """Return the files that `held_data` converted."""
    return {TopicPartition(*held[:2]): tuple(HeldFile(*file) for file in held[2]) for held in data}


def attempts_data(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Return attempts as JSON values."""
    return [asdict(attempt) for attempt in attempts]
