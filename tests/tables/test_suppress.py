"""Suppress over several runs: added to and removed from a job, with a limit that ends the run, with a spilling buffer."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rewindow import BufferConfig, StreamsBuilder, Suppressed, Topology, max_records, unbounded, until_time_limit
from rewindow.app.describe_job import describe_job
from rewindow.control.plan.spec import RunSpec
from rewindow.control.run import RunReport
from rewindow.errors import CheckpointError, LimitError
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import METRICS, QUARANTINE
from tests.tables.scene import JOB, USERS, land, replay

pytestmark = pytest.mark.slow

LANDINGS = 4
FEW = max_records(2)


def held_back(limit: str | None, buffer: BufferConfig | None = None, *, name: str = "slower") -> Topology:
    """Count by user, and suppress the updates for a time limit. None: no suppress."""
    builder = StreamsBuilder()
    counts = builder.stream("events").group_by_key().count(store="sums")
    if limit is not None:
        wanted: Suppressed = until_time_limit(limit, buffer or unbounded())
        counts = counts.suppress(wanted.with_name(name))
    counts.filter(lambda _user, count: count % 2 == 0).to_stream().to("totals")
    return builder.build()


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    land(str(tmp_path), LANDINGS)
    return str(tmp_path)


def run(warehouse: str, through: int, limit: str | None, *, branch: str = "main", **others: Any) -> RunReport:
    build = partial(held_back, limit, others.pop("buffer", None))
    made = replay(warehouse, f"{branch}-{through}-{limit}", branch, through_landing=through, build=build, **others)
    assert isinstance(made, RunReport)
    return made


def held(report: RunReport) -> int:
    return report.commit.held["slower"]


def test_a_named_suppress_is_put_into_a_running_job_and_begins_empty(warehouse):
    run(warehouse, 1, None)
    report = run(warehouse, 2, "90m")
    assert 0 < held(report) <= len(USERS) * 2


def test_one_that_holds_records_is_not_taken_out(warehouse):
    holding = run(warehouse, 1, "90m")
    with pytest.raises(CheckpointError, match=f"'slower' holds {held(holding)} records.*--drop-buffered") as refused:
        run(warehouse, 2, None)
    assert refused.value.exit_code == 76
    without = run(warehouse, 2, None, drop_buffered=True)
    assert "slower" not in without.commit.held


def test_one_that_is_put_back_knows_nothing_of_before(warehouse):
    run(warehouse, 1, "90m")
    run(warehouse, 2, None, drop_buffered=True)
    tables = DeltaTables(warehouse)
    run(warehouse, 3, "90m")
    state = tables.state(JOB)
    spec: RunSpec = state.branch("main").runs[-1].spec
    checkpoint = tables.restore(state, spec)
    assert not [store for store, _ in checkpoint.stores if store == "slower"]
    assert DeltaTables(warehouse).hashes(JOB, "main")


def test_an_empty_one_is_taken_out(warehouse):
    disabled = run(warehouse, 1, "0s")
    assert held(disabled) == 0
    run(warehouse, 2, None)


def test_a_time_limit_of_zero_disables_and_empties_it(warehouse):
    assert held(run(warehouse, 1, "90m")) > 0
    assert held(run(warehouse, 2, "0s")) == 0
    run(warehouse, 3, None)


def test_another_time_limit_is_another_topology(warehouse):
    run(warehouse, 1, "90m")
    with pytest.raises(CheckpointError, match=r"limit of slower changed: 1h30m -> 1m"):
        run(warehouse, 2, "1m")


def test_what_else_changed_is_refused_all_the_same(warehouse):
    run(warehouse, 1, None)
    other = StreamsBuilder()
    counts = other.stream("events").group_by_key().count(store="sums")
    counts.suppress(until_time_limit("90m"), name="slower").to_stream().to("totals")
    with pytest.raises(CheckpointError, match="table-filter-1: is removed"):
        replay(warehouse, "other", build=other.build)


def test_a_full_buffer_ends_the_run_and_nothing_is_committed(warehouse):
    with pytest.raises(LimitError, match=r"suppress 'slower' is full at events-.*max_records=2") as full:
        run(warehouse, 1, "90m", buffer=FEW.shut_down_when_full())
    assert full.value.exit_code == 71
    assert DeltaTables(warehouse).state(JOB).committed == ()
    # A buffer limit affects no rows, so a larger one is compatible.
    run(warehouse, 1, "90m", buffer=FEW.shut_down_when_full().with_max_records(100))
    run(warehouse, 2, "90m")


def test_a_buffer_on_disk_leaves_what_one_in_memory_leaves(warehouse):
    for landing in range(1, LANDINGS + 1):
        run(warehouse, landing, "90m", branch="memory")
        run(warehouse, landing, "90m", branch="disk", buffer=FEW.spill_to_disk_when_full())
    tables = DeltaTables(warehouse)
    assert tables.hashes(JOB, "disk") == tables.hashes(JOB, "memory")


def test_what_is_dropped_is_in_the_quarantine_with_its_source_node_and_reason(warehouse):
    builder = StreamsBuilder()
    nulls = builder.stream("events").map(
        lambda user, value: (None if value % 5 == 0 else user, value), key=str, value=int
    )
    nulls.group_by_key().count(store="sums").to_stream().to("totals")
    report = replay(warehouse, "dropping", build=builder.build, quarantine=QUARANTINE)
    rows = read_rows(table_path(warehouse, QUARANTINE)).to_pylist()
    dropped = [one for one in report.metrics if one["name"] == "skipped-records"]
    assert sum(one["total"] for one in dropped) == len(rows) > 0
    row = min(rows, key=lambda row: (row["partition"], row["offset"]))
    assert {
        name: row[name] for name in ("name", "topic", "partition", "offset", "node", "reason", "record", "landing")
    } == {
        "name": JOB,
        "topic": "events",
        "partition": 0,
        "offset": 0,
        "node": "keyed-only-1",
        "reason": "null-key",
        "record": '{"key":null,"value":0}',
        "landing": 1,
    }
    assert row["_run"] == report.spec.run
    # Keeping dropped records does not affect compatibility: the next run may only count them.
    land(warehouse, LANDINGS + 1)
    assert isinstance(replay(warehouse, "counting", build=builder.build), RunReport)
    assert len(read_rows(table_path(warehouse, QUARANTINE)).to_pylist()) == len(rows)


def test_the_metrics_table_says_what_the_proposals_say_of_each_metric(warehouse):
    build = partial(held_back, "90m")
    first = replay(warehouse, "first", build=build, through_landing=1)
    second = replay(warehouse, "second", build=build)
    rows = read_rows(table_path(warehouse, METRICS)).to_pylist()
    mine = {(row["level"], row["name"]): row for row in rows if (row["_run"], row["partition"]) == (second.spec.run, 0)}
    known = {
        (level, name): (row["type"], row["recording_level"], row["tags"], row["unit"])
        for (level, name), row in mine.items()
        if name.startswith(("suppression", "intermediate", "record-lateness"))
    }
    node, buffer = "stream-processor-node-metrics", "stream-buffer-metrics"
    assert known == {
        ("node", "suppression-emit"): (node, "DEBUG", "task-id=0_0,processor-node-id=slower", "records"),
        ("node", "intermediate-result-suppression-overtime"): (
            node,
            "INFO",
            "task-id=0_0,processor-node-id=slower",
            "ms",
        ),
        ("store", "suppression-buffer-count"): (buffer, "DEBUG", "task-id=0_0,buffer-id=slower", "records"),
        ("store", "suppression-buffer-size"): (buffer, "DEBUG", "task-id=0_0,buffer-id=slower", "bytes"),
        ("task", "record-lateness"): ("stream-task-metrics", "DEBUG", "task-id=0_0", "ms"),
    }
    emitted, seconds = (
        mine["node", "suppression-emit"],
        (second.spec.input.clock_to_ms - first.spec.input.clock_to_ms) / 1000,
    )
    assert emitted["rate"] == emitted["total"] / seconds
    current = sum(
        row["current"] for row in rows if row["name"] == "suppression-buffer-count" and row["_run"] == second.spec.run
    )
    assert current == held(second)
    tables = DeltaTables(warehouse)
    (shown,) = [
        row
        for row in describe_job(tables, tables.state(JOB), JOB, branch="main", hashes=False)["metrics"]
        if row["metric"] == "suppression-buffer-count"
    ]
    assert shown["current"] == held(second)
    assert shown["max"] >= shown["avg"] > 0
    assert shown["total"] is None
