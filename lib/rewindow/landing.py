"""`land FEED`: what is new in the feed's sources becomes landings. The last place where a clock or an arrival matters.

recover -> look -> plan -> write, log by log -> decide -> publish

Offsets are assigned once: the rows are written as staged files, the driver gives the landings their watermarks, and one
append to the feed's ledger makes all of it true. Killed before, nothing happened; killed after, anybody publishes.
`steps` is a machine, as in `runner`: it yields the name of each step before it does it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Protocol

from rewindow.config import FeedConfig
from rewindow.core.land import (
    Block,
    FeedSpec,
    Intervals,
    LogColumns,
    LogSpec,
    LogWrite,
    ReadWindow,
    Slot,
    SourceLook,
    SourceSpec,
    TimestampPolicy,
)
from rewindow.errors import InvariantError, NotNowError
from rewindow.landing_intervals import Grid, due_intervals
from rewindow.landing_spec import TABLE_FORMATS, feed_spec
from rewindow.liveness import Heartbeat, is_alive, this_attempt
from rewindow.plan.decide_landings import DecidedLanding, LandingRules, Numbering
from rewindow.plan.fold import LedgerRow
from rewindow.plan.generations import Generation, generation_body, next_generation
from rewindow.plan.landings import GENERATION, LANDING, PLAN
from rewindow.plan.progress import Progress, fold_progress
from rewindow.plan.spec import Attempt
from rewindow.plan.watermarks import HeldFile, WatermarkPolicy

_WRITES_MAX = 3

Steps = Generator[str, None, "LandReport"]


class LandingEngine(Protocol):
    """Where sources are read and logs written. Relative paths of sources are below ``project_root``."""

    project_root: str

    def look(self, spec: SourceSpec, position: Mapping[str, Any] | None) -> SourceLook:
        """Return a source of files as it is now, against the position that is landed."""
        ...

    def check_unchanged(self, spec: SourceSpec, look: SourceLook) -> None:
        """Raise if files were changed since they were looked at."""
        ...

    def columns(self, spec: LogSpec, look: SourceLook) -> LogColumns:
        """Decide the typed columns of a log."""
        ...

    def intervals(
        self, spec: LogSpec, columns: LogColumns, look: SourceLook, window: ReadWindow, intervals: Intervals
    ) -> set[int | None]:
        """Return the starts of the intervals in which due rows arrived; None stands for rows without an arrival."""
        ...

    def write(self, write: LogWrite, look: SourceLook, window: ReadWindow) -> list[Block]:
        """Write the due rows as staged files; return what each landing got in each partition."""
        ...


class LandingTables(Protocol):
    """Where the truth is."""

    warehouse: str

    def rows(self, feed: str) -> list[LedgerRow]:
        """Return the feed's landing ledger."""
        ...

    def append(self, feed: str, rows: Sequence[LedgerRow]) -> bool:
        """Append ledger rows at once; whether it is these rows that stand at their numbers now."""
        ...

    def publish_steps(self, feed: str) -> Iterator[str]:
        """Bring log tables and quarantine up to the ledger; yield before each commit."""
        ...

    def look(self, spec: LogSpec, position: Mapping[str, Any] | None, window: ReadWindow) -> SourceLook:
        """Return a source that is a table as it is now, against the position that is landed."""
        ...

    def roots(self, feed: str, topic: str) -> tuple[str, str]:
        """Return the folders of a topic's log and of the quarantine."""
        ...

    def first_above(self, feed: str, file: HeldFile, offset: int, time_ms: int) -> int | None:
        """Return the first offset of a file, from ``offset`` on, with a timestamp above a time."""
        ...

    def sweep(self, feed: str, topics: Sequence[str], attempts: Sequence[str]) -> None:
        """Delete the files of attempts that can never land."""
        ...


@dataclass(frozen=True, slots=True)
class LandRequest:
    """What somebody asks for.

    ``until_ms``: intervals that end later are not complete yet (default: now). ``watermark_ms``: complete through, said
    of the last landing made. ``new_generation`` lands again, all but the first ``keep`` landings.
    """

    now_ms: int
    until_ms: int | None = None
    watermark_ms: int | None = None
    new_generation: bool = False
    keep: int = 0


@dataclass(frozen=True, slots=True)
class LandReport:
    """What a call landed: the landings' numbers, what they hold in all, and the feed's watermark (epoch ms, -1: none)."""

    feed: str
    generation: int
    watermark_ms: int
    landings: tuple[int, ...] = ()
    rows: int = 0
    quarantined: int = 0
    behind: int = 0
    enforced: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary that `json` can write."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Due:
    """What is to be landed: the looks by topic, the window of arrival, the intervals to go through and the guess."""

    looks: Mapping[str, SourceLook]
    columns: Mapping[str, LogColumns]
    window: ReadWindow
    intervals: tuple[tuple[int, int] | None, ...]
    slots: tuple[Slot, ...]


