"""The settings that change output values (`conf/jobs`, ``semantics``). They are part of a job's fingerprint."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rewindow.errors import ConfigError


class StreamTime(StrEnum):
    """Which time of its topic-partitions is a task's (D1)."""

    MAX = "max"
    """The highest timestamp taken."""
    MIN = "min"
    """The smallest partition time, -1 while one topic-partition has had no record: KIP-138's definition."""


class StreamTimeFrom(StrEnum):
    """What moves stream time and the nodes' clocks (D22)."""

    RECORDS = "records"
    WATERMARK = "watermark"
    """Records, and at an epoch's end its watermark."""


class WallClock(StrEnum):
    """How the simulated wall clock moves (D8)."""

    STREAM_TIME = "stream_time"
    """It glides after the largest timestamp or watermark taken; each punctuation fires at its own due time."""
    RUN = "run"
    """It jumps once, when a run's records are done; each schedule that is due fires once."""


@dataclass(frozen=True, slots=True)
class Semantics:
    """How time goes in a job. Words are taken for the enums' values. Raises `ConfigError` (78) for any other word."""

    stream_time: StreamTime | str = StreamTime.MAX
    stream_time_from: StreamTimeFrom | str = StreamTimeFrom.RECORDS
    wall_clock: WallClock | str = WallClock.STREAM_TIME

    def __post_init__(self) -> None:
        for name, kind in (
            ("stream_time", StreamTime),
            ("stream_time_from", StreamTimeFrom),
            ("wall_clock", WallClock),
        ):
            given = getattr(self, name)
            if given not in list(kind):
                words = ", ".join(kind)
                raise ConfigError(f"semantics: {name} is one of {words}, not {given!r}")
            object.__setattr__(self, name, kind(given))
