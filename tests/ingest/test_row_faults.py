"""The reasons of rows that are not landed: each text gives its kind back, whatever text of a user is quoted in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rewindow.contracts.instants import UNITS
from rewindow.contracts.row_faults import (
    ARRIVED_AT,
    NEVER_ARRIVED,
    TIMESTAMP,
    UNREADABLE,
    FaultKind,
    RowFault,
    before_1970,
    fault_of,
    not_a_time,
    other_unit,
    without_predecessor,
)

ROLES = st.sampled_from([TIMESTAMP, ARRIVED_AT])
REASONS = st.one_of(
    st.text(),
    st.sampled_from([NEVER_ARRIVED, UNREADABLE, other_unit(ARRIVED_AT, 7, "s"), without_predecessor()]),
)
TEXTS = st.one_of(REASONS, st.tuples(st.text(), REASONS, st.text()).map("".join))


@given(ROLES, TEXTS)
def test_a_text_of_a_user_does_not_change_the_kind_of_its_reason(role: str, text: str) -> None:
    assert fault_of(not_a_time(role, text)) == RowFault(FaultKind.NOT_A_TIME, role == ARRIVED_AT)
    assert fault_of(before_1970(role, text)) == RowFault(FaultKind.OTHER, role == ARRIVED_AT)
    assert fault_of(f"{UNREADABLE}: {text}") == RowFault(FaultKind.UNREADABLE)


@given(ROLES, st.integers(), st.sampled_from(list(UNITS)))
def test_the_unit_of_a_time_is_read_back(role: str, time: int, unit: str) -> None:
    assert fault_of(other_unit(role, time, unit)) == RowFault(FaultKind.OTHER_UNIT, role == ARRIVED_AT, unit)


def test_what_cannot_be_replaced_is_told_apart() -> None:
    assert fault_of(without_predecessor()).has_none_before
    assert fault_of(without_predecessor("a negative timestamp (-1)")).has_none_before
    assert fault_of(NEVER_ARRIVED) == RowFault(FaultKind.NO_ARRIVAL, is_of_arrival=True)
