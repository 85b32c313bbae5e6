"""Windows as interval arithmetic: which windows a record belongs to, and when a window is closed.

All windows are ``[start, end)`` in epoch milliseconds; none starts before 0. A window is closed once the clock that
its operator keeps has reached ``end + grace``: at exactly that time it takes no record any more and its result is final.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta

from rewindow.core.duration import to_ms
from rewindow.core.record import Window, make_window
from rewindow.errors import ConfigError


class Windows(ABC):
    """What every kind of window says of itself: when its result is final, and for how long a store must keep it."""

    __slots__ = ()

    grace_ms: int

    @property
    @abstractmethod
    def final_after_end_ms(self) -> int:
        """A window's result can change no more once its operator's clock has reached the window's end plus this (D10)."""

    @property
    @abstractmethod
    def needed_retention_ms(self) -> int:
        """The least retention of a store that keeps every window for as long as it may change."""

    @property
    @abstractmethod
    def holds_ms(self) -> int:
        """The longest that a final result lies behind the first record of its window (D22)."""


@dataclass(frozen=True, slots=True)
class TimeWindows(Windows):
    """Tumbling windows, or hopping ones with `advance_by` (KIP-328: grace is part of the window's definition)."""

    size_ms: int
    advance_ms: int
    grace_ms: int

    @classmethod
    def of(cls, size: str | timedelta, *, grace: str | timedelta) -> TimeWindows:
        """Windows of a size that take late records for as long as the grace says (``"0s"`` for none).

        Raises `ConfigError` for a size below 1 ms or a negative grace.
        """
        size_ms, grace_ms = to_ms(size), to_ms(grace)
        if size_ms < 1:
            message = f"TimeWindows.of({size!r}): a window is at least 1 ms long"
            raise ConfigError(message)
        if grace_ms < 0:
            message = f"TimeWindows.of(grace={grace!r}): the grace is 0 or more"
            raise ConfigError(message)
        return cls(size_ms, size_ms, grace_ms)

    def advance_by(self, advance: str | timedelta) -> TimeWindows:
        """Hopping windows: one starts every ``advance``.

        Raises `ConfigError` unless 0 < advance <= size.
        """
        advance_ms = to_ms(advance)
        if not 0 < advance_ms <= self.size_ms:
            message = f"advance_by({advance!r}): the advance is more than 0 and at most the size, {self.size_ms} ms"
            raise ConfigError(message)
        return TimeWindows(self.size_ms, advance_ms, self.grace_ms)

    @property
    def closes_after_ms(self) -> int:
        """How long after a window's start it is closed: size + grace."""
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
        """Return the starts of the windows that hold a timestamp, ascending."""
        first = max(0, timestamp - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        return range(first, timestamp + 1, self.advance_ms)

    def window(self, start_ms: int) -> Window:
        """Return the window that starts then."""
        return make_window((start_ms, start_ms + self.size_ms, False))
