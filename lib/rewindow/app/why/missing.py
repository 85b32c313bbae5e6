"""Explain why a key has no row: which of its records are in the logs, what happened to them, and what the result waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewindow.app.feed_landing import lands_next
from rewindow.app.open_project import OpenProject
from rewindow.app.why.answer_facts import LateFacts, Missing, MissingFacts, OpenFacts, RecordFacts, no_answer
from rewindow.app.why.asked_window import AskedTime, told_sessions
from rewindow.app.why.history import History
from rewindow.app.why.key_records import (
    Asked,
    Outcomes,
    among,
    as_reached,
    ask,
    contains,
    dropped_by_runs,
    not_looked_for,
    outcomes_of,
    quarantined,
)
from rewindow.app.why.output import Output, Row
from rewindow.app.why.row import META, RecordLookup
from rewindow.app.why.waiting import (
    Waits,
    clock_sentences,
    held_sentences,
    open_headline,
    open_sentences,
    partner_sentences,
)
from rewindow.config.feed import FeedConfig, feed_spec
from rewindow.config.load import load_feed
from rewindow.contracts.instants import instant
from rewindow.control.health.holds import describe_holds
from rewindow.control.health.phrases import command_words, counted
from rewindow.control.health.run_hints import inner_joins
from rewindow.control.health.waiting_sources import waiting_later
from rewindow.control.ingest.feed_progress import fold_progress, with_landed_grid
from rewindow.control.plan.spec import MAIN, OUTPUT
from rewindow.errors import ReasonMessage
from rewindow.streams.duration import in_words
from rewindow.streams.record import UNKNOWN, Window, known_time
from rewindow.streams.topology import describe_supplier
from rewindow.streams.windows.session_sliding import SessionWindows
from rewindow.streams.windows.time import GridWindows
from rewindow.tables.shared.ledger import now_ms

NO_ROW_YET = ReasonMessage("no-row-yet", "there is no row yet")


def explain_missing(
    project: OpenProject, output: Output, key: Mapping[str, Sequence[Any]], rows: Sequence[Row], at: AskedTime | None
) -> MissingFacts:
    """Return why a key has no row. With ``at``, explain the window that contains this time.

    ``rows`` are the rows that the key has. Without a time, the key may have rows and also windows that are still open. Raises
    `UsageError` (2) if several windows contain the time, `SourceError` (66) if the feed lacks landings of the last run,
    `DataError` (65) if the job's code fails.
    """
    start_ms = None if at is None else at.start(rows)
    of_window = output.in_window(rows, start_ms)
    may_be_open = at is None and output.is_windowed and output.branch.head is not None
    answer = (
        _there(output, of_window[-1])
        if of_window and not may_be_open
        else _absent(project, output, key, start_ms, at, of_window)
    )
    return answer if at is None else replace(answer, asked_ms=at.time_ms)


def _absent(
    project: OpenProject,
    output: Output,
    key: Mapping[str, Sequence[Any]],
    start_ms: int | None,
    at: AskedTime | None,
    rows: Sequence[Row],
) -> MissingFacts:
    head, name = output.branch.head, output.job.name
    if head is None:
        branch = output.branch.name
        headline = ReasonMessage("job-without-runs", "{job} has no runs on branch {branch}", job=name, branch=branch)
        fix = ReasonMessage("run-it", "Run it: `rewindow run {job}`", job=command_words(name, branch))
        return no_answer(output, Missing.NOT_RUN, headline, [fix])
    past = History(output, head)
    past.check()
    asked = ask(past, key, start_ms, at)
    outcomes = Outcomes()
    if asked.still_open or not rows:
        outcomes = outcomes_of(past, asked)
        asked = as_reached(past, asked, outcomes, start_ms)
    windows = _open(past, asked, outcomes, rows)
    if rows and not windows:
        there = _there(output, rows[-1])
        return replace(there, reasons=[*there.reasons, *_nothing_open(output, asked)])
    if at is not None and asked.window is None and asked.sessions:
        answer = _in_no_session(past, asked, outcomes, at)
    else:
        answer = _told(project, past, asked, outcomes, windows)
    if rows:
        newest = ReasonMessage(
            "row-of-other-window",
            "Of another window {headline}: omit --missing to see it",
            headline=_there(output, rows[-1]).headline,
        )
        answer = replace(answer, reasons=[*answer.reasons, newest])
    for hold in describe_holds(output.state, output.branch.name)[:1]:
        reason = ReasonMessage(
            "rows-on-hold",
            "Run {run} is on hold: neither its rows nor those of later runs are published. `{accept}`",
            run=hold["run"],
            accept=hold["accept"],
        )
        return replace(answer, reasons=[reason, *answer.reasons])
    return answer


def _open(past: History, asked: Asked, outcomes: Outcomes, rows: Sequence[Row]) -> list[OpenFacts]:
    """Return the key's open windows without a row, each with the number of records that reached it."""
    times = among(asked.taken, outcomes.in_windows)
    column, windows = past.output.start_column, past.output.windows
    written = {row[column or ""] for row in rows}
    counts = [
        (window, sum(contains(window, time, windows) for time in times))
        for window in asked.still_open or ()
        if window.start_ms not in written
    ]
    held = asked.holding
    closing = {one: held.closes_at(one) for one, _ in counts} if held is not None else {}
    return [
        OpenFacts(one.start_ms, one.end_ms, closes_at, count)
        for one, count in counts
        if count and (closes_at := closing.get(one)) is not None
    ]


