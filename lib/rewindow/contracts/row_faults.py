"""The reasons why a row of a source is not landed.

A reason travels as one text, from the reader that found it to the quarantine and to messages. Each kind has one form of text.
This module writes these texts, and `fault_of` reads them back. Values of users are quoted, so none can pass for another reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rewindow.contracts.instants import UNITS

TIMESTAMP: Final = "timestamp"
ARRIVED_AT: Final = "arrived_at"
NO_TIMESTAMP: Final = "no timestamp"
NEVER_ARRIVED: Final = f"it has no {ARRIVED_AT}"
TOO_FAR_AHEAD: Final = "too far ahead (`max_ahead`)"
UNREADABLE: Final = "the parser could not read it"
"""The beginning of this reason; the row's file and text may follow."""
_NONE_BEFORE = "before it in its partition"
_ROLE = f"the (?P<role>{TIMESTAMP}|{ARRIVED_AT})"
_OTHER_UNIT = re.compile(f"{_ROLE} -?[0-9]+ is in (?P<unit>{'|'.join(UNITS.values())}), not milliseconds")
_OF_TEXT = re.compile(f"{_ROLE} ['\"].*['\"] is (?P<wrong>not a valid time|before 1970)", re.DOTALL)


class FaultKind(StrEnum):
    """What is wrong with a row. Two faults are of different kinds only if they need different fixes."""

    NO_ARRIVAL = "no-arrival"
    NOT_A_TIME = "not-a-time"
    OTHER_UNIT = "other-unit"
    UNREADABLE = "unreadable"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class RowFault:
    """What is wrong with a row, parsed from a reason: the kind, and what else the fix depends on."""

    kind: FaultKind
    is_of_arrival: bool = False
    unit: str | None = None
    """The unit of a time that is not in milliseconds (`instants.UNITS`)."""
    has_none_before: bool = False
    """Whether the partition has no earlier record with a valid timestamp that could replace this one."""


def other_unit(role: str, time: int | str, unit: str) -> str:
    """Return the reason for a time that is plausible only in another unit. ``role``: `TIMESTAMP` or `ARRIVED_AT`."""
    return f"the {role} {time} is in {UNITS[unit]}, not milliseconds"


def not_a_time(role: str, text: str) -> str:
    """Return the reason for a text that is no time."""
    return f"the {role} {text!r} is not a valid time"


def before_1970(role: str, text: str) -> str:
    """Return the reason for a text whose time is negative."""
    return f"the {role} {text!r} is before 1970"


def negative(time_ms: int) -> str:
    """Return the reason for a negative timestamp (epoch ms)."""
    return f"a negative timestamp ({time_ms})"


def without_predecessor(reason: str | None = None) -> str:
    """Return the reason for a record whose timestamp cannot be replaced, because no earlier record has a valid timestamp."""
    return f"{reason}, and no valid one {_NONE_BEFORE}" if reason else f"no valid timestamp, and none {_NONE_BEFORE}"


def is_unreadable(reason: str | None) -> bool:
    """Return whether a reason says that the parser could not read the row."""
    return reason is not None and reason.startswith(UNREADABLE)


def fault_of(reason: str) -> RowFault:
    """Return the kind of a reason."""
    if is_unreadable(reason):
        return RowFault(FaultKind.UNREADABLE)
    if reason == NEVER_ARRIVED:
        return RowFault(FaultKind.NO_ARRIVAL, is_of_arrival=True)
    if found := _OTHER_UNIT.fullmatch(reason):
        unit = next(unit for unit, name in UNITS.items() if name == found["unit"])
        return RowFault(FaultKind.OTHER_UNIT, found["role"] == ARRIVED_AT, unit)
    if found := _OF_TEXT.fullmatch(reason):
        kind = FaultKind.OTHER if found["wrong"] == "before 1970" else FaultKind.NOT_A_TIME
        return RowFault(kind, found["role"] == ARRIVED_AT)
    return RowFault(FaultKind.OTHER, has_none_before=reason.endswith(_NONE_BEFORE))
