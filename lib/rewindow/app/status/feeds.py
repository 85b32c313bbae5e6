"""Check one feed: its sources, its landings, and attempts that died."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rewindow.app.command_line import Command
from rewindow.app.feed_status import UNKNOWN_ROWS, FeedLook
from rewindow.app.listing import Entry, Looks, Status, feed_entry
from rewindow.app.project import Project
from rewindow.app.readers import replayed_of_removed
from rewindow.app.status.findings import Finding, Level, Subject, attempted, refused
from rewindow.app.unfinished import known_end, process_of
from rewindow.config.load import load_feed
from rewindow.control.ingest.intervals import Grid
from rewindow.control.ingest.landings import LANDING, PLAN, Landing
from rewindow.control.ingest.later_rows import later_rows
from rewindow.control.ingest.progress import Progress, landed_grid
from rewindow.control.ingest.stored_progress import made_by
from rewindow.control.plan.branches import LedgerRow
from rewindow.report.text import counted, instant, to_the_second
from rewindow.streams.record import known_time
from rewindow.tables.shared.warehouse import find_feed

LANDINGS = 24
"""Number of last landings over which the shares are taken."""


def check_feed(project: Project, name: str, looks: Looks) -> Subject:
    """Return the line of a feed."""
    entry, command = feed_entry(name, looks), Command(name, project.target.target)
    if entry.status is Status.BROKEN:
        progress, rows = (None, ()) if entry.epoch is None else (looks.progress(name), looks.rows(name))
        figures = _figures(entry, progress, rows, looks.now_ms) | {"due": None}
        told = [
            refused(entry, "landing", command("land")),
            *attempted(lambda: list(_replayed(project, name, command)), "replayed", command("land")),
        ]
        return Subject("feed", name, entry, figures, told)
    look, rows = looks.feed(name), looks.rows(name)
    findings = [
        *_unfinished(project, look, rows, command),
        *attempted(lambda: list(_lagging(project, name, rows, command)), "lagging", command("land")),
        *attempted(lambda: list(_overdue(project, name, look, looks.now_ms, command)), "interval", command("land")),
        *_quarantined(look.progress, name, project.target.target),
        *_in_the_future(look.progress, looks.now_ms, command),
    ]
    figures = _figures(entry, look.progress, rows, looks.now_ms) | {"due": look.is_due}
    return Subject("feed", name, entry, figures, findings)


def age_ms(time_ms: int | None, now_ms: int) -> int | None:
    """Return how long ago a time is; 0 for the future."""
    return None if time_ms is None else max(0, now_ms - time_ms)


def landed_at(rows: Sequence[LedgerRow], number: int) -> int | None:
    """Return when a landing was landed (epoch ms); None if there is none of that number."""
    landed = (row for row in reversed(rows) if row.kind == LANDING and row.body["landing"] <= number)
    found = next(landed, None)
    return found.recorded_at if found and found.body["landing"] == number else None


def _replayed(project: Project, name: str, command: Command) -> Iterator[Finding]:
    """Yield a finding for the jobs that have replayed rows of runs that the feed's source no longer has."""
    for source, jobs in replayed_of_removed(project.root, project.tables, name).items():
        if jobs:
            which = f"the job {jobs[0]} has" if len(jobs) == 1 else f"the jobs {', '.join(jobs)} have"
            message = f"{which} replayed rows of runs that {source} no longer has"
            yield Finding(Level.BROKEN, "replayed", message, command("land"))


def _unfinished(project: Project, look: FeedLook, rows: Sequence[LedgerRow], command: Command) -> Iterator[Finding]:
    """Yield a finding if the last attempts to land have ended without a landing."""
    if not look.progress.unfinished or look.is_landing:
        return
    attempt = look.progress.unfinished[-1]
    planned = next(row for row in reversed(rows) if row.kind == PLAN and row.body["attempt"]["id"] == attempt.id)
    has_ended, known = known_end(project.warehouse, attempt, in_catalog=project.target.catalog is not None)
    message = f"{process_of(attempt)} began to land at {to_the_second(planned.recorded_at)} and {known}"
    level = Level.BROKEN if has_ended else Level.NOTE
    yield Finding(level, "unfinished", message, command("land") if has_ended else None)


