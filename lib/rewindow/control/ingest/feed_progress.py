"""The progress of a feed: its landing ledger folded into the state from which the next landing continues. Pure.

The body of a LANDING row is the JSON form of `Landing` plus these fields: ``time`` (landing time, epoch ms), ``attempt``,
``files`` and ``quarantine`` (manifests by topic), ``positions`` (by topic, how far the source is landed; topics without a
change are omitted), and ``flat`` (by topic, the columns with only nulls or only one value).

The body of a GENERATION row is the definition plus ``declared`` (the settings that ``fingerprint`` covers) and ``sources`` (by
topic, the schema with which to read the source). If landings are kept, it also has ``positions``. A NOTE row records that an
``attempt`` landed nothing.

The progress is also stored as text, so that commands need not fold the ledger rows again (ADR-127). The text is only a cache;
if it differs, the ledger rows count. A landing is decoded from its line on first use.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rewindow.contracts.ingest import DAY_GRID, GRID_OF_1970, FeedSpec
from rewindow.contracts.staged_files import StagedFile
from rewindow.control.ingest.landings import (
    GENERATION,
    LANDING,
    PLAN,
    Delivery,
    Feed,
    HeldFile,
    LandedRange,
    Landing,
    definition_as_json,
    definition_from_json,
    fold_feed,
)
from rewindow.control.plan.job_fold import NOTE
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.sequence import History, MadeWhenUsed
from rewindow.control.plan.spec import Attempt
from rewindow.control.plan.stored_rows import known_part
from rewindow.streams.record import UNKNOWN, TopicPartition

if TYPE_CHECKING:
    from rewindow.contracts.landing_protocol import Block
    from rewindow.control.plan.job_state import LedgerRow


@dataclass(frozen=True, slots=True)
class Made:
    """What one generation has landed: the bodies of its GENERATION row and of its LANDING rows.

    ``bodies`` leaves out the kept landings, and landings that are in the stored progress. ``through`` is the number of the last
    landing that is left out. ``refused``: how many of the landings that are left out have quarantined rows.
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
    """Return what each generation has landed. With ``is_whole``, also read the ledger rows that the stored progress covers."""
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
    """Return the feed from the text of `feed_lines`; None before the first generation.

    ``ledger``: the token of the first row.
    """
    data = json.loads(lines[0])
    if data["definition"] is None:
        return None
    landings = StoredLandings(lines[3:], data["ends"])
    return Feed(definition_from_json(data["definition"]), History(head=landings), ledger)


def feed_lines(feed: Feed | None, made: Sequence[Made], progress: Mapping[str, Any]) -> list[str]:
    """Return a feed as text: its definition, its progress, what each generation has landed, and one line per landing."""
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


ENOUGH = 100
"""The least number of records in a landing that shows which columns are flat. Fewer records may be equal by chance."""
Flat = Mapping[str, str | None]
"""Maps each flat column (a column with only one value or only nulls) to this value as text, or to None for nulls."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The state from which the next landing continues, after ledger row ``seq`` and landing ``number``.

    ``positions`` maps each topic to how far its source is landed, ``through_ms`` is the end of the last landed interval.
    ``held`` are the files with unreleased records. ``unfinished`` are the attempts that planned and may still land.
    """

    seq: int = 0
    number: int = 0
    feed: Feed | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    positions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    through_ms: int | None = None
    watermark_ms: int = UNKNOWN
    ranges: Mapping[TopicPartition, LandedRange] = field(default_factory=dict)
    deliveries: Mapping[TopicPartition, Delivery] = field(default_factory=dict)
    """The last delivery of each topic-partition, also of removed logs. A landing waits only for present logs (`waiting_for`)."""
    held: Mapping[TopicPartition, tuple[HeldFile, ...]] = field(default_factory=dict)
    unfinished: tuple[Attempt, ...] = ()
    dead: frozenset[str] = frozenset()
    """Attempts that planned and can no longer land, because a later row replaced their plan, or because they gave up."""
    topics: tuple[str, ...] = ()
    """The topics that any generation landed. Logs with source offsets are left out, because they are read from their source
    tables."""
    flat: Mapping[str, Flat] = field(default_factory=dict)
    """Maps each topic to its flat columns in the last landing that had enough records."""

    def held_paths(self, topic: str) -> frozenset[str]:
        """Return the paths of a log's files with unreleased records. The next landing may open these files."""
        return frozenset(file.path for files in self.held.values() for file in files if file.topic == topic)

    def waiting_for(self, topics: Collection[str]) -> Progress:
        """Return this progress for a feed with these logs only."""
        # Nothing more comes from logs that a generation has removed or renamed, so the watermark does not wait for them.
        # Their landed ranges stay, because a log that comes back continues with the next offset.
        return replace(self, deliveries={tp: last for tp, last in self.deliveries.items() if tp.topic in topics})

    @property
    def generation(self) -> int:
        """The number of the current generation; 0 before the first."""
        return self.feed.definition.generation if self.feed else 0


