"""The bounds beyond which `rewindow status` reports a job."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import ByteSize, Field, PlainValidator, WithJsonSchema

from rewindow.config.field_types import Bytes, DurationMs
from rewindow.config.value import ConfigValue

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
_SHAPE: Final = {"type": "string", "pattern": r"^[0-9]{1,3}(\.[0-9]{1,6})?\s*%$"}


def _share(value: object) -> float:
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if found is None or float(found[1]) > 100:
        raise ValueError(f"{value!r} is not a share: write a percentage from 0% to 100%, like 0.5%")
    return float(found[1]) / 100


Share = Annotated[float, PlainValidator(_share), WithJsonSchema(_SHAPE)]


class AlertsConfig(ConfigValue):
    """Bounds beyond which `rewindow status` reports the job. They change neither runs nor rows."""

    freshness_ms: DurationMs | None = Field(default=None, alias="freshness")
    """How far the time through which the job is complete may be behind the wall clock, like ``2h``."""
    silent_ms: DurationMs | None = Field(default=None, alias="silent")
    """How far the feed may be beyond the newest record of a partition for which results wait, like ``1d``."""
    waiting: int | None = Field(default=None, ge=0)
    """Number of landings that may wait for the next run."""
    late: Share | None = None
    """Share of the records that may be late, like ``1%``. It is that of the node that drops most."""
    skipped: Share | None = None
    """Share of the records that may be skipped, by the node that skips most."""
    expired: Share | None = None
    """Share of the records that may be expired, by the store that drops most."""
    quarantined: Share | None = None
    """Share of the records that may be quarantined, by the job's nodes and by its landings together."""
    runs: int = Field(default=24, ge=1, le=400)
    """Number of last runs over which the shares are taken."""
    files: int | None = Field(default=None, ge=1)
    """Number of files that the job's state and journal may have."""
    size: Bytes | None = Field(default=None, ge=ByteSize(1 << 20))
    """Size that the job's state and journal may have, in bytes or like ``10GiB``; at least ``1MiB`` (1,048,576)."""
    restore: int | None = Field(default=None, ge=1)
    """Number of runs whose changelogs the next run may have to read. A snapshot replaces them after 30 runs, or 240 that change
    few rows, so a useful bound is 31 or more."""
