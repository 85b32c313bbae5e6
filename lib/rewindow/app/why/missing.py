"""Explain why a key has no row: its records in the logs, their outcomes, and what its result waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewindow.app.never_landed import lands_next
from rewindow.app.open_project import OpenProject
from rewindow.app.why.asked import Asked, ask, contains, not_looked_for
from rewindow.app.why.facts import LateFacts, Missing, MissingFacts, OpenFacts, RecordFacts, no_answer
from rewindow.app.why.history import History
from rewindow.app.why.output import Output, Row
from rewindow.app.why.quarantined import dropped_by_runs, quarantined
from rewindow.app.why.record_outcomes import Fate, among, as_reached, fate_of
from rewindow.app.why.row import META, Facts
from rewindow.app.why.waiting import (
    Waits,
    clock_sentences,
    held_sentences,
    open_headline,
    open_sentences,
    partner_sentences,
)
from rewindow.app.why.windows import AskedTime, of_window, start_column, told_sessions, windowed_node, windows_of
from rewindow.config.feed import FeedConfig, feed_spec
from rewindow.config.load import load_feed
from rewindow.contracts.instants import instant
from rewindow.control.health.feed_health import waiting_later
from rewindow.control.health.job_health import describe_holds
from rewindow.control.health.lost_records import inner_joins
from rewindow.control.health.phrases import command_words, counted
from rewindow.control.ingest.feed_progress import fold_progress, with_landed_grid
from rewindow.control.plan.spec import MAIN, OUTPUT
from rewindow.streams.duration import in_words
from rewindow.streams.record import UNKNOWN, Window, known_time
from rewindow.streams.topology import describe_supplier
from rewindow.streams.windows.session_sliding import SessionWindows
from rewindow.streams.windows.time import GridWindows
from rewindow.tables.shared.ledger import now_ms


def explain_missing(
    project: OpenProject, output: Output, key: Mapping[str, Sequence[Any]], rows: Sequence[Row], at: AskedTime | None
) -> MissingFacts:
    """Return why a key has no row, in the window that contains a time if one is given; ``rows`` are those of the key.

    Without a time, a key with rows may have windows that are still open.

    Raises `UsageError` (2) if several windows contain the time.

    Raises `SourceError` (66) if the feed lacks the landings of the last run, and `DataError` (65) if the job's code fails.
    """
    start_ms = None if at is None else at.start(rows)
    found = of_window(output, rows, start_ms)
    may_be_open = at is None and output.is_windowed and output.branch.head is not None
    told = (
        _there(output, found[-1]) if found and not may_be_open else _absent(project, output, key, start_ms, at, found)
    )
    return told if at is None else replace(told, asked_ms=at.time_ms)


def _absent(
    project: OpenProject,
    output: Output,
    key: Mapping[str, Sequence[Any]],
    start_ms: int | None,
    at: AskedTime | None,
    found: Sequence[Row],
) -> MissingFacts:
    head, name = output.branch.head, output.job.name
    if head is None:
        headline = f"{name} has no runs on branch {output.branch.name}"
        command = command_words(name, output.branch.name)
        return no_answer(output, Missing.NOT_RUN, headline, [f"Run it: `rewindow run {command}`"])
    past = History(output, head)
    past.check()
    asked = ask(past, key, start_ms, at)
    fate = Fate()
    if asked.still_open or not found:
        fate = fate_of(past, asked)
        asked = as_reached(past, asked, fate, start_ms)
    windows = _open(past, asked, fate, found)
    if found and not windows:
        there = _there(output, found[-1])
        return replace(there, reasons=[*there.reasons, *_nothing_open(output, asked)])
    if at is not None and asked.window is None and asked.sessions:
        told = _in_no_session(past, asked, fate, at)
    else:
        told = _told(project, past, asked, fate, windows)
    if found:
        newest = _there(output, found[-1])
        told = replace(told, reasons=[*told.reasons, f"Of another window {newest.headline}: omit --missing to see it"])
    for hold in describe_holds(output.state, output.branch.name)[:1]:
        reason = (
            f"Run {hold['run']} is on hold: neither its rows nor those of later runs are published. `{hold['accept']}`"
        )
        return replace(told, reasons=[reason, *told.reasons])
    return told


def _open(past: History, asked: Asked, fate: Fate, found: Sequence[Row]) -> list[OpenFacts]:
    """Return the open windows of the key without a row, with how many of their records reached it."""
    times = among(asked.taken, fate.in_windows)
    column, windows = start_column(past.output), windows_of(past.output)
    written = {row[column or ""] for row in found}
    counts = [
        (one, sum(contains(one, time, windows) for time in times))
        for one in asked.still_open or ()
        if one.start_ms not in written
    ]
    held = asked.holding
    closing = {one: held.closes_at(one) for one, _ in counts} if held is not None else {}
    return [
        OpenFacts(one.start_ms, one.end_ms, closes_at, count)
        for one, count in counts
        if count and (closes_at := closing.get(one)) is not None
    ]


def _nothing_open(output: Output, asked: Asked) -> Iterator[str]:
    if asked.still_open is not None:
        yield "No other window of the key is open"
    if asked.waiting:
        yield _not_taken(output, asked.waiting)


def _there(output: Output, row: Row) -> MissingFacts:
    run = output.state.find_run(row["_run"])
    by = f"run {run.spec.name}" if run else "a run"
    others = {*(column.name for column in output.key_columns), *META, "_timestamp"}
    column = start_column(output)
    start_ms = row[column] if column else None
    if all(value is None for name, value in row.items() if name not in others):
        headline = f"the newest row of the key is a deletion, written by {by}"
        return no_answer(output, Missing.DELETED, headline, [], window_start_ms=start_ms)
    headline = f"there is a row of the key, written by {by}"
    return no_answer(
        output, Missing.EXISTS, headline, ["Omit --missing to see what it was made of"], window_start_ms=start_ms
    )


def _in_no_session(past: History, asked: Asked, fate: Fate, at: AskedTime) -> MissingFacts:
    """Return why no session contains a time that is between records of which others did not reach the windows."""
    facts, windows = Facts(past), windows_of(past.output)
    near = facts.unused(asked.taken, set())
    left = [one for one in near if not any(contains(made, one.timestamp_ms, windows) for made in asked.sessions)]
    wheres = {(one.topic, one.offset) for one in left}
    late = [
        one
        for one in facts.late(fate.missed(asked.spans), asked.taken)
        if (one.record.topic, one.record.offset) in wheres
    ]
    made = told_sessions(asked.sessions, "its other records near it make", at.time_ms)
    return no_answer(
        past.output,
        Missing.DROPPED if left and len(late) == len(left) else Missing.LET_GO,
        f"no session of the key contains {instant(at.time_ms)}",
        [made, *_left_out(past.output, left, fate, late), *map(_dropped, late)],
        partition=asked.partition,
        records=left,
        late=late,
    )


def _told(project: OpenProject, past: History, asked: Asked, fate: Fate, windows: Sequence[OpenFacts]) -> MissingFacts:
    output, facts = past.output, Facts(past)
    landings, is_on_hold = output.job.feed.landings, bool(output.state.on_hold(output.branch.name))
    late = facts.late(fate.missed(asked.spans), asked.taken)
    records = facts.unused(asked.taken, set())  # of all open windows
    is_session = isinstance(windows_of(output), SessionWindows)
    newest = asked.still_open[-1] if asked.still_open else asked.window
    first = Window(windows[0].start_ms, windows[0].end_ms, is_session) if windows else newest
    waits = asked.holding.waits(first) if asked.holding is not None else None
    shown = [one for one in records if first is None or contains(first, one.timestamp_ms, windows_of(output))]
    known: dict[str, Any] = {
        "partition": asked.partition,
        "window_start_ms": first.start_ms if first else None,
        "watermark_ms": known_time(landings[-1].watermark_ms) if landings else None,
        "closes_at_ms": waits.closes_at_ms if waits else None,
        "clock_ms": waits.clock_ms if waits else None,
        "records": shown,
        "late": late,
        "open_windows": windows,
    }
    dropped = [*map(_dropped, late), *quarantined(past, asked.own)]
    clocks = [*_waiting(waits), *clock_sentences(past, asked.partition)]
    if (because := not_looked_for(output)) is not None:
        times = None if first is None else (first.start_ms, first.end_ms - isinstance(windows_of(output), GridWindows))
        moved = f"{because}, so records of the key are not looked for, but dropped ones in the quarantine"
        reasons = [*dropped_by_runs(past, asked.own, times), moved, *clocks]
        return no_answer(output, Missing.WAITING, "there is no row yet", reasons, **known)
    if not records and asked.waiting:
        headline, _, fix = _not_taken(output, asked.waiting).partition(": ")
        is_held = len(landings) <= output.branch.last_epoch
        why = [*held_sentences(past), *clock_sentences(past, asked.partition)] if is_held else clocks
        return no_answer(output, Missing.NOT_TAKEN, headline, [f"{fix[0].upper()}{fix[1:]}", *why], **known)
    if not records:
        return no_answer(output, Missing.NEVER_LANDED, *never_landed(project, past, asked), **known)
    if len(late) >= len(records):
        which = "all records of the key" + ("" if first is None else f" in the window from {instant(first.start_ms)}")
        return no_answer(output, Missing.DROPPED, f"{which} were dropped", dropped, **known)
    if asked.waiting:
        dropped.append(_not_taken(output, asked.waiting))
    if not fate.kept and (fate.stores or not is_on_hold):
        reasons = [_let_go(output, counted(len(records) - len(late), "record")), *dropped]
        what = "reached a store" if fate.stores else "led to a row"
        return no_answer(output, Missing.LET_GO, f"no record of the key has {what}", reasons, **known)
    dropped += _left_out(output, shown, fate, late)
    if waits is not None and waits.is_open and first is not None:
        reached = sum(fate.reached((one.topic, one.offset), [first]) for one in shown)
        named = windows or [OpenFacts(first.start_ms, first.end_ms, waits.closes_at_ms, reached)]
        if not windows and not reached:
            headline = f"{open_headline(named)}, but no record of the key has reached it"
            return no_answer(output, Missing.OPEN, headline, [*dropped, *clocks], **known)
        reasons = [*open_sentences(named), *clocks, *dropped]
        return no_answer(output, Missing.OPEN, open_headline(named), reasons, **known)
    sent = [] if is_on_hold else ["The job has taken records of the key, but has sent no result of them"]
    partners = partner_sentences(past, asked.taken)
    return no_answer(output, Missing.WAITING, "there is no row yet", [*sent, *partners, *clocks, *dropped], **known)


def _not_taken(output: Output, times: Sequence[int]) -> str:
    """Return why landed records with these times are not taken, and after a colon what takes them."""
    what = f"{counted(len(times), 'record')} of the key"
    if len(output.job.feed.landings) > output.branch.last_epoch:
        job = command_words(output.job.name, output.branch.name)
        return f"{what} landed after the last run: run the job, `rewindow run {job}`"
    watermark_ms, is_one = output.job.feed.landings[-1].watermark_ms, len(times) == 1
    is_later = [time > watermark_ms for time in times]
    if all(is_later):
        are = "is" if is_one else "are"
        return f"{what} {are} later than the feed's watermark: a run takes them once a landing raises it"
    where = f"wait{'s' if is_one else ''} behind records of the partition that are later than the feed's watermark"
    if any(is_later):
        where = "are later than the feed's watermark, or wait behind such records of the partition"
    return f"{what} {where}: a run takes them, in this order, once a landing raises it"


def _waiting(waits: Waits | None) -> Iterator[str]:
    if waits is not None and waits.is_open:
        yield waits.why
    elif waits is not None:
        yield f"The window closed at {instant(waits.closes_at_ms)}: the clock of {waits.node} is past that"


def _left_out(output: Output, records: Sequence[RecordFacts], fate: Fate, late: Sequence[LateFacts]) -> Iterator[str]:
    """Yield how many of some records did not reach the output's windows, if it has any, without those that are dropped."""
    if windowed_node(output) is None or not fate.kept:
        return
    gone = {(one.record.topic, one.record.offset) for one in late} | fate.in_windows.keys()
    left = [where for one in records if (where := (one.topic, one.offset)) not in gone]
    held = sum(where in fate.kept for where in left)
    of = "" if len(left) == len(records) else f" of the {len(records):,} records of the key in the window"
    if len(left) > held:
        what = f"{len(left) - held:,}{of}" if of else counted(len(left) - held, "record")
        yield _let_go(output, what)
    if held:
        yield f"{held:,}{of or ' of the records'} reached another store, but not the windows"


