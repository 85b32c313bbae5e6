"""Windows as interval arithmetic: which windows a record belongs to, and when a window closes.

This module has the windows whose starts do not depend on records: tumbling, hopping and unlimited windows. They are intervals
``[start, end)`` in epoch milliseconds, and no window starts before 0. A window closes when its operator's clock reaches
``end + grace``. From then on it accepts no record, and its result is final.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar

from rewindow.errors import ConfigError
from rewindow.streams.duration import in_words, time_to_ms, to_ms
from rewindow.streams.record import MAX_MS, Window, make_window
from rewindow.streams.state.stores import WINDOW


class Windows(ABC):
    """A kind of windows: when their results are final, and how long a store must retain them."""

    __slots__ = ()

    store_kind: ClassVar[str] = WINDOW
    size_ms: int
    """The time from a window's start to its end; 0 for sessions, which have no fixed size."""
    grace_ms: int
    until_ms: int | None = None
    """The retention that the deprecated ``until`` set."""

    @property
    @abstractmethod
    def final_after_end_ms(self) -> int:
        """The result of a window is final when the operator's clock reaches the window's end plus this duration (D10)."""

    @property
    @abstractmethod
    def needed_retention_ms(self) -> int:
        """The minimum retention of a store: size + grace; for sessions, gap + grace; for sliding windows, 2 * size + grace."""

    @property
    def retention_ms(self) -> int:
        """The retention of a store for which the user declares no retention."""
        return self.needed_retention_ms if self.until_ms is None else self.until_ms

    @property
    @abstractmethod
    def holds_ms(self) -> int:
        """The longest time from the first record of a window to the window's final result (D22)."""

    @property
    @abstractmethod
    def durations(self) -> Mapping[str, int]:
        """The durations that define the windows, in milliseconds by name (`streams.timing.Timing`)."""

    def in_words(self) -> str:
        """Return the durations as text, which is part of the fingerprint."""
        return ", ".join(f"{name}={in_words(ms)}" for name, ms in self.durations.items())


class GridWindows(Windows):
    """Windows that start at fixed times."""

    __slots__ = ()

    @property
    @abstractmethod
    def closes_after_ms(self) -> int:
        """The time from a window's start until it closes."""

    @abstractmethod
    def starts(self, timestamp: int) -> Sequence[int]:
        """Return the starts of the windows that include a timestamp, in ascending order."""

    @abstractmethod
    def window(self, start_ms: int) -> Window:
        """Return the window with this start."""


