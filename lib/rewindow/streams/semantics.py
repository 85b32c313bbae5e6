"""The settings that affect results (`conf/jobs`, ``semantics``). They are part of a job's fingerprint."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rewindow.errors import ConfigError


class StreamTime(StrEnum):
    """How a task's stream time follows from the times of its topic-partitions (D1)."""

    MAX = "max"
    """The highest timestamp of any topic-partition."""
    MIN = "min"
    """The smallest partition time, -1 until every topic-partition has had a record: KIP-138's definition."""


class StreamTimeFrom(StrEnum):
    """What advances stream time and the nodes' clocks (D22)."""

    RECORDS = "records"
    WATERMARK = "watermark"
    """Records, and the watermark at an epoch's end."""


class WallClock(StrEnum):
    """How the simulated wall clock advances (D8)."""

    STREAM_TIME = "stream_time"
    """It follows the largest timestamp or watermark taken; each punctuation fires at its own due time."""
    RUN = "run"
    """It jumps once, when all records of a run are done; each due schedule fires once."""


@dataclass(frozen=True, slots=True)
class Semantics:
    """How time passes in a job. Accepts the enums' values as text. Raises `ConfigError` (78) for any other text."""

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
                raise ConfigError(f"semantics: {name} must be one of {words}, not {given!r}")
            object.__setattr__(self, name, kind(given))