def _let_go(output: Output, what: str) -> str:
    """Return why some records, ``what``, reached no store."""
    layout = output.layout
    joins = list(inner_joins(layout.topology, layout.sink))
    if not joins:
        return f"A condition or function of the job let {what} go: see `rewindow explain`"
    where = ", ".join(f"{one.name!r} ({describe_supplier(one.supplier)})" for one in joins)
    job = command_words(output.job.name, output.branch.name)
    them = "it" if what == "1 record" else "them"
    return (
        f"{what} found no partner in {where}, unless a condition or function left {them} out: `rewindow state show {job} "
        f"{joins[0].stores[0]}` lists what is joined, `rewindow explain` the topology"
    )


def _dropped(one: LateFacts) -> str:
    at = one.record
    where = f"{at.topic}-{at.partition} offset {at.offset} ({instant(at.timestamp_ms)})"
    return f"{where} was dropped by {one.node}: {one.reason}, {in_words(one.behind_ms)} behind"


def never_landed(project: OpenProject, past: History, asked: Asked) -> tuple[str, list[str]]:
    """Return the headline and the reasons."""
    feed, window = past.output.job.feed, asked.window
    name = feed.definition.feed
    reasons = [*_like(past, asked), *_looked(past, asked), *_completeness(past, window), *quarantined(past, asked.own)]
    config = load_feed(project.root, name)
    following = lands_next(config, project_root=str(project.root), warehouse=project.warehouse)
    reasons += _on_hold(project, config)
    reasons += _later(project, config)
    reasons.append(f"The next landing may bring records: `rewindow land {name}`{following}".removesuffix("."))
    if window is not None and _is_ahead(past, window):
        return f"no landed record reaches the window from {instant(window.start_ms)} yet", reasons
    if window is not None and window.is_session and asked.sessions:
        headline = f"no session of the key contains {instant(window.start_ms)}"
        made = told_sessions(asked.sessions, "its records make, if the job leaves none out,", window.start_ms)
        return headline, [made, *reasons]
    where = "" if window is None else f" in the window from {instant(window.start_ms)}"
    return f"no record of the key{where} was ever landed", reasons


