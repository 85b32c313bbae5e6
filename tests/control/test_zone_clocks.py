"""The clocks in plans: they return as they were stored, and only changes of the past need to be accepted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.control.plan.job_fold import COMMIT, PLAN, fold
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.planner import plan_run
from rewindow.control.plan.spec import Attempt, Commit, JobBinding, JournalFile, RunRequest, RunSpec, make_commit
from rewindow.control.plan.zone_clocks import clock_changes, clock_notes, clocks_in, recorded
from rewindow.storage.zone_data import read_zone
from rewindow.streams.windows.zone_table import ZoneTable
from tests.control.ledgers import BINDING, HOUR, a_feed
from tests.refusals import refused

ZONE = "Europe/Berlin"
SPRING_2027 = 1_806_195_600_000


def edition(version: str, *, without: int | None = None) -> ZoneTable:
    """Return the clock of Berlin; without the two changes of a year, if one is given by its first change."""
    clock = replace(read_zone(ZONE), version=version)
    if without is None:
        return clock
    at = clock.changes_ms.index(without)
    return ZoneTable(
        ZONE,
        (*clock.changes_ms[:at], *clock.changes_ms[at + 2 :]),
        (*clock.offsets_ms[:at], *clock.offsets_ms[at + 2 :]),
        version,
    )


def bound(clock: ZoneTable) -> JobBinding:
    return replace(BINDING, zones=recorded({ZONE: clock}))


OLD, NEW = bound(edition("2026a")), bound(edition("2026b", without=SPRING_2027))


@given(
    changes=st.lists(st.integers(1, 4_000_000_000), unique=True).map(sorted),
    offsets=st.lists(st.integers(-50_000, 50_000), min_size=200, max_size=200),
)
def test_a_clock_returns_from_a_plan_as_it_was(changes: list[int], offsets: list[int]) -> None:
    clock = ZoneTable(
        ZONE,
        tuple(1000 * change for change in changes[:199]),
        tuple(1000 * offset for offset in offsets[: len(changes[:199]) + 1]),
        "2026a",
    )
    again = clocks_in(JobBinding.from_json({"job": "", "feed": "", "binding": bound(clock).json}))[ZONE]
    assert (again, again.version) == (clock, clock.version)


def test_a_binding_without_zones_is_stored_as_by_older_versions() -> None:
    assert "zones" not in BINDING.json
    assert "zone_ends" not in committed(first_run(BINDING), {}).as_json()


def test_only_a_change_before_the_newest_end_is_a_change_of_the_job() -> None:
    before, after = {ZONE: SPRING_2027 - 1}, {ZONE: SPRING_2027}
    assert clock_changes(OLD, NEW, before) == []
    assert len(clock_notes(OLD, NEW, before)) == 1
    assert len(clock_changes(OLD, NEW, after)) == 1
    assert clock_notes(OLD, NEW, after) == []
    assert clock_changes(OLD, NEW, {}) == clock_changes(OLD, BINDING, after) == clock_changes(BINDING, NEW, after) == []


def test_another_edition_with_the_same_clock_is_no_change() -> None:
    same = bound(edition("2026b"))
    assert clock_changes(OLD, same, {ZONE: 10**15}) == clock_notes(OLD, same, {ZONE: 0}) == []


def committed(spec: RunSpec, ends: dict[str, int]) -> Commit:
    commit = make_commit(spec, parent_chain="", journal=JournalFile("p", 1, "d"), targets={}, consumed={})
    return replace(commit, zone_ends=ends)


def first_run(binding: JobBinding) -> RunSpec:
    spec = plan_run(JobState(), a_feed(1), RunRequest(), binding, Attempt("a"), lambda _: False)
    assert isinstance(spec, RunSpec)
    return spec


def after_a_run(ends: dict[str, int]) -> JobState:
    """Return the state after a run with the old clock, whose windows end by the times in ``ends``."""
    spec = first_run(OLD)
    return fold([LedgerRow(1, PLAN, spec.as_json()), LedgerRow(2, COMMIT, committed(spec, ends).as_json())])


def planned(state: JobState, **request: bool) -> RunSpec:
    spec = plan_run(state, a_feed(2), RunRequest(**request), NEW, Attempt("b"), lambda _: False)
    assert isinstance(spec, RunSpec)
    return spec


def test_a_later_change_of_a_clock_is_accepted_and_noted_in_the_plan() -> None:
    spec = planned(after_a_run({ZONE: SPRING_2027 - 1}))
    assert [ZONE in line for line in spec.accepted] == [True]
    assert RunSpec.from_json(spec.as_json()).binding.zones == NEW.zones


def test_a_change_before_the_newest_end_is_accepted_only_with_the_option() -> None:
    state = after_a_run({ZONE: SPRING_2027 + HOUR})
    with refused("job-changed-since-checkpoint"):
        planned(state)
    assert len(planned(state, accept_changes=True).accepted) == 1


@pytest.mark.parametrize(
    ("clock", "is_repeated"), [(edition("2026c"), True), (edition("2026c", without=SPRING_2027), False)]
)
def test_an_unfinished_run_is_repeated_only_with_the_same_clock(clock: ZoneTable, is_repeated: bool) -> None:  # noqa: FBT001
    state = fold([LedgerRow(1, PLAN, first_run(OLD).as_json())])
    again = plan_run(state, a_feed(1), RunRequest(), bound(clock), Attempt("b"), lambda _: False)
    assert isinstance(again, RunSpec)
    assert again.takes_over == 1
    assert again.repeats == ("a" if is_repeated else None)