def _nothing_open(output: Output, asked: Asked) -> Iterator[ReasonMessage]:
    if asked.still_open is not None:
        yield ReasonMessage("no-other-window-open", "No other window of the key is open")
    if asked.waiting:
        yield _records_not_taken(output, asked.waiting)


def _there(output: Output, row: Row) -> MissingFacts:
    run = output.state.find_run(row["_run"])
    by = f"run {run.spec.name}" if run else "a run"
    others = {*(column.name for column in output.key_columns), *META, "_timestamp"}
    column = output.start_column
    start_ms = row[column] if column else None
    if all(value is None for name, value in row.items() if name not in others):
        headline = ReasonMessage("row-is-deletion", "the newest row of the key is a deletion, written by {run}", run=by)
        return no_answer(output, Missing.DELETED, headline, [], window_start_ms=start_ms)
    headline = ReasonMessage("row-exists", "there is a row of the key, written by {run}", run=by)
    fix = ReasonMessage("omit-missing", "Omit --missing to see what the row was made of")
    return no_answer(output, Missing.EXISTS, headline, [fix], window_start_ms=start_ms)


def _in_no_session(past: History, asked: Asked, outcomes: Outcomes, at: AskedTime) -> MissingFacts:
    """Return the facts for a time that is near records of the key, but in none of its sessions.

    They name the records that are in no session.
    """
    facts, windows = RecordLookup(past), past.output.windows
    near = facts.unused(asked.taken, set())
    left = [
        record for record in near if not any(contains(made, record.timestamp_ms, windows) for made in asked.sessions)
    ]
    wheres = {(record.topic, record.offset) for record in left}
    late = [
        dropped
        for dropped in facts.late(outcomes.missed(asked.spans), asked.taken)
        if (dropped.record.topic, dropped.record.offset) in wheres
    ]
    made = told_sessions(asked.sessions, "its other records near it make", at.time_ms)
    return no_answer(
        past.output,
        Missing.DROPPED if left and len(late) == len(left) else Missing.LET_GO,
        _no_session(at.time_ms),
        [made, *_left_out(past.output, left, outcomes, late), *map(_dropped, late)],
        partition=asked.partition,
        records=left,
        late=late,
    )


