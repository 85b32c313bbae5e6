"""Builders of feeds, plans and commits for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rewindow.contracts.expectations import Observation
from rewindow.contracts.staged_files import METRICS
from rewindow.control.ingest.landings import Feed, FeedDefinition, LandedRange, Landing, LogSchema
from rewindow.control.plan.job_fold import COMMIT, PLAN, fold
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.planner import UpToDate, plan_run
from rewindow.control.plan.sequence import History
from rewindow.control.plan.spec import (
    Attempt,
    Commit,
    JobBinding,
    JournalFile,
    RunRequest,
    RunSpec,
    TableSpec,
    TargetTotal,
    make_commit,
)
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.schema import CHANGELOG_META, OUTPUT_META, Column

TOPIC = "events"
PARTITIONS = 2
ROWS = 10
"""The number of records per landing and partition."""

HOUR = 3_600_000

BINDING = JobBinding(
    job="counts",
    feed="activity",
    fingerprint="f" * 64,
    topology=[
        {
            "sub_topology": 0,
            "nodes": [{"name": "source", "parents": [], "source": TOPIC}],
            "stores": [{"name": "sums", "kind": "key-value", "retention_ms": 0}],
        }
    ],
    semantics={"wall_clock": "stream_time"},
    stores={"sums": (Column("user", "string"), Column("value", "long"))},
    tables={
        "output/totals": TableSpec("alerts/totals", (Column("user", "string"), Column("value", "long"), *OUTPUT_META)),
        "changelog/sums": TableSpec(
            "state/counts/sums",
            (Column("_partition", "long"), Column("user", "string"), Column("value", "long"), *CHANGELOG_META),
            ("_partition",),
        ),
        "metrics": TableSpec("rewindow/metrics", METRICS),
    },
    keys={"sums": ("user",)},
)


def a_feed(landings: int = 3, *, generation: int = 1, kept: int = 0, rows: int = ROWS) -> Feed:
    """Return a feed in which landing n covers hour n, with the same number of rows in each partition."""
    schema = LogSchema((Column("user", "string"),), (Column("value", "long"),), scalar_key=True, scalar_value=True)
    made = tuple(
        Landing(
            number,
            generation if number > kept else generation - 1,
            number * HOUR,
            {
                TopicPartition(TOPIC, p): LandedRange((number - 1) * rows, number * rows, number * HOUR, number * rows)
                for p in range(PARTITIONS)
            },
        )
        for number in range(1, landings + 1)
    )
    return Feed(FeedDefinition("activity", generation, PARTITIONS, {TOPIC: schema}, "feed", kept), History(made))


def an_attempt(name: str) -> Attempt:
    return Attempt(name, "here", 7, 1, {"rewindow": "0"})


def plan(
    rows: Sequence[LedgerRow],
    attempt: str,
    feed: Feed | None = None,
    request: RunRequest | None = None,
    *,
    binding: JobBinding = BINDING,
    alive: bool = False,
) -> RunSpec | UpToDate:
    """Plan the next run on top of ledger rows."""
    return plan_run(
        fold(rows), feed or a_feed(), request or RunRequest(), binding, an_attempt(attempt), lambda _attempt: alive
    )


def planned(rows: Sequence[LedgerRow], attempt: str, feed: Feed | None = None, **request: object) -> RunSpec:
    """Plan a run and check that there is one."""
    spec = plan(rows, attempt, feed, RunRequest(**request))  # type: ignore[arg-type]
    assert isinstance(spec, RunSpec)
    return spec


def plan_row(spec: RunSpec) -> LedgerRow:
    return LedgerRow(spec.run, PLAN, spec.as_json())


def commit_of(state: JobState, spec: RunSpec, targets: Mapping[str, TargetTotal] | None = None) -> Commit:
    return make_commit(
        spec,
        parent_chain=state.branch(spec.branch).chain,
        journal=JournalFile(f"job=counts/{spec.attempt.id}.parquet", 1, "0" * 32),
        targets=targets or {},
        consumed={},
    )


HELD = Observation("totals", "rows", "rows", "hold", 1, "0 rows", "at least 1")
"""The result of an expectation that puts a run on hold."""


def commit_row(rows: Sequence[LedgerRow], spec: RunSpec, *, holds: bool = False) -> LedgerRow:
    commit = replace(commit_of(fold(rows), spec), expectations=(HELD,) if holds else ())
    return LedgerRow(len(rows) + 1, COMMIT, commit.as_json())


def run_rows(
    rows: Sequence[LedgerRow], attempt: str, feed: Feed | None = None, *, holds: bool = False, **request: object
) -> list[LedgerRow]:
    """Return the rows plus those of another run, planned and committed, perhaps on hold."""
    spec = planned(rows, attempt, feed, **request)
    with_plan = [*rows, plan_row(spec)]
    return [*with_plan, commit_row(with_plan, spec, holds=holds)]
