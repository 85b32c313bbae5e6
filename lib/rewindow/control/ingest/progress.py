"""How far a feed has landed: its landing ledger folded into what the next landing goes on from. Pure.

The body of a LANDING row is that of `Landing` and, beside it, ``time`` (landing time), ``attempt``, ``files`` and
``quarantine`` (manifests by topic) and ``positions`` (by topic: where its source is landed through; what is not named
is as before). That of a GENERATION row is its definition and ``declared`` (the configuration that ``fingerprint`` is of),
``sources`` (by topic: the schema under which the source is read) and, with landings kept, ``positions``. A NOTE says
that an ``attempt`` found nothing to land.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewindow.contracts.staged_files import StagedFile
from rewindow.control.ingest.landings import GENERATION, LANDING, PLAN, Feed, LandedRange, fold_feed
from rewindow.control.ingest.watermarks import Delivery, HeldFile
from rewindow.control.plan.branches import LedgerRow
from rewindow.control.plan.ledger_state import NOTE
from rewindow.control.plan.spec import Attempt
from rewindow.streams.record import UNKNOWN, TopicPartition


@dataclass(frozen=True, slots=True)
class Progress:
    """What the next landing goes on from: ledger row ``seq`` and landing ``number`` are the last there are.

    ``positions`` says by topic where its source is landed through, ``through_ms`` the end of the last landed interval.
    ``held`` are the files with records that are not released. ``unfinished``: attempts that planned and did not land.
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
    held: Mapping[TopicPartition, tuple[HeldFile, ...]] = field(default_factory=dict)
    unfinished: tuple[Attempt, ...] = ()

    @property
    def generation(self) -> int:
        """The number of the current generation; 0 before the first."""
        return self.feed.definition.generation if self.feed else 0


def fold_progress(rows: Sequence[LedgerRow], keep: int | None = None) -> Progress:
    """Return what a feed's landing ledger says; with ``keep`` as if a new generation had kept so many landings.

    Raises `InvariantError` (70) for a ledger that does not fit together.
    """
    generation: Mapping[str, Any] = {}
    bodies: list[Mapping[str, Any]] = []
    unfinished: list[Attempt] = []
    for row in rows:
        if row.kind == PLAN:
            unfinished.append(Attempt(**row.body["attempt"]))
        elif row.kind == GENERATION:
            generation, unfinished = row.body, []
            bodies = bodies[: generation["kept"]]
        elif row.kind == LANDING:
            bodies.append(row.body)
            unfinished = []
        elif row.kind == NOTE:
            unfinished = [attempt for attempt in unfinished if attempt.id != row.body["attempt"]]
    feed = fold_feed((row.kind, row.body) for row in rows)
    rebased = generation.get("positions", {}) if keep is None else {}
    if keep is not None:
        bodies = bodies[:keep]
    kept = generation.get("kept", 0) if keep is None else keep
    last = bodies[-1] if bodies else None
    ranges = _ranges(last) if last else {}
    return Progress(
        seq=rows[-1].seq if rows else 0,
        number=len(bodies),
        feed=feed,
        declared=generation.get("declared", {}),
        sources=generation.get("sources", {}),
        positions=_positions(bodies, kept, rebased),
        through_ms=max((body["interval"][1] for body in bodies if body["interval"]), default=None),
        watermark_ms=last["watermark"] if last else UNKNOWN,
        ranges=ranges,
        deliveries=_deliveries(bodies),
        held=_held(bodies, ranges),
        unfinished=tuple(unfinished),
    )


def merge_position(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the position after a landing: of files all that were ever landed, of anything else the newest."""
    if before is None or "files" not in now:
        return now
    return {**now, "files": {**before["files"], **now["files"]}}


def held_file(topic: str, file: StagedFile) -> HeldFile:
    """Return a landed file as the release of its records sees it."""
    smallest, largest = file.stats["minValues"], file.stats["maxValues"]
    return HeldFile(topic, file.path, smallest["offset"], largest["offset"] + 1, largest["timestamp"])


def held_range(where: TopicPartition, landed: LandedRange) -> HeldFile:
    """Return what a landing added to a log that is a table as it is; no more is known of its timestamps."""
    return HeldFile(where.topic, "", landed.start, landed.end, landed.max_timestamp, where.partition, landed.base)


def _positions(
    bodies: Sequence[Mapping[str, Any]], kept: int, rebased: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    positions: dict[str, Mapping[str, Any]] = {}
    for index, body in enumerate(bodies):
        if index == kept:
            positions.update(rebased)
        for topic, position in body["positions"].items():
            positions[topic] = merge_position(positions.get(topic), position)
    if len(bodies) <= kept:
        positions.update(rebased)
    return positions


def _ranges(body: Mapping[str, Any]) -> dict[TopicPartition, LandedRange]:
    return {TopicPartition(r[0], r[1]): LandedRange(*r[2:]) for r in body["ranges"]}


def _deliveries(bodies: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, Delivery]:
    found: dict[TopicPartition, Delivery] = {}
    for body in bodies:
        for where, landed in _ranges(body).items():
            if landed.end > landed.start:
                found[where] = Delivery(landed.max_timestamp, body["time"])
    return found


def _held(
    bodies: Sequence[Mapping[str, Any]], ranges: Mapping[TopicPartition, LandedRange]
) -> dict[TopicPartition, tuple[HeldFile, ...]]:
    """Return the files that hold records back, looked for from the last landing backwards: there are few of them."""
    missing = {where: landed.release for where, landed in ranges.items() if landed.release < landed.end}
    found: dict[TopicPartition, list[HeldFile]] = {where: [] for where in missing}
    for body in reversed(bodies):
        if not missing:
            break
        for where, landed in _ranges(body).items():
            if where in missing and where.topic not in body["files"] and landed.end > landed.start:
                found[where].append(held_range(where, landed))
                if landed.start <= ranges[where].release:
                    missing.pop(where)
        for topic, files in body["files"].items():
            for data in files:
                where = TopicPartition(topic, data["partition"])
                if where not in found:
                    continue
                file = held_file(topic, StagedFile.from_json(data))
                if file.end > ranges[where].release:
                    found[where].append(file)
                if file.start <= ranges[where].release:
                    missing.pop(where, None)
    return {where: tuple(sorted(files, key=lambda file: file.start)) for where, files in found.items()}
