"""Facts of Beam's trigger transcripts: the elements, the watermarks and the panes that are expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

SOURCE = "https://github.com/apache/beam/blob/3f6f37c71e90c33c65ea9f0cc3784a1f33409211/sdks/python/apache_beam/testing/data/trigger_transcripts.yaml"


class Elements(NamedTuple):
    """Elements of one bundle. An element is its own timestamp."""

    times: Sequence[int]


class Watermark(NamedTuple):
    time: int


class Pane(NamedTuple):
    """The window's first and last millisecond, its elements, and the pane's time, or None if it is not compared."""

    first: int
    last: int
    elements: Sequence[int]
    time: int | None = None


class Panes(NamedTuple):
    """All panes since the last `Panes`."""

    panes: Sequence[Pane]


@dataclass(frozen=True)
class Published:
    """``final``: a window has one pane. ``time`` is Beam's timestamp combiner."""

    steps: Sequence[Elements | Watermark | Panes]
    windows: str = "fixed"
    final: bool = True
    time: str = "latest"
    lateness: int = 0


def combined(time: str, first: int, second: int, third: int) -> Published:
    """Return the case that all timestamp combiners share; only the times of its panes differ."""
    panes = [Pane(0, 9, [1, 2, 3], first), Pane(10, 19, [10, 11], second), Pane(20, 29, [25], third)]
    return Published([Elements([1, 2, 3, 10, 11, 25]), Watermark(100), Panes(panes)], time=time)


CASES = {
    "fixed_default": Published(
        [Elements([1, 2, 3, 10, 11]), Watermark(25), Panes([Pane(0, 9, [1, 2, 3]), Pane(10, 19, [10, 11])])]
    ),
    "fixed_default_late_data": Published(
        [
            Elements([1, 2, 3, 10, 11, 25]),
            Watermark(100),
            Panes([Pane(0, 9, [1, 2, 3], 9), Pane(10, 19, [10, 11], 19), Pane(20, 29, [25], 29)]),
            Elements([7]),
            Panes([Pane(0, 9, [1, 2, 3, 7], 9)]),
        ],
        final=False,
        time="end",
        lateness=100,
    ),
    "fixed_drop_late_data_after_allowed_lateness": Published(
        [
            Elements([1, 2, 10, 11, 80, 81]),
            Watermark(100),
            Panes([Pane(0, 9, [1, 2], 9), Pane(10, 19, [10, 11], 19), Pane(80, 89, [80, 81], 89)]),
            Elements([7, 8]),
            Panes([]),
            Elements([17, 18]),
            Panes([]),
            Elements([82]),
            Panes([Pane(80, 89, [80, 81, 82], 89)]),
        ],
        final=False,
        time="end",
        lateness=20,
    ),
    "timestamp_combiner_earliest": combined("earliest", 1, 10, 25),
    "timestamp_combiner_latest": combined("latest", 3, 11, 25),
    "timestamp_combiner_custom_timestamping_eow": combined("end", 9, 19, 29),
    "timestamp_combiner_custom_timestamping_earliest": combined("earliest", 1, 10, 25),
    "early_late_sessions": Published(
        [
            Elements([1, 2]),
            Panes([Pane(1, 11, [1, 2], 11)]),
            Elements([3]),
            Elements([4]),
            Panes([Pane(1, 13, [1, 2, 3, 4], 13)]),
            Elements([5]),
            Watermark(100),
            Panes([Pane(1, 14, [1, 2, 3, 4, 5], 14)]),
            Elements([1]),
            Elements([3, 4]),
            Panes([Pane(1, 14, [1, 1, 2, 3, 3, 4, 4, 5], 14)]),
        ],
        windows="sessions",
        final=False,
        time="end",
        lateness=100,
    ),
    "known_late_data_watermark": Published(
        [Watermark(5), Elements([2, 3, 7, 8]), Watermark(11), Panes([Pane(0, 9, [2, 3, 7, 8])])], time="earliest"
    ),
    "known_late_data_no_watermark_hold_possible": Published(
        [Watermark(8), Elements([2, 3, 7]), Watermark(11), Panes([Pane(0, 9, [2, 3, 7])])], time="earliest"
    ),
}


class Collected(NamedTuple):
    """Which windows are in Beam's state, and which are no more, after the elements."""

    elements: Sequence[int]
    lateness: int
    present: tuple[int, int]
    absent: tuple[int, int]


COLLECTED = Collected([1, 2, 3, 10, 11, 25], lateness=10, present=(20, 29), absent=(0, 9))
