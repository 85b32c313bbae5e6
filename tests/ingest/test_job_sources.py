"""Another job's output as a source: one landing per epoch, with the epoch's watermark."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rewindow.config.feed import FeedConfig
from rewindow.control import branch
from rewindow.control.ledger_steps import drive
from rewindow.errors import SourceError
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from tests.ingest.local_engine import T0, land_locally, landings, log_rows
from tests.tables import scene

pytestmark = pytest.mark.slow

OUTPUT = {"source": {"job": scene.JOB, "output": "totals"}, "key": "user", "timestamp": "_timestamp"}


def feed(**parts):
    """Return a feed of a job's output. ``max_ahead`` does not apply: the records were checked when they were landed first."""
    strict = {"feed": "totals", "partitions": 3, "landing": {"max_ahead": 0}, "logs": {"totals": OUTPUT}}
    return FeedConfig.model_validate({**strict, **parts})


def landed(tables):
    return [(row["user"], row["timestamp"], row["landing"]) for row in log_rows(tables, "totals", "totals")]


def test_each_epoch_is_a_landing_with_its_watermark(tmp_path):
    warehouse = str(tmp_path / "w")
    source = scene.land(warehouse, 4)
    scene.replay(warehouse, "first", through_landing=1)
    some, tables = DeltaFeedTables(warehouse), DeltaFeedTables(warehouse)
    assert land_locally(feed(), some, tmp_path, T0).landings == (1,)
    assert land_locally(feed(), some, tmp_path, T0).landings == ()
    scene.replay(warehouse, "second")
    assert land_locally(feed(), tables, tmp_path, T0).landings == (2, 3, 4)
    marks = [landing["watermark"] for landing in landings(tables, "totals")]
    held_ms = 35 * 60_000  # its windows of 30 minutes have a grace of 5
    assert marks == [max(landing.watermark_ms - held_ms, -1) for landing in source.landings]
    recorded = DeltaTables(warehouse).feed("totals").landings
    assert {landing.held_ms for landing in recorded} == {held_ms}
    # No row waits until the lower watermark has reached its time.
    assert {landed.release == landed.end for landing in recorded for landed in landing.ranges.values()} == {True}
    assert all(landing["interval"] is None for landing in landings(tables, "totals"))
    rows = read_rows(f"{warehouse}/alerts/totals").to_pylist()
    assert sorted(landed(tables)) == sorted((row["user"], row["_timestamp"], row["_epoch"]) for row in rows)
    assert {row["arrived_at"] for row in log_rows(tables, "totals", "totals")} == {None}


def test_one_call_lands_what_several_do(tmp_path):
    found = []
    for name, stops in (("one", (4,)), ("many", (1, 3, 4))):
        warehouse = str(tmp_path / name)
        scene.land(warehouse, 4)
        tables = DeltaFeedTables(warehouse)
        for stop in stops:
            scene.replay(warehouse, f"{name}-{stop}", through_landing=stop)
            land_locally(feed(), tables, tmp_path, T0)
        found.append((landings(tables, "totals"), log_rows(tables, "totals", "totals")))
    assert found[0] == found[1]


def test_a_producer_that_was_taken_back_is_another_source(tmp_path):
    warehouse = str(tmp_path / "w")
    scene.land(warehouse, 2)
    scene.replay(warehouse, "first")
    tables = DeltaFeedTables(warehouse)
    land_locally(feed(), tables, tmp_path, T0)
    drive(branch.rewind(scene.JOB, "main", "0", DeltaTables(warehouse)))
    with pytest.raises(SourceError, match="has not run"):
        land_locally(feed(), tables, tmp_path, T0)
    scene.replay(warehouse, "again")
    with pytest.raises(SourceError, match="has been rewound, reset or replaced by a promoted branch"):
        land_locally(feed(), tables, tmp_path, T0)


def test_what_cannot_be_a_source_is_said(tmp_path):
    warehouse = str(tmp_path / "w")
    scene.land(warehouse, 1)
    tables = DeltaFeedTables(warehouse)
    with pytest.raises(SourceError, match="has not run"):
        land_locally(feed(), tables, tmp_path, T0)
    scene.replay(warehouse, "first")
    other = {**OUTPUT, "source": {"job": scene.JOB, "output": "nothing"}}
    with pytest.raises(SourceError, match="it has totals"):
        land_locally(feed(logs={"totals": other}), tables, tmp_path, T0)
    for wrong in (
        {"landing": {"every": "1h"}},
        {"lag": "5m"},
        {"max_task_idle": "forever"},
        {"logs": {"totals": OUTPUT, "raw": {"source": {"table": "raw.x"}, "key": "k", "timestamp": "t"}}},
    ):
        with pytest.raises(ValidationError, match=r"epoch by epoch|outputs of one job|of the job's epochs: remove"):
            feed(**wrong)
