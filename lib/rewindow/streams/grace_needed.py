"""The grace that late records needed, counted in few buckets, so that people can choose a grace period.

A record needs grace if it arrives after the end of its last window: the smallest grace with which that window still takes it.
Records that need none are not counted, so a log in order costs nothing. Buckets of tasks and runs add up.
"""

from __future__ import annotations

from bisect import bisect_left

from rewindow.streams.duration import in_words, to_ms

BOUNDS_MS = tuple(
    to_ms(text)
    for text in (
        *("1s", "5s", "10s", "30s", "1m", "2m", "5m", "10m", "15m", "30m"),
        *("1h", "2h", "3h", "6h", "12h", "1d", "2d", "3d", "7d", "14d", "30d"),
    )
)
"""The upper bounds of the buckets, inclusive. One more bucket takes what is beyond."""

BUCKETS = (*(f"up-to-{in_words(bound)}" for bound in BOUNDS_MS), f"over-{in_words(BOUNDS_MS[-1])}")
"""The names of the buckets, which are the reasons of the metric ``grace-needed``, from the least grace to the most."""


def rank_of(reason: str) -> tuple[int, str]:
    """Return the key by which reasons of a metric are sorted: buckets by their grace, other reasons by their text."""
    return (BUCKETS.index(reason), "") if reason in BUCKETS else (len(BUCKETS), reason)


def bucket_of(grace_ms: int) -> str:
    """Return the bucket of a grace that a record needed."""
    return BUCKETS[bisect_left(BOUNDS_MS, grace_ms)]
