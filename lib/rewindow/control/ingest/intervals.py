"""The intervals of arrival into which `land` cuts a growing source: ``every: 1h``, ``every: 1mo``, in the feed's time zone.

Hours and smaller units divide the local day, so an interval starts whenever the local clock shows a multiple of the length. On
a day when clocks change, an interval is shorter or longer. A length that does not divide a day (``5h``) is counted from 1970 in
UTC. Days, weeks (from Monday), months and years follow the local calendar. The intervals depend only on unit, count, zone and
rule, never on the data or on when `land` is called.

With ``every``, a landed file may have later rows: rows of an interval that is not over yet. The position of the source records,
for each file, when the first later row arrived. So neither the next landing nor `status` has to read a landed file only to find
that none of its rows is due (ADR-122).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice
from typing import Any

from rewindow.contracts.ingest import DAY_GRID, LATER, FeedSpec, ReadWindow, SourceLook
from rewindow.errors import ConfigError, LimitError, WarningMessage
from rewindow.streams.windows.zone_table import UTC, ZoneTable, month_start_ms

_INTERVALS_MAX = 100_000
_FIXED_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_DAY = 86_400_000
_1970 = datetime(1970, 1, 1)  # noqa: DTZ001 - a local time
_DAYS = {"d": 1, "w": 7}
_MONTHS = {"mo": 1, "y": 12}
_MONDAY = 4 * _DAY
"""1970-01-05, a Monday."""
_Later = Mapping[str, int]
"""Maps each landed file with unlanded rows to the first arrival of these rows (epoch ms)."""


@dataclass(frozen=True)
class Grid:
    """All intervals of ``count`` units: half-open, without gaps, with bounds in epoch ms. ``rule``: see `FeedSpec.grid`."""

    count: int
    unit: str
    zone: str = "UTC"
    rule: str = DAY_GRID
    _clock: ZoneTable = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Raise `ConfigError` (78) for an unknown unit or zone."""
        if self.count < 1 or self.unit not in {**_FIXED_MS, **_DAYS, **_MONTHS}:
            units = ", ".join((*_FIXED_MS, *_DAYS, *_MONTHS))
            raise ConfigError(
                "interval-unknown",
                "every: {count}{unit} is not an interval: use a whole number and one of {units}",
                count=self.count,
                unit=self.unit,
                units=units,
            )
        object.__setattr__(self, "_clock", UTC if self.zone == UTC.zone else _clock_of(self.zone))

    def start_of(self, time_ms: int) -> int:
        """Return the start of the interval that contains a time."""
        if self.unit not in _FIXED_MS:
            return self._calendar_start(self._index_of(time_ms))
        if self._divides_days:
            return self._clock_start(time_ms)
        return time_ms - (time_ms - self._origin_ms) % self._length_ms

    def after(self, start_ms: int) -> int:
        """Return the end of the interval that contains a time, which is the start of the next interval."""
        if self.unit not in _FIXED_MS:
            return self._calendar_start(self._index_of(start_ms) + 1)
        if self._divides_days:
            return self._clock_end(start_ms)
        return self.start_of(start_ms) + self._length_ms

    def starts(self, first_ms: int, until_ms: int) -> Iterator[int]:
        """Yield the starts of intervals, from the one that contains ``first_ms`` to the last one that ends by ``until_ms``."""
        start = self.start_of(first_ms)
        while (end := self.after(start)) <= until_ms:
            yield start
            start = end

    def local_time(self, time_ms: int) -> datetime:
        """Return what the clock of the zone shows at a time."""
        return _1970 + timedelta(milliseconds=self._clock.wall_ms(time_ms))

    @cached_property
    def _length_ms(self) -> int:
        return self.count * _FIXED_MS[self.unit]

    @cached_property
    def _divides_days(self) -> bool:
        return self.rule == DAY_GRID and _DAY % self._length_ms == 0

    @cached_property
    def _origin_ms(self) -> int:
        return 0 if self.rule == DAY_GRID else self._clock.instant_ms(0)

    def _clock_start(self, time_ms: int) -> int:
        """Return the last time, at or before ``time_ms``, at which the clock showed or skipped a multiple of the length."""
        while True:
            start = time_ms - self._clock.wall_ms(time_ms) % self._length_ms
            change = self._clock.last_change_ms(start, time_ms)
            if change is None:
                return start
            if self._is_passed(change):
                return change
            time_ms = change - 1

    def _clock_end(self, time_ms: int) -> int:
        """Return the first time after ``time_ms`` at which the clock shows or skips a multiple of the length."""
        while True:
            end = time_ms - self._clock.wall_ms(time_ms) % self._length_ms + self._length_ms
            change = self._clock.first_change_ms(time_ms, end)
            if change is None:
                return end
            if self._is_passed(change):
                return change
            time_ms = change

    def _is_passed(self, change_ms: int) -> bool:
        """Return whether the clock, when it changes, shows a multiple of the length or skips one."""
        before, after = self._clock.wall_ms(change_ms - 1) + 1, self._clock.wall_ms(change_ms)
        return after % self._length_ms == 0 or -(-before // self._length_ms) * self._length_ms < after

    def _calendar_start(self, index: int) -> int:
        number = index * self.count
        if self.unit in _MONTHS:
            return self._clock.instant_ms(month_start_ms(number * _MONTHS[self.unit]))
        return self._clock.instant_ms((_MONDAY if self.unit == "w" else 0) + number * _DAYS[self.unit] * _DAY)

    def _index_of(self, time_ms: int) -> int:
        """Return the number of the calendar interval that contains a time."""
        days = self._clock.wall_ms(time_ms) // _DAY
        # An estimate by the mean length of a month, which is corrected below.
        length = _DAYS[self.unit] if self.unit in _DAYS else _MONTHS[self.unit] * 146_097 / 4800
        index = int((days - (4 if self.unit == "w" else 0)) // (self.count * length))
        while self._calendar_start(index) > time_ms:
            index -= 1
        while self._calendar_start(index + 1) <= time_ms:
            index += 1
        return index


def _clock_of(zone: str) -> ZoneTable:
    from rewindow.storage.zone_data import read_zone  # noqa: PLC0415 - most feeds are in UTC

    return read_zone(zone)


def grid_of(feed: FeedSpec) -> Grid:
    """Return the intervals of a feed. Raises `ConfigError` (78) as `Grid`."""
    return Grid(*(feed.every or (1, "d")), zone=feed.zone, rule=feed.grid)


def kept_grid(feed: FeedSpec, now_ms: int) -> WarningMessage | None:
    """Return a warning if a feed keeps intervals that a new feed with these settings would not have, otherwise None."""
    kept, new = grid_of(feed), grid_of(replace(feed, grid=DAY_GRID))
    # These times are half a year apart, so one of them is in summer time if the zone has it.
    times = [now_ms, now_ms + 182 * _DAY]
    if [kept.start_of(time) for time in times] == [new.start_of(time) for time in times]:
        return None
    count, unit = feed.every or (1, "d")
    start, divided = (grid.start_of(now_ms) for grid in (kept, new))
    now, then = (f"{kept.local_time(ms):%Y-%m-%d %H:%M}" for ms in (start, divided))
    return WarningMessage(
        "intervals-of-earlier-landings",
        "feed {feed} keeps the intervals of its earlier landings. With `every: {every}` the present one began at {begin} {zone}, "
        "although intervals divide the local day now, so that it would have begun at {divided}. `rewindow land {feed} "
        "--new-generation` lands everything again in those",
        feed=feed.feed,
        every=f"{count}{unit}",
        begin=now,
        zone=feed.zone,
        divided=then,
    )


@dataclass(frozen=True)
class Epochs:
    """The epochs of another job as intervals: ``[n, n + 1)`` for epoch ``n``."""

    def start_of(self, time_ms: int) -> int:
        """Return the epoch itself."""
        return time_ms

    def after(self, start_ms: int) -> int:
        """Return the next epoch."""
        return start_ms + 1

    def starts(self, first_ms: int, until_ms: int) -> Iterator[int]:
        """Yield the epochs from the first to the last, exclusive."""
        yield from range(first_ms, until_ms)


@dataclass(frozen=True, slots=True)
class Idleness:
    """The rule by which the watermark may rise without rows: a topic-partition has delivered nothing for ``idle_ms``.

    ``idle_ms`` is 0 or None if the watermark does not rise without rows (see `WatermarkPolicy`). ``delivered_ms``: the landing
    times at which each topic-partition last delivered.
    """

    idle_ms: int | None = 0
    delivered_ms: tuple[int, ...] = ()


def due_intervals(
    grid: Grid | Epochs,
    window: ReadWindow,
    arrivals: Callable[[], Collection[int | None]],
    *,
    all_of_them: bool,
    idleness: Idleness = Idleness(),
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the intervals that a call decides, and the intervals expected to become landings, as pairs ``(start, end)``.

    ``arrivals`` returns the starts of the intervals with due rows. It scans the sources, so it is called only if needed. Rows
    that arrived before ``window.through_ms`` or without an arrival time belong to the first interval.

    With ``all_of_them`` every interval becomes a landing, even without rows. Otherwise the call skips intervals that have no
    rows and cannot raise the watermark, because old data may have years of empty hours. Raises `LimitError` (71) for more than
    `_INTERVALS_MAX` intervals.
    """
    until = window.until_ms or 0
    arrived: Collection[int | None] = ()
    first_start = window.through_ms
    if first_start is None:
        arrived = arrivals()
        first_start = min((start for start in arrived if start is not None), default=None)
        if first_start is None:
            return [], []
    first_start = grid.start_of(first_start)
    if grid.after(first_start) > until:
        return [], []
    if all_of_them or isinstance(grid, Epochs):
        starts = _few(grid, list(islice(grid.starts(first_start, until), _INTERVALS_MAX + 1)))
        busy = set(starts)
        if not all_of_them and len(starts) > 1:
            busy = _busy(first_start, arrived if window.through_ms is None else arrivals())
    else:
        last_start = grid.start_of(grid.start_of(until) - 1)
        is_only = first_start == last_start and window.through_ms is not None
        busy = {first_start} if is_only else _busy(first_start, arrived if window.through_ms is None else arrivals())
        starts = _sparse(grid, first_start, last_start, busy, idleness)
    intervals = [(start, grid.after(start)) for start in starts]
    return intervals, [interval for interval in intervals if interval[0] in busy]


def later_rows(position: Mapping[str, Any] | None) -> _Later | None:
    """Return the later rows that a source's position records, by file. If it records none, return None: any file may have some.

    For a table the result is always None. Its position lists commits, in which `look_at_table` finds the later rows again.
    """
    later = None if position is None else position.get(LATER)
    return later if isinstance(later, Mapping) else None


def without_finished(look: SourceLook, position: Mapping[str, Any] | None, until_ms: int) -> SourceLook:
    """Return the inspected files without those landed files that, by the position, have no later row before ``until_ms``."""
    later = later_rows(position)
    if later is None:
        return look
    return replace(look, rest=tuple(piece for piece in look.rest if later.get(piece.name, until_ms) < until_ms))


def with_later(look: SourceLook, position: Mapping[str, Any] | None, later: _Later) -> SourceLook:
    """Return the inspected source. Its position then records the later rows of all landed files.

    ``later`` has the later rows of the inspected files. For other files they come from ``position``, the position before this
    landing.
    """
    looked_at = {piece.name for piece in (*look.rest, *look.fresh)}
    kept = {name: arrival_ms for name, arrival_ms in (later_rows(position) or {}).items() if name not in looked_at}
    return replace(look, position={**look.position, LATER: dict(sorted({**kept, **later}.items()))})


def _busy(first: int, starts: Collection[int | None]) -> set[int]:
    """Return the starts of intervals with due rows. Rows from before ``first`` or without an arrival count for ``first``."""
    return {first if start is None or start < first else start for start in starts}


def _sparse(grid: Grid, first: int, last: int, busy: Collection[int], idleness: Idleness) -> list[int]:
    """Return the starts of the first and last interval, of those with rows, and of those in which a partition becomes idle."""
    starts = {first, last, *busy}
    if idleness.idle_ms:
        delivered = (*idleness.delivered_ms, *(grid.after(start) for start in busy))
        # An idle topic-partition may raise the watermark in the first interval that ends at or after delivery plus `idle_ms`.
        starts |= {grid.start_of(time + idleness.idle_ms - 1) for time in delivered}
    return _few(grid, sorted(start for start in starts if first <= start <= last))


def _few(grid: Grid | Epochs, starts: list[int]) -> list[int]:
    """Return the starts unchanged, unless there are too many.

    Raises `LimitError` (71) for more than `_INTERVALS_MAX`.
    """
    if len(starts) > _INTERVALS_MAX:
        raise LimitError(
            "intervals-too-many",
            "more than {limit} intervals ({every}) between the first arrival and --until: check "
            "`arrived_at`, choose a longer `every:`, or land in steps with --until",
            limit=_INTERVALS_MAX,
            every=grid,
        )
    return starts