def with_landed_grid(feed: FeedSpec, progress: Progress) -> FeedSpec:
    """Return the feed with the rule of intervals (`landed_grid`) that the next landing must use."""
    return replace(feed, grid=landed_grid(progress))


def landed_grid(progress: Progress) -> str:
    """Return the rule by which the last landing's interval was computed (`FeedSpec.grid`).

    The next interval must use it, too.
    """
    if progress.feed is None or not progress.number:
        return DAY_GRID
    return progress.feed.landings[progress.number - 1].grid or GRID_OF_1970


def fold_progress(rows: Sequence[LedgerRow], keep: int | None = None) -> Progress:
    """Fold a feed's landing ledger. With ``keep``, fold it as if a new generation had kept that many landings.

    Raises `InvariantError` (70) for an inconsistent ledger.
    """
    stored, later = known_part(rows)
    # A new generation drops landings. The stored progress includes them, so all rows must be folded.
    if stored is not None and keep is None and all(row.kind != GENERATION for row in later):
        return _continued(_progress_of(stored.lines, stored.token), later)
    generation: Mapping[str, Any] = next((row.body for row in reversed(rows) if row.kind == GENERATION), {})
    bodies = landing_bodies(rows)
    feed = fold_feed((row.kind, row.body) for row in rows)
    rebased = generation.get("positions", {}) if keep is None else {}
    if keep is not None:
        bodies = bodies[:keep]
    kept = generation.get("kept", 0) if keep is None else keep
    last = bodies[-1] if bodies else None
    ranges = _landed_ranges(last) if last else {}
    return Progress(
        seq=rows[-1].seq if rows else 0,
        number=len(bodies),
        feed=feed,
        declared=generation.get("declared", {}),
        sources=generation.get("sources", {}),
        positions=_positions(bodies, kept, rebased),
        through_ms=_through(bodies),
        watermark_ms=last["watermark"] if last else UNKNOWN,
        ranges=ranges,
        deliveries=_deliveries(bodies),
        held=_held_files(bodies, ranges, {}),
        unfinished=(unfinished := _unfinished((), rows)),
        dead=_dead(Progress(), rows, unfinished),
        topics=_topics(rows),
        flat=_flat_now(last),
    )


def landing_bodies(rows: Iterable[LedgerRow]) -> list[Mapping[str, Any]]:
    """Return the bodies of the LANDING rows of a feed's present generation, including its kept landings."""
    bodies: list[Mapping[str, Any]] = []
    for row in rows:
        if row.kind == GENERATION:
            bodies = bodies[: row.body["kept"]]
        elif row.kind == LANDING:
            bodies.append(row.body)
    return bodies


def progress_lines(rows: Sequence[LedgerRow]) -> list[str]:
    """Fold rows of a landing ledger into the feed's progress, and return the progress as lines of text for `fold_progress`."""
    progress = fold_progress(rows)
    data = {
        "seq": progress.seq,
        "number": progress.number,
        "declared": progress.declared,
        "sources": progress.sources,
        "positions": progress.positions,
        "through": progress.through_ms,
        "watermark": progress.watermark_ms,
        "ranges": [[*tp, *landed.as_list()] for tp, landed in sorted(progress.ranges.items())],
        "deliveries": deliveries_data(progress.deliveries),
        "held": held_data(progress.held),
        "unfinished": attempts_data(progress.unfinished),
        "dead": sorted(progress.dead),
        "topics": progress.topics,
        "flat": progress.flat,
    }
    return feed_lines(progress.feed, made_by(rows), data)