def land(
    config: FeedConfig,
    tables: LandingTables,
    engine: LandingEngine,
    *,
    now_ms: int,
    until_ms: int | None = None,
    watermark_ms: int | None = None,
    new_generation: bool = False,
    keep: int | None = None,
    on_step: Callable[[str], None] | None = None,
) -> LandReport:
    """Land what is new of a feed, as this process.

    ``now_ms`` is the landings' recorded time and the default of ``until_ms``; for the others see `LandRequest`.
    Raises a `RewindowError`: then nothing was landed.
    """
    feed = feed_spec(config, project_root=engine.project_root, warehouse=tables.warehouse)
    request = LandRequest(now_ms, until_ms, watermark_ms, new_generation, keep or 0)
    attempt = this_attempt()
    with Heartbeat(tables.warehouse, attempt):
        return drive(steps(feed, tables, engine, request, attempt, partial(is_alive, tables.warehouse)), on_step)


def drive(machine: Steps, on_step: Callable[[str], None] | None = None) -> LandReport:
    """Drive a machine to its end."""
    while True:
        try:
            step = next(machine)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if on_step is not None:
            on_step(step)


def steps(
    feed: FeedSpec,
    tables: LandingTables,
    engine: LandingEngine,
    request: LandRequest,
    attempt: Attempt,
    alive: Callable[[Attempt], bool],
) -> Steps:
    """Land what is new, step by step. Raises a `RewindowError`: then nothing was landed."""
    yield "recover"
    yield from tables.publish_steps(feed.feed)
    rows = tables.rows(feed.feed)
    progress = fold_progress(rows)
    _refuse_if_alive(feed, progress, attempt, alive)
    generation = next_generation(feed, progress, new_generation=request.new_generation, keep=request.keep)
    if generation.is_new:
        progress = fold_progress(rows, keep=generation.kept)
    yield "look"
    due = _look(feed, tables, engine, request, progress, generation)
    if due is None:
        return LandReport(feed.feed, generation.number, progress.watermark_ms)
    yield "plan"
    _append(feed, tables, [LedgerRow(progress.seq + 1, PLAN, {"attempt": asdict(attempt)}, request.now_ms)])
    if progress.unfinished:
        tables.sweep(feed.feed, [spec.topic for spec in feed.logs], [dead.id for dead in progress.unfinished])
    decided = yield from _write(feed, tables, engine, request, progress, generation, due, attempt)
    if not decided:
        return LandReport(feed.feed, generation.number, progress.watermark_ms)
    yield "decide"
    _append(feed, tables, _ledger_rows(feed, progress, generation, due, decided, attempt, request.now_ms))
    yield "publish"
    yield from tables.publish_steps(feed.feed)
    return _report(feed, generation, decided)


def _report(feed: FeedSpec, generation: Generation, decided: Sequence[DecidedLanding]) -> LandReport:
    landings = [landing.landing for landing in decided]
    counts = {
        what: sum((landing.counts or {}).get(what, 0) for landing in landings)
        for what in ("rows", "quarantined", "behind", "enforced")
    }
    numbers = tuple(landing.number for landing in landings)
    return LandReport(feed.feed, generation.number, landings[-1].watermark_ms, numbers, **counts)


def _refuse_if_alive(feed: FeedSpec, progress: Progress, attempt: Attempt, alive: Callable[[Attempt], bool]) -> None:
    for other in progress.unfinished:
        if (other.host, other.pid, other.pid_started) != (attempt.host, attempt.pid, attempt.pid_started) and alive(
            other
        ):
            message = (
                f"feed {feed.feed} is being landed by process {other.pid} on {other.host}: wait for it, or stop it"
            )
            raise NotNowError(message)


def _look(
    feed: FeedSpec,
    tables: LandingTables,
    engine: LandingEngine,
    request: LandRequest,
    progress: Progress,
    generation: Generation,
) -> _Due | None:
    """Return what is due, or None if there is surely nothing."""
    grid = Grid(*feed.every, zone=feed.zone) if feed.every else None
    window = ReadWindow()
    if grid is not None:
        until_ms = request.now_ms if request.until_ms is None else request.until_ms
        window = ReadWindow(progress.through_ms, grid.start_of(until_ms))
        if window.through_ms is not None and window.through_ms >= grid.start_of(until_ms):
            return None
    looks = {spec.topic: _look_at(spec, tables, engine, progress, generation, window) for spec in feed.logs}
    has_rows = any(look.fresh or (grid and look.rest) for look in looks.values())
    declares = request.watermark_ms is not None and request.watermark_ms > progress.watermark_ms
    if not has_rows and not declares and not feed.interval_end:
        return None
    columns = {
        spec.topic: generation.columns[spec.topic]
        if spec.topic in generation.columns
        else engine.columns(spec, looks[spec.topic])
        for spec in feed.logs
    }
    if grid is None:
        return _Due(looks, columns, window, (None,), (Slot(progress.number + 1),))
    arrivals = partial(_arrivals, feed, engine, looks, columns, window, grid)
    intervals, busy = due_intervals(grid, window, arrivals, all_of_them=feed.interval_end)
    slots = tuple(Slot(number, *interval) for number, interval in enumerate(busy, start=progress.number + 1))
    return _Due(looks, columns, window, tuple(intervals), slots) if intervals else None


