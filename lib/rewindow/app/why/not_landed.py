"""What `why --missing` says of a key, or of its window, without records in the logs."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from rewindow.app.never_landed import lands_next
from rewindow.app.project import Project
from rewindow.app.why.asked import Asked
from rewindow.app.why.history import History
from rewindow.app.why.quarantined import quarantined
from rewindow.app.why.windows import told_sessions
from rewindow.config.feed import FeedConfig, feed_spec
from rewindow.config.load import load_feed
from rewindow.contracts.instants import instant
from rewindow.control.ingest.progress import fold_progress, with_landed_grid
from rewindow.control.ingest.waiting import waiting_later
from rewindow.control.plan.spec import MAIN, OUTPUT
from rewindow.streams.record import UNKNOWN, Window
from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.content_hash import read_batches
from rewindow.tables.shared.ledger import now_ms


def never_landed(project: Project, past: History, asked: Asked) -> tuple[str, list[str]]:
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


def _on_hold(project: Project, config: FeedConfig) -> Iterator[str]:
    """Yield the run on hold of each job whose output the feed lands: what follows it is not published, so it is not landed."""
    for job in sorted({log.source.job for log in config.logs.values() if log.source.job}):
        for run in project.tables.state(job).on_hold(MAIN)[:1]:
            yield (
                f"Run {run.spec.name} of {job}, whose output the feed lands, is on hold, so its rows are not landed: "
                f"`rewindow plan {job}` says why"
            )


def _later(project: Project, config: FeedConfig) -> Iterator[str]:
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
    same = pc.utf8_lower(pc.utf8_trim_whitespace(pc.field(column))) == asked.own.strip().lower()
    for batch in read_batches(table_path(output.tables.warehouse, spec.path), same):
        if batch.num_rows and (found := batch.column(column)[0].as_py()) != asked.own:
            yield f"{output.table} has rows of the key {found!r}: ask for that one if it was meant"
            return


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