def _told(
    project: OpenProject, past: History, asked: Asked, outcomes: Outcomes, windows: Sequence[OpenFacts]
) -> MissingFacts:
    output, facts = past.output, RecordLookup(past)
    landings, is_on_hold = output.job.feed.landings, bool(output.state.on_hold(output.branch.name))
    late = facts.late(outcomes.missed(asked.spans), asked.taken)
    records = facts.unused(asked.taken, set())  # the records of all open windows
    is_session = isinstance(output.windows, SessionWindows)
    newest = asked.still_open[-1] if asked.still_open else asked.window
    first = Window(windows[0].start_ms, windows[0].end_ms, is_session) if windows else newest
    waits = asked.holding.waits(first) if asked.holding is not None else None
    shown = [record for record in records if first is None or contains(first, record.timestamp_ms, output.windows)]
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
        times = None if first is None else (first.start_ms, first.end_ms - isinstance(output.windows, GridWindows))
        moved = ReasonMessage(
            "key-not-looked-for",
            "{reason}, so records of the key are not looked for, but dropped ones in the quarantine",
            reason=because,
        )
        reasons = [*dropped_by_runs(past, asked.own, times), moved, *clocks]
        return no_answer(output, Missing.WAITING, NO_ROW_YET, reasons, **known)
    if not records and asked.waiting:
        headline, fix = _not_taken(output, asked.waiting)
        taken_by = ReasonMessage("records-taken-later", "{fix}", fix=fix)
        is_held = len(landings) <= output.branch.last_epoch
        why = [*held_sentences(past), *clock_sentences(past, asked.partition)] if is_held else clocks
        return no_answer(output, Missing.NOT_TAKEN, headline, [taken_by, *why], **known)
    if not records:
        return no_answer(output, Missing.NEVER_LANDED, *never_landed(project, past, asked), **known)
    if len(late) >= len(records):
        which = "all records of the key" + ("" if first is None else f" in the window from {instant(first.start_ms)}")
        headline = ReasonMessage("key-records-dropped", "{records} were dropped", records=which)
        return no_answer(output, Missing.DROPPED, headline, dropped, **known)
    if asked.waiting:
        dropped.append(_records_not_taken(output, asked.waiting))
    if not outcomes.kept and (outcomes.stores or not is_on_hold):
        reasons = [_let_go(output, counted(len(records) - len(late), "record")), *dropped]
        what = "reached a store" if outcomes.stores else "led to a row"
        headline = ReasonMessage("key-without-result", "no record of the key has {what}", what=what)
        return no_answer(output, Missing.LET_GO, headline, reasons, **known)
    dropped += _left_out(output, shown, outcomes, late)
    if waits is not None and waits.is_open and first is not None:
        reached = sum(outcomes.reached((record.topic, record.offset), [first]) for record in shown)
        named = windows or [OpenFacts(first.start_ms, first.end_ms, waits.closes_at_ms, reached)]
        if not windows and not reached:
            headline = open_headline(named).followed(", but no record of the key has reached it")
            return no_answer(output, Missing.OPEN, headline, [*dropped, *clocks], **known)
        reasons = [*open_sentences(named), *clocks, *dropped]
        return no_answer(output, Missing.OPEN, open_headline(named), reasons, **known)
    sent = ReasonMessage("no-result-sent", "The job has taken records of the key, but has sent no result of them")
    reasons = [*([] if is_on_hold else [sent]), *partner_sentences(past, asked.taken), *clocks, *dropped]
    return no_answer(output, Missing.WAITING, NO_ROW_YET, reasons, **known)


def _no_session(time_ms: int) -> ReasonMessage:
    return ReasonMessage("session-not-found", "no session of the key contains {time}", time=instant(time_ms))


def _records_not_taken(output: Output, times: Sequence[int]) -> ReasonMessage:
    why, fix = _not_taken(output, times)
    return why.followed(f". {fix}")


def _not_taken(output: Output, times: Sequence[int]) -> tuple[ReasonMessage, str]:
    """Return why no run has processed landed records with these times, and the command that processes them."""
    records = f"{counted(len(times), 'record')} of the key"
    if len(output.job.feed.landings) > output.branch.last_epoch:
        job = command_words(output.job.name, output.branch.name)
        return _waits(records, "landed after the last run"), f"Run the job, `rewindow run {job}`"
    watermark_ms, is_one = output.job.feed.landings[-1].watermark_ms, len(times) == 1
    is_later = [time > watermark_ms for time in times]
    if all(is_later):
        are = "is" if is_one else "are"
        return _waits(records, f"{are} later than the feed's watermark"), "A run takes them once a landing raises it"
    where = f"wait{'s' if is_one else ''} behind records of the partition that are later than the feed's watermark"
    if any(is_later):
        where = "are later than the feed's watermark, or wait behind such records of the partition"
    return _waits(records, where), "A run takes them, in this order, once a landing raises it"


