"""Explain why a key has no row: what the logs have of it, what became of these records, and what the result waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from rewindow.app.cli.times import known_time, show_instant
from rewindow.app.never_landed import lands_next
from rewindow.app.project import Project
from rewindow.app.why.facts import LateFacts, Missing, MissingFacts, RecordFacts
from rewindow.app.why.history import History
from rewindow.app.why.output import Output, Row
from rewindow.app.why.row import META, Candidates, Facts
from rewindow.app.why.waiting import Waits, waits_for
from rewindow.config.load import load_feed
from rewindow.engine.worker.inline import as_in_a_worker
from rewindow.engine.worker.provenance.behind import Search, Wanted
from rewindow.engine.worker.provenance.origins import Moment
from rewindow.engine.worker.provenance.reach import own_key, reaches
from rewindow.engine.worker.provenance.replay import Drop
from rewindow.streams.duration import in_words
from rewindow.streams.record import UNKNOWN, TopicPartition
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.state.stores import WINDOW


@dataclass(frozen=True)
class Asked:
    """A key of an output, and the window ``[start, end)`` if one is meant. ``partition`` is that of the key's task."""

    key: Any
    partition: int
    times: tuple[int, int] | None
    """The times that records of the window have, both inclusive."""


@dataclass
class Fate:
    """What became of the records of a key."""

    taken: Candidates = field(default_factory=dict)
    waiting: int = 0
    kept: set[tuple[str | None, int]] = field(default_factory=set)
    drops: list[Drop] = field(default_factory=list)


def explain_missing(
    project: Project, output: Output, key: Mapping[str, Sequence[Any]], rows: Sequence[Row], start_ms: int | None
) -> MissingFacts:
    """Return why a key has no row, in the window that starts at a time if there is one."""
    head = output.branch.head
    name = output.job.name
    if rows:
        return _there(output, rows[-1])
    if head is None:
        return _answer(
            output,
            Missing.NOT_RUN,
            f"{name} has no runs on branch {output.branch.name}",
            [f"Run it: `rewindow run {name}`"],
        )
    past = History(output, head)
    past.check()
    asked = [_asked(output, values, start_ms) for values in product(*key.values())]
    fates = [_fate(past, one) for one in asked]
    chosen = next((n for n, fate in enumerate(fates) if fate.taken or fate.waiting), 0)
    return _told(project, past, asked[chosen], fates[chosen])


def _there(output: Output, row: Row) -> MissingFacts:
    run = output.state.find_run(row["_run"])
    values = [value for name, value in row.items() if name not in {column.name for column in output.key_columns}]
    by = f"run {run.spec.name}" if run else "a run"
    if all(value is None for value in values[: -len(META) - 1]):
        return _answer(output, Missing.DELETED, f"the newest row of the key is a deletion, written by {by}", [])
    return _answer(
        output,
        Missing.EXISTS,
        f"there is a row of the key, written by {by}",
        ["Omit --missing to see what it was made of"],
    )


def _answer(output: Output, why: Missing, headline: str, reasons: Sequence[str], **others: Any) -> MissingFacts:
    known: dict[str, Any] = {
        "partition": 0,
        "closes_at_ms": None,
        "clock_ms": None,
        "watermark_ms": None,
        "records": [],
        "late": [],
    }
    return MissingFacts(output.table, output.job.name, output.branch.name, why, headline, reasons, **(known | others))


def _asked(output: Output, values: Sequence[Any], start_ms: int | None) -> Asked:
    traced = output.traced(0)
    shape, end_ms = traced.shapes[0], start_ms
    if start_ms is not None:
        sizes = [store.window_size_ms for store in traced.part.stores if store.kind == WINDOW]
        end_ms = start_ms + (max(sizes) if sizes else 0)
    bounds = (start_ms or 0, end_ms or 0) if output.is_windowed else ()
    key = shape.decode((*values, *bounds))
    own = own_key(key)
    partition = 0 if own is None else partition_of(own, output.job.feed.definition.partitions)
    has_end = start_ms is not None and end_ms is not None and end_ms > start_ms
    return Asked(
        key, partition, (start_ms, end_ms - 1) if has_end and start_ms is not None and end_ms is not None else None
    )


def _fate(past: History, asked: Asked) -> Fate:
    """Replay what the key's task took, and note what became of the key's records."""
    traced = past.output.traced(asked.partition)
    feed, fate = past.output.job.feed, Fate()
    if len(traced.tasks()) > 1:
        return fate
    for source in traced.part.sources:
        where = TopicPartition(source.topic, asked.partition)
        landed = feed.landings[-1].ranges.get(where) if feed.landings else None
        bounds = (0, landed.end if landed else 0)
        known = past.records.of_key(source.topic, asked.partition, own_key(asked.key), bounds, asked.times)
        end = past.end(source.topic, asked.partition)
        taken = {offset: time for offset, time in known.items() if offset < end}
        fate.waiting += len(known) - len(taken)
        if taken:
            fate.taken[source.topic, asked.partition] = taken
    if not fate.taken:
        return fate

    def wrote(moment: Moment) -> None:
        if moment.topic is not None and moment.offset in fate.taken.get((moment.topic, moment.partition), {}):
            fate.kept.add((moment.topic, moment.offset))

    latest = max(time for known in fate.taken.values() for time in known.values())
    # A search that is over from the start reads nothing but the key's records, so the clocks would not advance.
    search = Search(traced, Wanted({}, past.epochs[-1].number + 1))
    reach = (
        reaches(traced, asked.key, asked.times[0] if asked.times else latest)[0]
        if asked.times
        else reaches(traced, own_key(asked.key), 0)[-1]
    )
    with as_in_a_worker():
        traced.replay(
            past.epochs,
            past.reading(search, reach, own_key(asked.key), {}),
            lambda _sent: None,
            fate.drops.append,
            wrote,
        )
    return fate


