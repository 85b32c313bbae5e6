"""A branch whose stores or outputs have other columns than those of the branch that it replaces, on both backends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from rewindow import Count, StreamsBuilder, Sum, TimeWindows, Topology, until_window_closes
from rewindow.control.branch import branch, promote
from rewindow.control.ledger_steps import drive
from rewindow.errors import CheckpointError
from tests.crash import scene
from tests.protocol.backends import Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def _topology(*, is_wide: bool) -> Topology:
    """Count and sum by user; the sums are in the store, and in the output if it ``is_wide``."""
    builder = StreamsBuilder()
    hours = builder.stream(scene.TOPIC).group_by_key().windowed_by(TimeWindows.of("40ms", grace="10ms"))
    rows = hours.aggregate({"number": Count(), "total": Sum()}, store="hours").suppress(until_window_closes())
    sent = rows.to_stream() if is_wide else rows.to_stream().map_values(lambda row: row.number, value=int)
    sent.to("hourly")
    return builder.build()


def _narrow() -> Topology:
    """Count by user."""
    builder = StreamsBuilder()
    hours = builder.stream(scene.TOPIC).group_by_key().windowed_by(TimeWindows.of("40ms", grace="10ms"))
    hours.aggregate(Count(), store="hours").suppress(until_window_closes()).to_stream().to("hourly")
    return builder.build()


@pytest.fixture
def with_topology(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Topology]], None]:
    """Return what gives the job of the scene another topology."""
    return partial(monkeypatch.setattr, scene, "topology")


@pytest.mark.parametrize("is_wide", [False, True], ids=["store", "output"])
def test_a_branch_with_other_columns_is_promoted_and_goes_on(
    jobs: Backend, with_topology: Callable[[Callable[[], Topology]], None], *, is_wide: bool
) -> None:
    main, fix = f"main-{is_wide}".lower(), f"fix-{is_wide}".lower()
    with_topology(_narrow)
    jobs.run(main, 1, 2)
    with_topology(partial(_topology, is_wide=is_wide))
    drive(branch(scene.JOB, fix, jobs.tables(), parent=main, at="0"))
    jobs.run(fix, 2, 3)
    binding = jobs.job(main).binding
    if is_wide:
        with pytest.raises(CheckpointError, match="Name another table for hourly"):
            drive(promote(scene.JOB, fix, binding, jobs.tables(), into=main))
        moved = replace(binding.tables["output/hourly"], path=jobs.output("hourly", "moved"))
        binding = replace(binding, tables={**binding.tables, "output/hourly": moved})
    for _ in range(2):  # the second call changes nothing
        drive(promote(scene.JOB, fix, binding, jobs.tables(), into=main))
        tables = jobs.tables()
        tables.check_published(scene.JOB, tables.state(scene.JOB), main)
        assert jobs.outputs(main) == jobs.outputs(fix)
    if not is_wide:
        at_once = f"at-once-{is_wide}".lower()
        assert jobs.run(main, scene.LANDINGS) == jobs.run(at_once, scene.LANDINGS)
