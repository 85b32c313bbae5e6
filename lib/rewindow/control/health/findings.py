"""Findings: what needs attention in a feed or a job, with a level and a word for alert rules, a message and a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rewindow.contracts.instants import instant, to_the_second
from rewindow.control.health.entries import Entry, Status
from rewindow.control.health.feed_health import FeedHealth, future_rows, quarantined_logs, rows_of_passed_intervals
from rewindow.control.health.holds import Hold, lag_words
from rewindow.control.health.inputs import Unknown, known
from rewindow.control.health.phrases import Command, counted
from rewindow.control.health.waiting_results import Stalled
from rewindow.control.ingest.landings import LANDING
from rewindow.control.plan.job_state import LedgerRow
from rewindow.errors import ConfigError, FindingMessage, Lines
from rewindow.streams.duration import in_words

_MEMORY = (
    "If that was for lack of memory (exit code 137), set fewer `cores:` or a smaller `inline:` in the target or a lower "
    "`store_memory` under `limits:` in the job's file, or raise the container's memory"
)


class Level(StrEnum):
    """How urgent something is, the most urgent first."""

    BROKEN = "broken"
    """The next command would be refused, an attempt did not finish, a run is on hold, tables differ from what was committed,
    or a check failed."""
    ALERT = "alert"
    """A limit in the job's file is exceeded, a scheduled run is missing, or an interval of the feed was not landed in time."""
    NOTE = "note"
    """Results wait for a partition without new records, but no limit is exceeded; or all rows of a landing were quarantined;
    or landed files have rows with a future arrival time. Also, for tables in a catalog: an attempt may still run on another
    host, or a limit on files is not checked."""
    OK = "ok"

    @property
    def is_well(self) -> bool:
        """Whether no action is needed."""
        return self in (Level.NOTE, Level.OK)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that needs attention. ``about`` is the word by which alert rules select findings.

    ``command`` is the command that fixes it; None if no command can fix it, or if the command would be refused.
    """

    level: Level
    about: str
    message: FindingMessage
    command: str | None
    advice: str | None = None
    """What else may be needed, as a sentence."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A feed or a job: its line of `rewindow ls`, its figures by name (None if unknown), and its findings."""

    kind: str
    name: str
    entry: Entry
    figures: Mapping[str, Any]
    findings: Sequence[Finding] = field(default_factory=tuple)

    @property
    def level(self) -> Level:
        """The level of the most urgent finding."""
        return min((finding.level for finding in self.findings), key=list(Level).index, default=Level.OK)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An attempt that planned, did not commit, and is not known to be alive: its process, and when it planned (epoch ms).

    ``has_ended`` is false if the attempt may still run on another host.
    """

    process: str
    was_killed: bool
    has_ended: bool = True
    planned_ms: int | None = None

    @property
    def how(self) -> str:
        """How the attempt ended, as the last part of a sentence."""
        if self.was_killed:
            return "was killed before it could say why, or hangs"
        if self.has_ended:
            return "ended without finishing it: it failed with an error, which its own output names, or was interrupted"
        return "may still run, or has ended: no heartbeat of it is here"

    def hint(self, again: str) -> str:
        """Return how the attempt ended and what to do. ``again`` says how to repeat it, as a sentence without its full stop."""
        if self.was_killed:
            return f"The previous attempt, {self.process}, {self.how}. {again}. {_MEMORY}"
        return f"The previous attempt, {self.process}, {self.how}. If it was an error, fix its cause. {again}"


def checked(check: Callable[[], Iterable[Finding]], about: str, command: str) -> list[Finding]:
    """Return the findings of a check.

    If the check raises an error, return a finding with this error, because the result is unknown.
    """
    found = known(lambda: [*check()])
    if isinstance(found, Unknown):
        message = FindingMessage(
            "check-not-possible", "this could not be checked: {reason}", reason=Lines(found.reason.split("\n"))
        )
        return [Finding(Level.BROKEN, about, message, command)]
    return found


def refused(entry: Entry, step: str, command: str) -> Iterator[Finding]:
    """Yield a finding if the next run or landing (``step``) would be refused.

    If the cause is a mistake in a configuration file, the finding has no command, because every command is refused until the
    file is corrected.
    """
    if entry.status is Status.BROKEN:
        message = FindingMessage(
            "next-call-refused",
            "the next {what} is refused ({exit_code}): {reason}",
            what=step,
            exit_code=entry.exit_code,
            reason=Lines((entry.detail or "").split("\n")),
        )
        helps = None if entry.exit_code == ConfigError.exit_code else command
        yield Finding(Level.BROKEN, "refused", message, helps)


def lagging(lacks: Mapping[str, int], tables: str, unit: str, command: str) -> Iterator[Finding]:
    """Yield a finding if ``tables`` lack commits or landings (``unit``).

    ``lacks`` maps each table to the number that it lacks.
    """
    if lacks:
        message = FindingMessage(
            "tables-behind-ledger",
            "{tables} lag behind the ledger: {lacks}",
            tables=tables,
            lacks=lag_words(lacks, unit),
        )
        yield Finding(Level.BROKEN, "lagging", message, command)


def stalled_results(stalled: Sequence[Stalled] | Unknown, bound_ms: int | None, command: Command) -> Iterator[Finding]:
    """Yield a finding for each node whose results are stalled: they wait for a partition without new records.

    The finding is an alert if the results wait longer than ``bound_ms``.
    """
    if isinstance(stalled, Unknown):
        level = Level.NOTE if bound_ms is None else Level.ALERT
        message = FindingMessage(
            "waiting-results-unknown",
            "whether results wait for silent partitions is unknown: {reason}",
            reason=stalled.reason,
        )
        yield Finding(level, "silent", message, command("report"))
        return
    for result in stalled:
        level, beyond = Level.NOTE, ""
        if bound_ms is not None and result.behind_ms > bound_ms:
            level = Level.ALERT
            beyond = f": {in_words(result.behind_ms)} behind the feed, at most {in_words(bound_ms)} are allowed"
        yield Finding(level, "silent", result.message(beyond), command("report"), result.fix)


def on_hold(holds: Sequence[Hold], unpublished: int, command: Command) -> Iterator[Finding]:
    """Yield a finding if a run is on hold. ``unpublished``: the number of runs that wait: this run and the runs after it."""
    if holds:
        run, unmet = holds[0]["run"], "; ".join(holds[0]["unmet"])
        more = f", and {counted(unpublished - 1, 'run')} behind it" if unpublished > 1 else ""
        message = FindingMessage(
            "run-on-hold", "run {run} is on hold and not published{more}: {unmet}", run=run, more=more, unmet=unmet
        )
        yield Finding(Level.BROKEN, "on_hold", message, f"{command('publish')} --accept --run {run}")


def unfinished_run(run: str, attempt: Unfinished, command: Command) -> Finding:
    """Return the finding that a planned run is not committed."""
    since = f" since {to_the_second(attempt.planned_ms)}" if attempt.planned_ms else ""
    message = FindingMessage(
        "run-unfinished",
        "run {run} is planned{since} and not committed: {process} {how}",
        run=run,
        since=since,
        process=attempt.process,
        how=attempt.how,
    )
    return _unfinished(attempt, message, command("run"), _MEMORY if attempt.was_killed else None)


def unfinished_landing(attempt: Unfinished, command: Command) -> Finding:
    """Return the finding that a call of `land` planned landings but did not land them."""
    message = FindingMessage(
        "landing-unfinished",
        "{process} began to land at {time} and {how}",
        process=attempt.process,
        time=to_the_second(attempt.planned_ms),
        how=attempt.how,
    )
    return _unfinished(attempt, message, command("land"))


def _unfinished(attempt: Unfinished, message: FindingMessage, command: str, advice: str | None = None) -> Finding:
    if not attempt.has_ended:
        return Finding(Level.NOTE, "unfinished", message, None)
    return Finding(Level.BROKEN, "unfinished", message, command, advice)


def overdue_run(
    entry: Entry, landed_ms: int | None, schedule: str, due: Sequence[int], command: Command
) -> Iterator[Finding]:
    """Yield a finding if a landing waits that the last but one scheduled run should have processed.

    ``due`` are the last two times of the schedule, newest first. ``landed_ms`` is the time of the first landing that waits;
    None if unknown.
    """
    if landed_ms is not None and landed_ms > due[1]:
        return
    when = f" of {to_the_second(landed_ms)}" if landed_ms else ""
    message = FindingMessage(
        "schedule-missed",
        "landing {landing}{when} still waits, although runs of the schedule `{schedule}` were due at {before} and "
        "at {last}",
        landing=(entry.epoch or 0) + 1,
        when=when,
        schedule=schedule,
        before=to_the_second(due[1]),
        last=to_the_second(due[0]),
    )
    yield Finding(Level.ALERT, "schedule", message, command("run"))


def replayed(of: Mapping[str, Sequence[str]], command: str) -> Iterator[Finding]:
    """Yield a finding for each source of a feed whose runs were removed after jobs had replayed the rows of these runs.

    ``of`` maps each source to the jobs that replayed rows of removed runs.
    """
    for source, jobs in of.items():
        if jobs:
            which = f"the job {jobs[0]} has" if len(jobs) == 1 else f"the jobs {', '.join(jobs)} have"
            message = FindingMessage(
                "removed-runs-replayed-by-jobs",
                "{which} replayed rows of runs that {source} no longer has",
                which=which,
                source=source,
            )
            yield Finding(Level.BROKEN, "replayed", message, command)


def of_landings(health: FeedHealth, now_ms: int, feed: str, command: Command) -> Iterator[Finding]:
    """Yield the findings on landings: intervals not landed in time, logs that were all quarantined, rows from the future."""
    if waits := rows_of_passed_intervals(health, now_ms):
        through = to_the_second(health.progress.through_ms)
        message = FindingMessage(
            "interval-not-landed",
            "intervals are landed only through {through} (`every: {every}`), and {waits}",
            through=through,
            every=health.every,
            waits=waits,
        )
        yield Finding(Level.ALERT, "interval", message, command("land"))
    for topic in health.behind:
        message = FindingMessage(
            "new-files-behind",
            "landings declare the log {topic} complete through {through}, but new files have earlier rows, which will "
            "be late",
            topic=topic,
            through=to_the_second(health.progress.through_ms),
        )
        fix = (
            f"To have them in time, land a new generation: `{command('land')} --new-generation`. "
            "With `--keep N`, the first N landings stay as they are"
        )
        yield Finding(Level.ALERT, "behind", message, command("land"), fix)
    for topic, count in quarantined_logs(health.progress):
        what = "the only record" if count == 1 else f"all {count:,} records"
        message = FindingMessage(
            "last-landing-quarantined",
            "{what} of the log {topic} in the last landing {were} quarantined",
            what=what,
            topic=topic,
            were="was" if count == 1 else "were",
        )
        see = Command(f"rewindow.quarantine --of {feed}", command.target)("head")
        yield Finding(Level.NOTE, "quarantined", message, see)
    for topic, name, at_ms in future_rows(health.progress, now_ms):
        message = FindingMessage(
            "rows-of-the-future",
            "the landed file {file} of the log {topic} has rows that arrive in the future, at {time}",
            file=name,
            topic=topic,
            time=instant(at_ms),
        )
        fix = f"correct the source and land a new generation: `{command('land')} --new-generation`"
        yield Finding(Level.NOTE, "future", message, None, f"They wait until then. If that time is wrong, {fix}")


def landed_at(rows: Sequence[LedgerRow], number: int) -> int | None:
    """Return when the landing with a number was landed (epoch ms); None if there is no such landing."""
    landed = (row for row in reversed(rows) if row.kind == LANDING and row.body["landing"] <= number)
    row = next(landed, None)
    return row.recorded_at if row and row.body["landing"] == number else None