def _told(project: Project, past: History, asked: Asked, fate: Fate) -> MissingFacts:
    output, facts = past.output, Facts(past)
    job, feed = output.job.name, output.job.feed
    watermark = feed.landings[-1].watermark_ms if feed.landings else UNKNOWN
    late = facts.late(fate.drops, fate.taken)
    records = facts.unused(fate.taken, set())
    waits = waits_for(past, asked.partition, asked.times)
    known: dict[str, Any] = {
        "partition": asked.partition,
        "watermark_ms": known_time(watermark),
        "records": records,
        "late": late,
        "closes_at_ms": waits.closes_at_ms if waits else None,
        "clock_ms": waits.clock_ms if waits else None,
    }
    where = f"task {output.traced(0).part.index}_{asked.partition}"
    if len(output.traced(0).tasks()) > 1:
        reasons = ["The key is made by a repartition, so its records are not looked for", *_open(waits, where)]
        return _answer(
            output,
            Missing.OPEN if waits and waits.is_open else Missing.WAITING,
            "there is no row yet",
            reasons,
            **known,
        )
    if not records and fate.waiting:
        waiting = f"{fate.waiting:,} {'record' if fate.waiting == 1 else 'records'}"
        headline = f"{waiting} of the key {'is' if fate.waiting == 1 else 'are'} landed, but no run has taken {'it' if fate.waiting == 1 else 'them'}"
        return _answer(
            output, Missing.NOT_TAKEN, headline, [f"Run the job: `rewindow run {job}`", *_open(waits, where)], **known
        )
    if not records:
        return _answer(output, Missing.NEVER_LANDED, *_never_landed(project, past, asked, watermark), **known)
    if len(late) == len(records):
        reasons = [_dropped(one) for one in late]
        return _answer(output, Missing.DROPPED, "all records of the key were dropped", reasons, **known)
    if not fate.kept and (past.output.traced(0).part.stores):
        reasons = [*_let_go(records, late), *(_dropped(one) for one in late)]
        return _answer(output, Missing.LET_GO, "no record of the key has reached a store", reasons, **known)
    if waits and waits.is_open:
        return _answer(
            output,
            Missing.OPEN,
            f"the window is open until {show_instant(waits.closes_at_ms)}",
            [*_open(waits, where), *(_dropped(one) for one in late)],
            **known,
        )
    reasons = ["The stores have records of the key, but the job has sent no result of them", *_open(waits, where)]
    return _answer(output, Missing.WAITING, "there is no row yet", reasons, **known)


def _open(waits: Waits | None, where: str) -> Iterable[str]:
    if waits is not None:
        clock = "unknown" if waits.clock_ms is None else show_instant(waits.clock_ms)
        if waits.is_open:
            yield f"The clock of {waits.node} in {where} is {clock}"
            yield waits.why
        else:
            yield f"The window closed at {show_instant(waits.closes_at_ms)}: the clock of {waits.node} in {where} is {clock}"


def _never_landed(project: Project, past: History, asked: Asked, watermark: int) -> tuple[str, list[str]]:
    output = past.output
    feed, partition = output.job.feed, asked.partition
    name = feed.definition.feed
    where = "" if asked.times is None else f" from {show_instant(asked.times[0])} to {show_instant(asked.times[1])}"
    reasons = [
        f"Looked in partition {partition} of {', '.join(sorted(output.traced(0).external))}, {len(feed.landings)} landings"
    ]
    if watermark >= 0:
        reasons.append(
            f"Feed {name} is complete through {show_instant(watermark)}: an earlier record that comes now is out of order"
        )
    refused = sum((landing.counts or {}).get("quarantined", 0) for landing in feed.landings)
    if refused:
        reasons.append(
            f"{refused:,} rows of the feed are in the quarantine (table rewindow/quarantine): the record may be one of them"
        )
    following = lands_next(load_feed(project.root, name), project_root=str(project.root), warehouse=project.warehouse)
    reasons.append(f"A new record comes with the next landing: `rewindow land {name}`{following}")
    return f"no record of the key{where} was ever landed", reasons


def _let_go(records: Sequence[RecordFacts], late: Sequence[LateFacts]) -> Iterable[str]:
    count = len(records) - len(late)
    yield f"A condition or function of the job let {count:,} {'record' if count == 1 else 'records'} go: see the filters in `rewindow explain`"


def _dropped(one: LateFacts) -> str:
    at = one.record
    return (
        f"{at.topic}-{at.partition} offset {at.offset} ({show_instant(at.timestamp_ms)}) was dropped by {one.node}: {one.reason}, "
        f"{in_words(one.behind_ms)} behind its clock"
    )