def _lagging(project: Project, name: str, rows: Sequence[LedgerRow], command: Command) -> Iterator[Finding]:
    """Yield a finding if a log lacks landings that the ledger has."""
    if not made_by(rows):
        return
    lacks = project.feed_tables.lagging(find_feed(name, rows, project.tables.home))
    if lacks:
        told = ", ".join(f"{topic} by {counted(count, 'landing')}" for topic, count in lacks.items())
        message = f"logs lag behind the ledger: {told}"
        yield Finding(Level.BROKEN, "lagging", message, command("land"))


def _overdue(project: Project, name: str, look: FeedLook, now_ms: int, command: Command) -> Iterator[Finding]:
    """Yield a finding if rows of an interval wait although the next interval is over, too."""
    config, through_ms = load_feed(project.root, name), look.progress.through_ms
    if config.landing.every is None or through_ms is None:
        return
    every = config.landing.every
    grid = Grid(every.count, every.unit, config.zone, landed_grid(look.progress))
    if grid.after(grid.after(through_ms)) > now_ms or not (look.is_due or look.detail == UNKNOWN_ROWS):
        return
    what = "rows that arrived since then wait" if look.is_due else look.detail
    message = f"landed are intervals through {to_the_second(through_ms)}, with `every: {every}`, and {what}"
    yield Finding(Level.ALERT, "interval", message, command("land"))


def _quarantined(progress: Progress, feed: str, target: str) -> Iterator[Finding]:
    """Yield a finding for each log of whose records the last landing has quarantined all."""
    last = progress.feed.landings[-1] if progress.feed and progress.feed.landings else None
    if last is None:
        return
    for topic, count in (last.quarantined or {}).items():
        if not any(one.end > one.start for tp, one in last.ranges.items() if tp.topic == topic):
            what = "the only record" if count == 1 else f"all {count:,} records"
            message = f"{what} of the log {topic} in the last landing {'was' if count == 1 else 'were'} quarantined"
            yield Finding(
                Level.NOTE, "quarantined", message, Command(f"rewindow.quarantine --of {feed}", target)("head")
            )


def _in_the_future(progress: Progress, now_ms: int, command: Command) -> Iterator[Finding]:
    """Yield a finding for each log of which landed files hold rows that arrive later than now, as the last landing recorded."""
    logs = progress.declared.get("logs", progress.positions)  # without those that a new generation has removed
    for topic, position in ((topic, progress.positions[topic]) for topic in progress.positions if topic in logs):
        later = {name: at for name, at in (later_rows(position) or {}).items() if at > now_ms}
        if later:
            name = min(later, key=lambda one: (later[one], one))
            message = f"the landed file {name} of the log {topic} has rows that arrive in the future, at {instant(later[name])}"
            fix = f"correct the source and land a new generation: `{command('land')} --new-generation`"
            yield Finding(Level.NOTE, "future", message, None, f"They wait until then. If that time is wrong, {fix}")


def _figures(entry: Entry, progress: Progress | None, rows: Sequence[LedgerRow], now_ms: int) -> dict[str, Any]:
    landings: Sequence[Landing] = progress.feed.landings if progress and progress.feed else ()
    counts = [one.counts or {} for one in landings[-LANDINGS:]]
    landed = sum(one.get("rows", 0) for one in counts)
    quarantined, behind = (sum(one.get(word, 0) for one in counts) for word in ("quarantined", "behind"))
    ranges = landings[-1].ranges.values() if landings else ()
    at_ms = landed_at(rows, len(landings)) if landings else None
    return {
        "landings": len(landings) if progress else None,
        "watermark_ms": entry.watermark_ms,
        "age_ms": age_ms(entry.watermark_ms, now_ms),
        "through_ms": progress.through_ms if progress else None,
        "landed_at_ms": known_time(at_ms) if at_ms else None,
        "over_landings": len(counts),
        "rows": landed,
        "behind": behind,
        "behind_share": behind / landed if landed else None,
        "quarantined": quarantined,
        "quarantined_share": quarantined / (landed + quarantined) if landed + quarantined else None,
        "held": sum(one.end - one.release for one in ranges),
    }