@dataclass(frozen=True, slots=True)
class TimeWindows(GridWindows):
    """Tumbling windows, or hopping windows with `advance_by`. The grace period is part of their definition (KIP-328)."""

    size_ms: int
    advance_ms: int
    grace_ms: int
    until_ms: int | None = None

    @classmethod
    def of(cls, size: str | timedelta, *, grace: str | timedelta) -> TimeWindows:
        """Return tumbling windows of a size, which accept late records during the grace period (``"0s"``: no grace period).

        Raises `ConfigError` for a size below 1 ms or a negative grace.
        """
        size_ms = to_ms(size)
        if size_ms < 1:
            raise ConfigError(
                "window-size-too-small",
                "TimeWindows.of({size}): a window must be at least 1 ms long",
                size=repr(size),
            )
        return cls(size_ms, size_ms, grace_of("TimeWindows", grace))

    def advance_by(self, advance: str | timedelta) -> TimeWindows:
        """Return hopping windows of the same size, one of which starts every ``advance``.

        Raises `ConfigError` unless 0 < advance <= size.
        """
        advance_ms = to_ms(advance)
        if not 0 < advance_ms <= self.size_ms:
            raise ConfigError(
                "window-advance-invalid",
                "advance_by({advance}): the advance must be more than 0 and at most the size, {size}",
                advance=repr(advance),
                size=in_words(self.size_ms),
            )
        return replace(self, advance_ms=advance_ms)

    def until(self, retention: str | timedelta) -> TimeWindows:
        """Set how long windows stay in their store after their start.

        Deprecated by KIP-328: retention belongs to the store, ``Materialized.as_(name, retention=...)``.
        Raises `ConfigError` for less than size + grace.
        """
        return replace(self, until_ms=until_of(self, retention))

    @property
    def closes_after_ms(self) -> int:
        """See `GridWindows`: size + grace."""
        return self.size_ms + self.grace_ms

    @property
    def final_after_end_ms(self) -> int:
        """See `Windows`."""
        return self.grace_ms

    @property
    def needed_retention_ms(self) -> int:
        """See `Windows`."""
        return self.closes_after_ms

    @property
    def holds_ms(self) -> int:
        """See `Windows`."""
        return self.closes_after_ms

    def starts(self, timestamp: int) -> range:
        """See `GridWindows`."""
        first_start = max(0, timestamp - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        return range(first_start, timestamp + 1, self.advance_ms)

    def window(self, start_ms: int) -> Window:
        """See `GridWindows`."""
        return make_window((start_ms, start_ms + self.size_ms, False))

    @property
    def durations(self) -> Mapping[str, int]:
        """See `Windows`."""
        return {"size": self.size_ms, "advance": self.advance_ms, "grace": self.grace_ms}

    def __str__(self) -> str:
        """Return the text for `explain`, which is part of the fingerprint."""
        return self.in_words()


@dataclass(frozen=True, slots=True)
class UnlimitedWindows(GridWindows):
    """A single window that never closes: all records from a start on. Earlier records are in no window, but are not late.

    The window has no grace period and never expires. Its result is final only in a final run (D18).
    """

    start_ms: int = 0
    size_ms: int = MAX_MS
    grace_ms: int = 0

    final_after_end_ms: ClassVar[int] = 0
    holds_ms: ClassVar[int] = MAX_MS
    needed_retention_ms: ClassVar[int] = MAX_MS
    closes_after_ms: ClassVar[int] = MAX_MS + 1
    """A time that no clock reaches."""

    @classmethod
    def of(cls) -> UnlimitedWindows:
        """Return the window of all records since 1970-01-01T00:00Z."""
        return cls()

    def start_on(self, start: str | int | timedelta) -> UnlimitedWindows:
        """Set the start: epoch milliseconds, or a duration since 1970. Raises `ConfigError` for a negative start."""
        start_ms = time_to_ms(start)
        if start_ms < 0:
            raise ConfigError(
                "window-start-negative",
                "start_on({start}): a window cannot start before 1970-01-01T00:00Z, which is 0",
                start=repr(start),
            )
        return UnlimitedWindows(start_ms, MAX_MS - start_ms)

    def starts(self, timestamp: int) -> tuple[int, ...]:
        """See `GridWindows`."""
        return (self.start_ms,) if timestamp >= self.start_ms else ()

    def window(self, start_ms: int) -> Window:
        """See `GridWindows`."""
        return make_window((start_ms, MAX_MS, False))

    @property
    def durations(self) -> Mapping[str, int]:
        """See `Windows`. An unlimited window has no durations."""
        return {}

    def __str__(self) -> str:
        """Return the text for `explain`, which is part of the fingerprint."""
        return f"unlimited, start={self.start_ms}"


def grace_of(kind: str, grace: str | timedelta) -> int:
    """Return a grace period in milliseconds. ``kind`` is the class of the windows, for messages.

    Raises `ConfigError` for a negative grace period.
    """
    grace_ms = to_ms(grace)
    if grace_ms < 0:
        raise ConfigError(
            "window-grace-negative",
            "{windows}.of(grace={grace}): the grace must be 0 or more",
            windows=kind,
            grace=repr(grace),
        )
    return grace_ms


def until_of(windows: Windows, retention: str | timedelta) -> int:
    """Return the retention (ms) given to the deprecated ``until``, and warn. Raises `ConfigError` if it is too short."""
    warnings.warn(
        'until() is deprecated (KIP-328): use store=Materialized.as_(name, retention="1d")',
        DeprecationWarning,
        stacklevel=3,
    )
    until_ms = to_ms(retention)
    if until_ms < windows.needed_retention_ms:
        raise ConfigError(
            "window-retention-too-short",
            "until({retention}): windows must be kept for at least {minimum}, with grace",
            retention=repr(retention),
            minimum=in_words(windows.needed_retention_ms),
        )
    return until_ms
