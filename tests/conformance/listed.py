"""The known deviations, each with its D-number and a reason that a user of Kafka Streams would accept."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import yaml

from tests.conformance.scenario import HERE


class Deviation(NamedTuple):
    """Why rewindow's result for one recorded scenario differs."""

    number: str
    reason: str


@cache
def listed_deviations() -> dict[tuple[str, str], Deviation]:
    """Return the listed deviations by file and scenario."""
    rows = yaml.safe_load((HERE / "deviations.yaml").read_text(encoding="utf-8"))
    return {(row["file"], row["scenario"]): Deviation(row["number"], row["reason"]) for row in rows}
