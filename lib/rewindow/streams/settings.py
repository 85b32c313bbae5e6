"""The settings of a job's tasks: semantics, limits, error policies, and everything else that the tasks share.

Semantics affect results, so they are part of the job's fingerprint. Limits and error policies are not part of it. A limit
does not affect results. A run that fails commits no results, so completed runs with different policies can differ only by the
records that were quarantined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rewindow.errors import ConfigError


@dataclass(frozen=True, slots=True)
class OnError:
    """A node's error policy: how often a record at which the node fails is retried, and whether it is then quarantined."""

    retries: int = 0
    quarantines: bool = False

    @classmethod
    def parse(cls, text: object) -> OnError:
        """Parse ``fail``, ``retry 3``, ``quarantine`` or ``retry 3 quarantine``. Raises `ConfigError` for anything else."""
        match = _POLICY.fullmatch(text) if isinstance(text, str) else None
        if match is None or not isinstance(text, str):
            raise ConfigError(
                "on-error-policy-invalid",
                "on_error={given} is not a policy: write fail, retry 3, quarantine, or retry 3 quarantine (1 to "
                "999 times)",
                given=repr(text),
            )
        return cls(int(match["times"] or 0), text.endswith("quarantine"))

    @property
    def is_fail(self) -> bool:
        """Whether the policy is ``fail``, the default."""
        return not self.retries and not self.quarantines


FAIL = OnError()


@dataclass(frozen=True, slots=True)
class Limits:
    """The resource limits of one task."""

    store_rows: int = 100_000_000
    """The most rows in one store, checked every 65,536 records and at an epoch's end."""
    outputs_per_record: int = 1_000_000
    """The most records written to one topic for one input record."""
    punctuations_per_epoch: int = 10_000_000
    """The most punctuations in one epoch."""
    list_items: int = 20_000
    """The most items in one list that an aggregate makes. Checked in record execution, where each record copies the list."""
    store_memory: int = 512 * 1024 * 1024
    """The approximate memory of all stores of a task, in bytes. Rows beyond this limit spill to disk."""


DEFAULTS = Limits()
_POLICY = re.compile(r"fail|quarantine|retry (?P<times>[1-9][0-9]{0,2})(?P<then> quarantine)?")


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits and error policies from the job's file. ``on_error`` maps a node to the policy that overrides the code's."""

    on_error: Mapping[str, OnError] = field(default_factory=dict)
    limits: Limits = DEFAULTS
    keeps_dropped: bool = True
    """Whether late, skipped and expired records are written to the quarantine."""


class StreamTime(StrEnum):
    """The setting that decides how a task's stream time follows from the partition times of its topics (D1)."""

    MAX = "max"
    """The highest timestamp of any topic-partition."""
    MIN = "min"
    """The lowest partition time; -1 until every topic-partition has had a record. This is KIP-138's definition."""


class StreamTimeFrom(StrEnum):
    """The setting that decides which events advance stream time and the clocks of nodes (D22)."""

    RECORDS = "records"
    WATERMARK = "watermark"
    """The records and, at an epoch's end, the watermark."""


class WallClock(StrEnum):
    """The setting that decides how the simulated wall clock advances (D8)."""

    STREAM_TIME = "stream_time"
    """The wall clock follows the highest timestamp or watermark so far. Each punctuation fires at its due time."""
    RUN = "run"
    """The wall clock jumps once, after all records of a run have been processed. Each due schedule fires once."""


@dataclass(frozen=True, slots=True)
class Semantics:
    """The rules by which time passes in a job. A field may be an enum or its text. Raises `ConfigError` (78) for other text."""

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
                raise ConfigError(
                    "semantics-word-unknown",
                    "semantics: {option} must be one of {words}, not {given}",
                    option=name,
                    words=", ".join(kind),
                    given=repr(given),
                )
            object.__setattr__(self, name, kind(given))


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """The settings that all tasks of one job share."""

    job: str = ""
    """The job's name, which begins its idempotency keys; empty in the test driver."""
    semantics: Semantics = field(default_factory=Semantics)
    settings: Settings = field(default_factory=Settings)
    watermark_lags: Mapping[str, int] = field(default_factory=dict)
    """For each node, the milliseconds by which the watermark is lowered before the node gets it (`Topology.watermark_lags`)."""
