"""Windows whose bounds depend on records: sliding windows and sessions. They include both bounds.

A window that ends at 10 includes a record at 10. So it closes one millisecond later than a time window with the same end. A
sliding window closes when the operator's clock is greater than ``end + grace``, a session when the clock is greater than
``end + gap + grace``. Results are final only then (D10; Kafka's suppress sends them a millisecond early).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from typing import ClassVar

from rewindow.errors import ConfigError
from rewindow.streams.duration import to_ms
from rewindow.streams.state.stores import SESSION
from rewindow.streams.windows.time import Windows, grace_of, until_of


@dataclass(frozen=True, slots=True)
class SlidingWindows(Windows):
    """Windows of records of a key that are at most ``difference`` apart (KIP-450).

    A record at ``t`` makes the windows ``[t - difference, t]`` and ``[t + 1, t + 1 + difference]``, if they contain records.
    Records before ``difference`` share the window ``[0, difference]``. A new window starts with the aggregate of an earlier
    window that overlaps it, as in Kafka Streams. So a late record that the earlier windows did not accept, because they had
    closed, is missing in the new window.
    """

    size_ms: int
    grace_ms: int

    @classmethod
    def of(cls, difference: str | timedelta, *, grace: str | timedelta) -> SlidingWindows:
        """Return sliding windows with a maximum time difference, which accept late records during the grace period.

        Raises `ConfigError` for a negative difference or grace.
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
    """Sessions: records of a key without a pause longer than the gap. Bounds are the times of the first and last record.

    A record between two sessions may merge them.
    """

    gap_ms: int
    grace_ms: int
    until_ms: int | None = None
    size_ms: int = 0

    store_kind: ClassVar[str] = SESSION

    @classmethod
    def of(cls, gap: str | timedelta, *, grace: str | timedelta) -> SessionWindows:
        """Return sessions that end with a pause longer than the gap, and that accept late records during the grace period.

        Raises `ConfigError` for a negative gap or grace.
        """
        gap_ms = to_ms(gap)
        if gap_ms < 0:
            raise ConfigError(
                "session-gap-negative", "SessionWindows.of({gap}): the gap must be 0 or more", gap=repr(gap)
            )
        return cls(gap_ms, grace_of("SessionWindows", grace))

    def until(self, retention: str | timedelta) -> SessionWindows:
        """Set how long sessions stay in their store after their end. Deprecated: see `TimeWindows.until`."""
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


def sliding_starts(times: Iterable[int], time_ms: int, size_ms: int) -> list[int]:
    """Return the starts of those sliding windows of some records that contain a time."""
    return [start for start in all_sliding_starts(times, size_ms) if start <= time_ms <= start + size_ms]


def all_sliding_starts(times: Iterable[int], size_ms: int) -> list[int]:
    """Return the starts of the sliding windows of some records. Each window ends with a record, or begins right after one."""
    ordered = sorted(set(times))
    starts = {max(time - size_ms, 0) for time in ordered}
    starts |= {time + 1 for time, following in pairwise(ordered) if following <= time + 1 + size_ms}
    return sorted(starts)