def _on_hold(project: OpenProject, config: FeedConfig) -> Iterator[str]:
    """Yield the run on hold of each job whose output the feed lands: what follows it is not published, so it is not landed."""
    for job in sorted({log.source.job for log in config.logs.values() if log.source.job}):
        for run in project.tables.state(job).on_hold(MAIN)[:1]:
            yield (
                f"Run {run.spec.name} of {job}, whose output the feed lands, is on hold, so its rows are not landed: "
                f"`rewindow plan {job}` says why"
            )


def _later(project: OpenProject, config: FeedConfig) -> Iterator[str]:
    """Yield what landed files hold of later intervals of arrival. Whether the key is among it would have to be read."""
    spec = feed_spec(config, project_root=str(project.root), warehouse=project.warehouse)
    progress = fold_progress(project.feed_tables.state(config.feed))
    spec, positions = with_landed_grid(spec, progress), progress.positions
    if told := waiting_later(spec, (positions.get(log.topic) for log in spec.logs), now_ms()):
        yield f"Its records may be among those that arrive later: {told}"


def _like(past: History, asked: Asked) -> Iterator[str]:
    """Yield a key of the table that differs from a key of one text only in case or in blanks around it."""
    output = past.output
    spec = output.branch.tables.get(f"{OUTPUT}{output.topic}")
    if not isinstance(asked.own, str) or spec is None or output.tables.version_of(spec) is None:
        return
    column = output.own_columns[0].name
    if (found := output.tables.similar_key(spec, column, asked.own)) is not None:
        yield f"{output.table} has rows of the key {found!r}: ask for that one if it was meant"