def flat_columns(blocks: Sequence[Block], before: Flat | None) -> Flat | None:
    """Return the flat columns (with only nulls or one value) of a topic after one more landing.

    ``before``: the flat columns as of the landing before, None if unknown. It is the result if this landing has too few
    records.
    """
    filled = [block for block in blocks if block.end > block.start]
    rows = sum(block.end - block.start for block in filled)
    if not filled or any(block.flat is None for block in filled) or (before is not None and rows < ENOUGH):
        return before
    first, *others = (block.flat or {} for block in filled)
    return {
        name: value for name, value in first.items() if all(name in other and other[name] == value for other in others)
    }


def held_file(topic: str, file: StagedFile) -> HeldFile:
    """Return a landed file as a `HeldFile`."""
    smallest, largest = file.stats["minValues"], file.stats["maxValues"]
    return HeldFile(topic, file.path, smallest["offset"], largest["offset"] + 1, largest["timestamp"])


def held_range(tp: TopicPartition, landed: LandedRange) -> HeldFile:
    """Return a landed range of a log with source offsets as a `HeldFile` without a path."""
    return HeldFile(tp.topic, "", landed.start, landed.end, landed.max_timestamp, tp.partition, landed.base)


def _continued(before: Progress, later: Sequence[LedgerRow]) -> Progress:
    """Return the progress after more rows, none of which is a GENERATION row."""
    bodies = [row.body for row in later if row.kind == LANDING]
    last = bodies[-1] if bodies else None
    ranges = _landed_ranges(last) if last else before.ranges
    positions = dict(before.positions)
    for body in bodies:
        for topic, position in body["positions"].items():
            positions[topic] = _merge_position(positions.get(topic), position)
    ends = [end for end in (before.through_ms, _through(bodies)) if end is not None]
    return replace(
        before,
        seq=later[-1].seq if later else before.seq,
        number=before.number + len(bodies),
        feed=fold_feed(((row.kind, row.body) for row in later), before.feed),
        positions=positions,
        through_ms=max(ends, default=None),
        watermark_ms=last["watermark"] if last else before.watermark_ms,
        ranges=ranges,
        deliveries={**before.deliveries, **_deliveries(bodies)},
        held=_held_files(bodies, ranges, before.held),
        unfinished=(unfinished := _unfinished(before.unfinished, later)),
        dead=_dead(before, later, unfinished),
        flat=_flat_now(last) if last else before.flat,
    )


def _progress_of(lines: Sequence[str], ledger: str) -> Progress:
    """Return the progress from the text of `progress_lines`.

    Its mappings are new, because `_merge_position` changes them in place.
    """
    data = json.loads(lines[1])
    feed = feed_of(lines, ledger)
    return Progress(
        seq=data["seq"],
        number=data["number"],
        feed=replace(feed, ledger="") if feed else None,
        declared=data["declared"],
        sources=data["sources"],
        positions=data["positions"],
        through_ms=data["through"],
        watermark_ms=data["watermark"],
        ranges=_landed_ranges(data),
        deliveries=deliveries_of(data["deliveries"]),
        held=held_of(data["held"]),
        unfinished=tuple(Attempt(**attempt) for attempt in data["unfinished"]),
        dead=frozenset(data["dead"]),
        topics=tuple(data["topics"]),
        flat=data["flat"],
    )


def _unfinished(before: Sequence[Attempt], rows: Sequence[LedgerRow]) -> tuple[Attempt, ...]:
    """Return the planned attempts that may still land: nothing landed after their PLAN row, and no NOTE row ended them."""
    unfinished = list(before)
    for row in rows:
        if row.kind == PLAN:
            unfinished.append(Attempt(**row.body["attempt"]))
        elif row.kind in (GENERATION, LANDING):
            unfinished = []
        elif row.kind == NOTE:
            unfinished = [attempt for attempt in unfinished if attempt.id != row.body["attempt"]]
    return tuple(unfinished)


