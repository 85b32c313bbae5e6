"""Windows in local time, with timestamps around clock changes, as strategies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from rewindow import CalendarWindows
from rewindow.testing import Epoch

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
CHANGES = {
    "Europe/Berlin": [1_269_738_000_000, 1_288_486_800_000],
    "Pacific/Apia": [1_325_239_200_000, 1_301_752_800_000],
    "Australia/Lord_Howe": [1_270_306_800_000, 1_286_033_400_000],
}
"""Instants at which clocks change, forward or back."""


@dataclass(frozen=True)
class Shape:
    """Arguments of `CalendarWindows.of`, and how far times should be apart."""

    step_ms: int
    size: str
    advance: str | None = None
    offset: str = "0s"


SHAPES = [
    Shape(10 * MINUTE, "30m"),
    Shape(10 * MINUTE, "60m", "30m", "10m"),
    Shape(HOUR, "6h"),
    Shape(4 * HOUR, "1d"),
    Shape(3 * HOUR + MINUTE // 2, "1d", None, "2h30m"),
    Shape(8 * HOUR, "7d", "1d"),
    Shape(4 * DAY, "1mo"),
    Shape(20 * DAY, "3q", "1q"),
]


@dataclass(frozen=True)
class Timed:
    """Windows, and how to turn small numbers into times on a grid around a clock change, and next to this grid."""

    zone: str
    shape: Shape
    grace: str
    change_ms: int
    before: int
    """How many steps the number 0 is before the change."""

    @property
    def windows(self) -> CalendarWindows:
        shape = self.shape
        return CalendarWindows.of(
            shape.size, zone=self.zone, advance=shape.advance, offset=shape.offset, grace=self.grace
        )

    def time(self, number: int) -> int:
        """Return a time. It never decreases when numbers increase."""
        return self.change_ms + (number // 3 - self.before) * self.shape.step_ms + number % 3 - 1


def timed(zones: Callable[[str], bool] = lambda _zone: True) -> st.SearchStrategy[Timed]:
    """Draw windows in one of some zones."""
    changes = st.sampled_from([(zone, at) for zone, instants in CHANGES.items() if zones(zone) for at in instants])
    graces = st.sampled_from(["0s", "0s", "1h", "1d", "10d"])
    kinds = st.tuples(changes, st.sampled_from(SHAPES), graces, st.integers(0, 40))
    return kinds.map(lambda drawn: Timed(drawn[0][0], drawn[1], drawn[2], drawn[0][1], drawn[3]))


def with_times(times: Timed, given_epochs: list[Epoch]) -> list[Epoch]:
    """Return epochs of `testing.strategies`, whose small numbers become times."""
    return [
        replace(
            one,
            records=tuple((*record, times.time(number)) for *record, number in one.records),
            watermark_ms=one.watermark_ms if one.watermark_ms < 0 else times.time(one.watermark_ms),
        )
        for one in given_epochs
    ]