def _waits(records: str, why: str) -> ReasonMessage:
    return ReasonMessage("key-records-not-taken", "{records} {why}", records=records, why=why)


def _waiting(waits: Waits | None) -> Iterator[ReasonMessage]:
    if waits is not None and waits.is_open:
        yield ReasonMessage("result-waits-for-clock", "{reason}", reason=waits.why)
    elif waits is not None:
        yield ReasonMessage(
            "window-closed",
            "The window closed at {time}: the clock of {node} is past that",
            time=instant(waits.closes_at_ms),
            node=waits.node,
        )


def _left_out(
    output: Output, records: Sequence[RecordFacts], outcomes: Outcomes, late: Sequence[LateFacts]
) -> Iterator[ReasonMessage]:
    """If the output has windows, yield how many records reached none of the windows. Dropped records do not count."""
    if output.windowed_node is None or not outcomes.kept:
        return
    gone = {(dropped.record.topic, dropped.record.offset) for dropped in late} | outcomes.in_windows.keys()
    left = [where for record in records if (where := (record.topic, record.offset)) not in gone]
    held = sum(where in outcomes.kept for where in left)
    of = "" if len(left) == len(records) else f" of the {len(records):,} records of the key in the window"
    if len(left) > held:
        let_go = f"{len(left) - held:,}{of}" if of else counted(len(left) - held, "record")
        yield _let_go(output, let_go)
    if held:
        yield ReasonMessage(
            "records-outside-windows",
            "{records} reached another store, but not the windows",
            records=f"{held:,}{of or ' of the records'}",
        )


def _let_go(output: Output, records: str) -> ReasonMessage:
    """Return a sentence that says why no store has an entry of some records. ``records`` is their number, in words."""
    layout = output.layout
    joins = list(inner_joins(layout.topology, layout.sink))
    if not joins:
        return ReasonMessage(
            "records-let-go",
            "A condition or function of the job filtered out {records}: see `rewindow explain {job}`",
            records=records,
            job=output.job.name,
        )
    where = ", ".join(f"{join.name!r} ({describe_supplier(join.supplier)})" for join in joins)
    job = command_words(output.job.name, output.branch.name)
    them = "it" if records == "1 record" else "them"
    return ReasonMessage(
        "records-without-partner",
        "{records} found no partner in {joins}, unless a condition or function left {them} out: `rewindow state show {job} "
        "{store}` lists what is joined, `rewindow explain {name}` the topology",
        records=records,
        joins=where,
        them=them,
        job=job,
        store=joins[0].stores[0],
        name=output.job.name,
    )


def _dropped(late: LateFacts) -> ReasonMessage:
    record = late.record
    return ReasonMessage(
        "key-record-dropped",
        "{topic}-{partition} offset {offset} ({time}) was dropped by {node}: {reason}, {behind} behind",
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        time=instant(record.timestamp_ms),
        node=late.node,
        reason=late.reason,
        behind=in_words(late.behind_ms),
    )


def never_landed(project: OpenProject, past: History, asked: Asked) -> tuple[ReasonMessage, list[ReasonMessage]]:
    """Return the headline and the reasons for a key without landed records."""
    feed, window = past.output.job.feed, asked.window
    name = feed.definition.feed
    reasons = [*_like(past, asked), *_looked(past, asked), *_completeness(past, window), *quarantined(past, asked.own)]
    config = load_feed(project.root, name)
    following = lands_next(config, project_root=str(project.root), warehouse=project.warehouse)
    reasons += _on_hold(project, config)
    reasons += _later(project, config)
    reasons.append(
        ReasonMessage(
            "next-landing-may-help",
            "The next landing may bring records: `rewindow land {feed}`{lands}",
            feed=name,
            lands=following.removesuffix("."),
        )
    )
    if window is not None and _is_ahead(past, window):
        start = instant(window.start_ms)
        return ReasonMessage(
            "window-not-reached", "no landed record reaches the window from {start} yet", start=start
        ), reasons
    if window is not None and window.is_session and asked.sessions:
        made = told_sessions(asked.sessions, "its records make, if the job leaves none out,", window.start_ms)
        return _no_session(window.start_ms), [made, *reasons]
    where = "" if window is None else f" in the window from {instant(window.start_ms)}"
    return ReasonMessage("key-never-landed", "no record of the key{window} was ever landed", window=where), reasons


