"""What a job's file says of how it runs: limits, and what becomes of records at which user code fails.

None of it is part of the fingerprint. A limit changes no row. A policy never turns one result into another: whoever
fails makes no run, so of two runs that end, under whatever policy, the rows differ only by what was quarantined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rewindow.errors import ConfigError

_POLICY = re.compile(r"fail|quarantine|retry (?P<times>[1-9][0-9]{0,2})(?P<then> quarantine)?")


@dataclass(frozen=True, slots=True)
class OnError:
    """What a node does when its code fails at a record: try again so often, then fail, or quarantine the record."""

    retries: int = 0
    quarantines: bool = False

    @classmethod
    def parse(cls, text: object) -> OnError:
        """Read ``fail``, ``retry 3``, ``quarantine`` or ``retry 3 quarantine``. Raises `ConfigError` for anything else."""
        found = _POLICY.fullmatch(text) if isinstance(text, str) else None
        if found is None or not isinstance(text, str):
            raise ConfigError(
                f"on_error={text!r} is no policy: write fail, retry 3, quarantine, or retry 3 quarantine (1 to 999 times)"
            )
        return cls(int(found["times"] or 0), text.endswith("quarantine"))

    @property
    def is_undeclared(self) -> bool:
        """Whether it is ``fail``, the default."""
        return not self.retries and not self.quarantines


FAIL = OnError()


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one task."""

    store_rows: int = 100_000_000
    """Rows of one store. It is looked at every 65,536 records and at an epoch's end."""
    outputs_per_record: int = 1_000_000
    """Records that reach one topic while one input record is handled."""
    punctuations_per_epoch: int = 10_000_000
    """Calls of schedules in one epoch."""
    store_memory: int = 512 * 1024 * 1024
    """Bytes of memory that the stores of a task have together, about; the rest of them lies on disk."""


DEFAULTS = Limits()


@dataclass(frozen=True, slots=True)
class Settings:
    """How a job's tasks run. ``on_error`` has the nodes for which the job's file says something: it wins over the code."""

    on_error: Mapping[str, OnError] = field(default_factory=dict)
    limits: Limits = DEFAULTS
    keeps_dropped: bool = True
    """Late, skipped and expired records become rows of the quarantine."""
