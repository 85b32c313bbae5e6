"""Join windows: how far apart in time two records may be to be joined, with a grace period (KIP-328).

A left record at time ``l`` and a right record at time ``r`` are joined if ``l - before <= r <= l + after``. ``before`` and
``after`` are whole milliseconds. One of them may be negative. If ``before`` is negative, all partners are later than ``l``;
if ``after`` is, all are earlier.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from datetime import timedelta

from rewindow.errors import ConfigError
from rewindow.streams.duration import in_words, to_ms
from rewindow.streams.windows.time import grace_of

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class JoinWindows:
    """The time range in which two records are joined: see the rule of this file.

    After its window has ended, a record without a partner waits ``grace_ms`` longer for late partners. The grace period
    excludes no record. A partner that arrives even later is still joined with the records that the other side's store
    retains, as in Kafka.
    """

    before_ms: int
    after_ms: int
    grace_ms: int
    until_ms: int | None = None
    is_eager: bool = False
    """Whether the result of a record without a partner is sent at once instead of when its window closes (deprecated, see
    `of`)."""

    @classmethod
    def of(cls, difference: str | timedelta, *, grace: str | timedelta | None = None) -> JoinWindows:
        """Join records whose timestamps differ by at most ``difference`` (Kafka's ``ofTimeDifferenceAndGrace``).

        A store retains records for before + after + grace. A record expires when the store's newest record is that much
        later. If this sum is 0, no record is retained long enough to be joined, as in Kafka, unless the store is declared
        with a longer retention. If ``grace`` is not given, this is Kafka's deprecated form. The grace period is then one day,
        and a record without a partner is sent with null at once, even if a partner arrives later. Raises `ConfigError` for a
        negative difference or grace.
        """
        difference_ms = to_ms(difference)
        if difference_ms < 0:
            raise ConfigError(
                "join-difference-negative",
                "JoinWindows.of({difference}): the difference must be 0 or more (before() and after() may be less)",
                difference=repr(difference),
            )
        if grace is not None:
            return cls(difference_ms, difference_ms, grace_of("JoinWindows", grace))
        warnings.warn(
            'JoinWindows.of(difference) is deprecated: name the grace, JoinWindows.of(difference, grace="1d")',
            DeprecationWarning,
            stacklevel=2,
        )
        return cls(difference_ms, difference_ms, DAY_MS, is_eager=True)

    def before(self, difference: str | timedelta) -> JoinWindows:
        """Set by how much the right record may be earlier than the left. With a negative difference, it must be later.

        Raises `ConfigError` if the window would end before it starts (before + after < 0).
        """
        return self._checked(replace(self, before_ms=to_ms(difference)), f"before({difference!r})")

    def after(self, difference: str | timedelta) -> JoinWindows:
        """Set by how much the right record may be later than the left. With a negative difference, it must be earlier.

        Raises `ConfigError` if the window would end before it starts (before + after < 0).
        """
        return self._checked(replace(self, after_ms=to_ms(difference)), f"after({difference!r})")

    def until(self, retention: str | timedelta) -> JoinWindows:
        """Set how long the records of both sides are retained.

        Deprecated by KIP-328: retention belongs to the store, ``store=Materialized.as_(name, retention=...)``. Raises
        `ConfigError` for a retention below before + after + grace (in the deprecated form of `of`: below before + after).
        """
        warnings.warn(
            'until() is deprecated (KIP-328): use store=Materialized.as_(name, retention="1d")',
            DeprecationWarning,
            stacklevel=2,
        )
        until_ms = to_ms(retention)
        least_ms = self.size_ms if self.is_eager else self.needed_retention_ms
        if until_ms < least_ms:
            raise ConfigError(
                "join-retention-too-short",
                "until({retention}): the records of a join must be kept for at least {minimum}",
                retention=repr(retention),
                minimum=in_words(least_ms),
            )
        return replace(self, until_ms=until_ms)

    @property
    def size_ms(self) -> int:
        """The time from a record's earliest possible partner to its latest possible partner."""
        return self.before_ms + self.after_ms

    @property
    def needed_retention_ms(self) -> int:
        """The minimum retention of the stores: before + after + grace."""
        return self.size_ms + self.grace_ms

    @property
    def retention_ms(self) -> int:
        """The retention of a store for which the user declares no retention."""
        return self.needed_retention_ms if self.until_ms is None else self.until_ms

    @property
    def holds_ms(self) -> int:
        """The longest time for which a record without a partner is held before its result is sent (D22)."""
        return max(self.before_ms, 0) + max(self.after_ms, 0) + self.grace_ms

    def _checked(self, changed: JoinWindows, call: str) -> JoinWindows:
        if changed.size_ms < 0:
            raise ConfigError(
                "join-window-negative",
                "{call}: the window would end before it starts (before {before}, after {after}): their sum must be "
                "0 or more",
                call=call,
                before=in_words(changed.before_ms),
                after=in_words(changed.after_ms),
            )
        return changed

    def __str__(self) -> str:
        """Return the text for `explain`, which is part of the fingerprint."""
        eager = ", eager" if self.is_eager else ""
        before, after, grace = map(in_words, (self.before_ms, self.after_ms, self.grace_ms))
        return f"before={before}, after={after}, grace={grace}{eager}"
