"""Windows whose bounds depend on records: sliding windows and sessions. Both ends are inclusive.

A window that ends at 10 includes a record at 10, so it closes one millisecond later than a grid window: once its
operator's clock has passed ``end + grace``, for sessions ``end + gap + grace``. Results are final only then (D10; Kafka's
suppress is a millisecond early).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar

from rewindow.errors import ConfigError
from rewindow.streams.duration import to_ms
from rewindow.streams.state.stores import SESSION
from rewindow.streams.windows.time import Windows, grace_of, until_of


@dataclass(frozen=True, slots=True)
class SlidingWindows(Windows):
    """All records of a key that are at most ``difference`` apart: ``[t - difference, t]`` and ``[t + 1, t + 1 + difference]``.

    A window exists for each distinct set of records (KIP-450). Records before ``difference`` share ``[0, difference]``. A new
    window continues the aggregate of the window before it, as in Kafka Streams. So it lacks a late record that no older window
    took because all that contain it had closed.
    """

    size_ms: int
    grace_ms: int

    @classmethod
    def of(cls, difference: str | timedelta, *, grace: str | timedelta) -> SlidingWindows:
        """Windows of a maximum time difference, which accept late records during the grace period.

        Raises `ConfigError` if one of the two is negative.
        """
        difference_ms = to_ms(difference)
        if difference_ms < 0:
            raise ConfigError(
                "sliding-difference-negative",
                "SlidingWindows.of({difference}): the maximum difference of two timestamps must be 0 or more",
                difference=repr(difference),
            )
        return cls(difference_ms, grace_of("SlidingWindows", grace))

    @property
    def final_after_end_ms(self) -> int:
        """See `Windows`."""
        return self.grace_ms + 1

    @property
    def needed_retention_ms(self) -> int:
        """See `Windows`."""
        return max(1, 2 * self.size_ms + self.grace_ms)

    @property
    def holds_ms(self) -> int:
        """See `Windows`."""
        return self.size_ms + self.final_after_end_ms

    @property
    def durations(self) -> Mapping[str, int]:
        """See `Windows`."""
        return {"difference": self.size_ms, "grace": self.grace_ms}

    def __str__(self) -> str:
        """Return the text for `explain`, which is part of the fingerprint."""
        return f"sliding, {self.in_words()}"


@dataclass(frozen=True, slots=True)
class SessionWindows(Windows):
    """Records of a key without a pause longer than the gap: ``[first, last]``. A record may merge two sessions."""

    gap_ms: int
    grace_ms: int
    until_ms: int | None = None
    size_ms: int = 0

    store_kind: ClassVar[str] = SESSION

    @classmethod
    def of(cls, gap: str | timedelta, *, grace: str | timedelta) -> SessionWindows:
        """Sessions that end after a pause longer than the gap, and accept late records during the grace period.

        Raises `ConfigError` if one of the two is negative.
        """
        gap_ms = to_ms(gap)
        if gap_ms < 0:
            raise ConfigError(
                "session-gap-negative", "SessionWindows.of({gap}): the gap must be 0 or more", gap=repr(gap)
            )
        return cls(gap_ms, grace_of("SessionWindows", grace))

    def until(self, retention: str | timedelta) -> SessionWindows:
        """Keep sessions in their store this long after they end. Deprecated: see `TimeWindows.until`."""
        return replace(self, until_ms=until_of(self, retention))

    @property
    def final_after_end_ms(self) -> int:
        """See `Windows`."""
        return self.gap_ms + self.grace_ms + 1

    @property
    def needed_retention_ms(self) -> int:
        """See `Windows`."""
        return max(1, self.gap_ms + self.grace_ms)

    @property
    def retention_ms(self) -> int:
        """See `Windows`."""
        return self.needed_retention_ms if self.until_ms is None else self.until_ms

    @property
    def holds_ms(self) -> int:
        """See `Windows`. The timestamp of a session's result is its end."""
        return self.final_after_end_ms

    @property
    def durations(self) -> Mapping[str, int]:
        """See `Windows`."""
        return {"gap": self.gap_ms, "grace": self.grace_ms}

    def __str__(self) -> str:
        """Return the text for `explain`, which is part of the fingerprint."""
        return f"session, {self.in_words()}"