def _is_ahead(past: History, window: Window) -> bool:
    """Whether a window begins after every landed record of the output's logs."""
    landings, topics = past.output.job.feed.landings, past.output.layout.external
    ranges = landings[-1].ranges.items() if landings else ()
    return window.start_ms > max(
        (landed.max_timestamp for one, landed in ranges if one.topic in topics), default=UNKNOWN
    )


def _looked(past: History, asked: Asked) -> Iterator[str]:
    if asked.window is None or not _is_ahead(past, asked.window):
        topics, landings = ", ".join(sorted(past.output.layout.external)), past.output.job.feed.landings
        where = "the only landing" if len(landings) == 1 else f"all {len(landings)} landings"
        yield f"Looked in partition {asked.partition} of {topics}, in {where}"


def _completeness(past: History, window: Window | None) -> Iterator[str]:
    feed = past.output.job.feed
    watermark = feed.landings[-1].watermark_ms if feed.landings else UNKNOWN
    if watermark == UNKNOWN:
        return
    through = f"Feed {feed.definition.feed} is complete through {instant(watermark)}"
    if window is None or window.end_ms <= watermark:
        yield f"{through}: no records of earlier times are expected any more"
    else:
        begins = "begins" if window.start_ms > watermark else "ends"
        yield f"{through}, and the window {begins} later: its records may still be landed"