def _on_hold(project: OpenProject, config: FeedConfig) -> Iterator[ReasonMessage]:
    """Yield the first run on hold of each job whose output the feed lands.

    Rows of this run and of later runs are not landed yet.
    """
    for job in sorted({log.source.job for log in config.logs.values() if log.source.job}):
        for run in project.tables.state(job).on_hold(MAIN)[:1]:
            yield ReasonMessage(
                "source-rows-on-hold",
                "Run {run} of {job}, whose output the feed lands, is on hold, so its rows are not landed: `rewindow plan {job}` "
                "says why",
                run=run.spec.name,
                job=job,
            )


def _later(project: OpenProject, config: FeedConfig) -> Iterator[ReasonMessage]:
    """Yield a sentence if landed files have rows of later intervals of arrival.

    The rows are not read, so it is unknown whether the key is among them.
    """
    spec = feed_spec(config, project_root=str(project.root), warehouse=project.warehouse)
    progress = fold_progress(project.feed_tables.state(config.feed))
    spec, positions = with_landed_grid(spec, progress), progress.positions
    if waiting := waiting_later(spec, (positions.get(log.topic) for log in spec.logs), now_ms()):
        yield ReasonMessage(
            "key-may-arrive-later", "Its records may be among those that arrive later: {waiting}", waiting=waiting
        )


def _like(past: History, asked: Asked) -> Iterator[ReasonMessage]:
    """Yield a key of the table that differs from the given one only in case or in blanks around it.

    This applies only to a key of one text.
    """
    output = past.output
    spec = output.branch.tables.get(f"{OUTPUT}{output.topic}")
    if not isinstance(asked.own, str) or spec is None or output.tables.version_of(spec) is None:
        return
    column = output.own_columns[0].name
    if (key := output.tables.similar_key(spec, column, asked.own)) is not None:
        yield ReasonMessage(
            "similar-key-exists",
            "{table} has rows of the key {key!r}: ask for that one if it was meant",
            table=output.table,
            key=key,
        )


def _is_ahead(past: History, window: Window) -> bool:
    """Return whether a window begins after the newest landed record of the output's logs."""
    landings, topics = past.output.job.feed.landings, past.output.layout.external
    ranges = landings[-1].ranges.items() if landings else ()
    return window.start_ms > max((landed.max_timestamp for tp, landed in ranges if tp.topic in topics), default=UNKNOWN)


def _looked(past: History, asked: Asked) -> Iterator[ReasonMessage]:
    if asked.window is None or not _is_ahead(past, asked.window):
        topics, landings = ", ".join(sorted(past.output.layout.external)), past.output.job.feed.landings
        where = "the only landing" if len(landings) == 1 else f"all {len(landings)} landings"
        yield ReasonMessage(
            "logs-searched",
            "Looked in partition {partition} of {topics}, in {landings}",
            partition=asked.partition,
            topics=topics,
            landings=where,
        )


def _completeness(past: History, window: Window | None) -> Iterator[ReasonMessage]:
    feed = past.output.job.feed
    watermark = feed.landings[-1].watermark_ms if feed.landings else UNKNOWN
    if watermark == UNKNOWN:
        return
    begins = "begins" if window is not None and window.start_ms > watermark else "ends"
    is_past = window is None or window.end_ms <= watermark
    yield ReasonMessage(
        "feed-complete-through",
        "Feed {feed} is complete through {time}{then}",
        feed=feed.definition.feed,
        time=instant(watermark),
        then=": no records of earlier times are expected any more"
        if is_past
        else f", and the window {begins} later: its records may still be landed",
    )
