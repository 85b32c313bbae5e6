"""A job whose stores spill leaves the same tables as one whose stores fit in memory, run by run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rewindow import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    until_time_limit,
    until_window_closes,
)
from rewindow.contracts.tasks import JobCode
from rewindow.engine.worker.sqlite_spill import SqliteSpill
from rewindow.streams.settings import Limits, Settings
from rewindow.tables.delta.warehouse import DeltaTables
from tests.tables import scene
from tests.tables.scene import JOB, land, replay

pytestmark = pytest.mark.slow

LANDINGS = 4


def build_counts() -> Topology:
    builder = StreamsBuilder()
    counts = builder.stream("events").group_by_key().count(store="sums")
    counts.filter(lambda _user, count: count % 3 > 0).to_stream().to("totals")
    return builder.build()


def build_windows(windows: Any) -> Topology:
    builder = StreamsBuilder()
    counts = builder.stream("events").group_by_key().windowed_by(windows).count(store="sums")
    counts.filter(lambda _user, count: count % 3 > 0).to_stream().to("totals")
    return builder.build()


def build_held_join() -> Topology:
    builder = StreamsBuilder()
    events = builder.stream("events")
    near = events.left_join(events, lambda one, other: f"{one}-{other}", JoinWindows.of("10m", grace="5m"), name="near")
    counts = near.group_by_key().count(store="sums").suppress(until_time_limit("20m"))
    counts.to_stream().to("totals")
    return builder.build()


def build_final_sessions() -> Topology:
    builder = StreamsBuilder()
    sessions = builder.stream("events").group_by_key().windowed_by(SessionWindows.of("5m", grace="5m"))
    total = sessions.aggregate(lambda: 0, lambda _user, _event, sum_: sum_ + 1, lambda _user, a, b: a + b, store="sums")
    total.suppress(until_window_closes()).to_stream().to("totals")
    return builder.build()


BUILDS = {
    "counts": build_counts,
    "hopping windows": partial(build_windows, TimeWindows.of("20m", grace="5m").advance_by("10m")),
    "sliding windows": partial(build_windows, SlidingWindows.of("20m", grace="5m")),
    "sessions": partial(build_windows, SessionWindows.of("5m", grace="5m")),
    "final sessions": build_final_sessions,
    "a join, held back": build_held_join,
}


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_spilling_stores_leave_the_same_tables(
    build: Callable[[], Topology], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = str(tmp_path)
    land(warehouse, LANDINGS)
    in_memory = replay(warehouse, "memory", "memory", build=build)
    written: list[bytes] = []
    write = SqliteSpill.write
    monkeypatch.setattr(
        SqliteSpill, "write", lambda self, rows: write(self, (written.append(row[0]) or row for row in rows))
    )
    monkeypatch.setattr(scene, "JobCode", partial(JobCode, settings=Settings(limits=Limits(store_memory=1))))
    for landing in range(1, LANDINGS + 1):
        spilled = replay(warehouse, f"disk-{landing}", "disk", through_landing=landing, build=build)
    assert len(written) > 2 * LANDINGS
    assert spilled.commit.held == in_memory.commit.held
    tables = DeltaTables(warehouse)
    assert tables.hashes(JOB, "disk") == tables.hashes(JOB, "memory")