def _dead(before: Progress, rows: Sequence[LedgerRow], unfinished: Iterable[Attempt]) -> frozenset[str]:
    planned = {row.body["attempt"]["id"] for row in rows if row.kind == PLAN}
    landed = {row.body["attempt"] for row in rows if row.kind == LANDING and "attempt" in row.body}
    planned_before = before.dead | planned | {attempt.id for attempt in before.unfinished}
    return planned_before - landed - {attempt.id for attempt in unfinished}


def _topics(rows: Sequence[LedgerRow]) -> tuple[str, ...]:
    bodies = [row.body for row in rows if row.kind == GENERATION]
    return tuple(
        sorted({topic for body in bodies for topic in body["logs"] if topic not in body.get("source_offsets", ())})
    )


def _through(bodies: Iterable[Mapping[str, Any]]) -> int | None:
    return max((body["interval"][1] for body in bodies if body["interval"]), default=None)


def _merge_position(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the position after a landing: for files, all files ever landed; otherwise the newest position.

    ``before`` must be a result of this function, because its ``files`` are extended in place.
    """
    if "files" not in now:
        return now
    # The earlier position lists no files if an earlier generation read this source as a table.
    files = {} if before is None else before.get("files", {})
    # The update is in place, because a copy for each landing would take time quadratic in the number of landings.
    files.update(now["files"])
    return {**now, "files": files}


def _positions(
    bodies: Sequence[Mapping[str, Any]], kept: int, rebased: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    positions: dict[str, Mapping[str, Any]] = {}
    for index, body in enumerate(bodies):
        if index == kept:
            positions.update(_own(rebased))
        for topic, position in body["positions"].items():
            positions[topic] = _merge_position(positions.get(topic), position)
    if len(bodies) <= kept:
        positions.update(_own(rebased))
    return positions


def _own(positions: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {topic: _merge_position(None, position) for topic, position in positions.items()}


def _deliveries(bodies: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, Delivery]:
    deliveries: dict[TopicPartition, Delivery] = {}
    for body in bodies:
        for tp, landed in _landed_ranges(body).items():
            if landed.end > landed.start:
                deliveries[tp] = Delivery(landed.max_timestamp, body["time"])
    return deliveries


def _flat_now(body: Mapping[str, Any] | None) -> dict[str, Flat]:
    """Return the flat columns of each topic that a landing's ledger row records."""
    return dict(body.get("flat", {})) if body else {}


def _landed_ranges(body: Mapping[str, Any]) -> dict[TopicPartition, LandedRange]:
    """Return the range of each topic-partition in the body of a LANDING row."""
    return {TopicPartition(r[0], r[1]): LandedRange(*r[2:]) for r in body["ranges"]}


def _held_files(
    bodies: Sequence[Mapping[str, Any]],
    ranges: Mapping[TopicPartition, LandedRange],
    before: Mapping[TopicPartition, Sequence[HeldFile]],
) -> dict[TopicPartition, tuple[HeldFile, ...]]:
    """Return the files with unreleased records, by topic-partition, after some landings.

    ``bodies``: the bodies of their consecutive LANDING rows. ``ranges``: the ranges of the last of these landings. ``before``:
    the files with unreleased records before them. No other earlier file has unreleased records.
    """
    # Unreleased records are in the last few landings, so the search goes backwards and can end early.
    missing = {tp for tp, landed in ranges.items() if landed.release < landed.end}
    held: dict[TopicPartition, list[HeldFile]] = {tp: [] for tp in ranges if tp in missing}
    for body in reversed(bodies):
        if not missing:
            break
        for tp, landed in _landed_ranges(body).items():
            if tp in missing and tp.topic not in body["files"] and landed.end > landed.start:
                held[tp].append(held_range(tp, landed))
                if landed.start <= ranges[tp].release:
                    missing.discard(tp)
        for topic, files in body["files"].items():
            for data in files:
                tp = TopicPartition(topic, data["partition"])
                if tp not in held:
                    continue
                file = held_file(topic, StagedFile.from_json(data))
                if file.end > ranges[tp].release:
                    held[tp].append(file)
                if file.start <= ranges[tp].release:
                    missing.discard(tp)
    for tp in sorted(missing):
        held[tp] += [file for file in before.get(tp, ()) if file.end > ranges[tp].release]
    return {tp: tuple(sorted(files, key=lambda file: file.start)) for tp, files in held.items()}