def _look_at(
    spec: LogSpec,
    tables: LandingTables,
    engine: LandingEngine,
    progress: Progress,
    generation: Generation,
    window: ReadWindow,
) -> SourceLook:
    """Look at a source. Where landings are kept, what it holds now is taken for known: only later arrivals are due."""
    is_rebased = generation.is_new and window.until_ms is not None and spec.topic in generation.columns
    position = None if is_rebased else progress.positions.get(spec.topic)
    if spec.source.format in TABLE_FORMATS:
        look = tables.look(spec, position, window)
    else:
        look = engine.look(spec.source, position)
    return replace(look, fresh=(), rest=(*look.rest, *look.fresh)) if is_rebased else look


def _arrivals(
    feed: FeedSpec,
    engine: LandingEngine,
    looks: Mapping[str, SourceLook],
    columns: Mapping[str, LogColumns],
    window: ReadWindow,
    grid: Grid,
) -> set[int | None]:
    found = (engine.intervals(spec, columns[spec.topic], looks[spec.topic], window, grid) for spec in feed.logs)
    return set().union(*found)


def _write(
    feed: FeedSpec,
    tables: LandingTables,
    engine: LandingEngine,
    request: LandRequest,
    progress: Progress,
    generation: Generation,
    due: _Due,
    attempt: Attempt,
) -> Generator[str, None, list[DecidedLanding]]:
    """Write the logs under the guessed numbers, decide the landings; once more if the guess was wrong."""
    policy = WatermarkPolicy(feed.max_task_idle_ms, feed.lag_ms, feed.interval_end)
    rules = LandingRules(generation.number, policy, request.now_ms, request.watermark_ms)
    for _ in range(_WRITES_MAX):
        blocks: dict[str, list[Block]] = {}
        for spec in feed.logs:
            yield f"write {spec.topic}"
            write = _log_write(feed, spec, tables, request, progress, generation, due, attempt)
            blocks[spec.topic] = engine.write(write, due.looks[spec.topic], due.window)
            if spec.source.format not in TABLE_FORMATS:
                engine.check_unchanged(spec.source, due.looks[spec.topic])
        numbering = Numbering(progress, rules, partial(tables.first_above, feed.feed))
        decided = numbering.decide(due.intervals, blocks, due.slots)
        slots = tuple(_slot_of(landing) for landing in decided)
        written = {block.landing for topic_blocks in blocks.values() for block in topic_blocks}
        if {slot for slot in due.slots if slot.number in written} <= set(slots):
            return decided
        due = replace(due, slots=slots)
    message = (
        f"feed {feed.feed}: its landings' numbers do not settle, so the source gives other rows each time: mend it"
    )
    raise InvariantError(message)


def _slot_of(decided: DecidedLanding) -> Slot:
    landing = decided.landing
    return Slot(landing.number, *landing.interval) if landing.interval else Slot(landing.number)


def _log_write(
    feed: FeedSpec,
    spec: LogSpec,
    tables: LandingTables,
    request: LandRequest,
    progress: Progress,
    generation: Generation,
    due: _Due,
    attempt: Attempt,
) -> LogWrite:
    log_root, quarantine_root = tables.roots(feed.feed, spec.topic)
    return LogWrite(
        feed=feed.feed,
        generation=generation.number,
        attempt=attempt.id,
        partitions=feed.partitions,
        spec=spec,
        columns=due.columns[spec.topic],
        log_root=log_root,
        quarantine_root=quarantine_root,
        slots=due.slots,
        starts={
            where.partition: (landed.end, landed.max_timestamp)
            for where, landed in progress.ranges.items()
            if where.topic == spec.topic
        },
        policy=TimestampPolicy(spec.invalid, feed.max_ahead_ms),
        now_ms=request.now_ms,
    )


def _ledger_rows(
    feed: FeedSpec,
    progress: Progress,
    generation: Generation,
    due: _Due,
    decided: Sequence[DecidedLanding],
    attempt: Attempt,
    now_ms: int,
) -> list[LedgerRow]:
    positions = {topic: look.position for topic, look in due.looks.items()}
    bodies: list[tuple[str, Mapping[str, Any]]] = []
    if generation.is_new:
        rebased = positions if generation.kept and feed.every else {}
        bodies.append((GENERATION, generation_body(feed, generation, due.columns, rebased)))
    for index, landing in enumerate(decided):
        bodies.append((LANDING, landing.as_json(attempt.id, {} if index else positions)))
    first = progress.seq + 2  # after our own PLAN
    return [LedgerRow(seq, kind, body, now_ms) for seq, (kind, body) in enumerate(bodies, start=first)]


def _append(feed: FeedSpec, tables: LandingTables, rows: Sequence[LedgerRow]) -> None:
    if not tables.append(feed.feed, rows):
        message = f"feed {feed.feed}: another `land` came between. Nothing was landed by this one: run it again"
        raise NotNowError(message)
