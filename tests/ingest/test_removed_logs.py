"""A log that a new generation removes or renames: nothing waits for it, and what it has landed stays."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rewindow.config.feed import FeedConfig
from rewindow.control.ingest.decide import release_offset
from rewindow.control.ingest.feed_progress import Progress, fold_progress
from rewindow.control.ingest.land import _first_above
from rewindow.control.ingest.landings import LANDING, HeldFile
from rewindow.streams.record import TopicPartition
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import HOUR, T0, land_locally, write_rows

OTHERS = TopicPartition("others", 0)
LAST = T0 + 4
"""The last time of hour 0."""


def config(*logs: str, idle: str = "forever") -> FeedConfig:
    of = {"key": "user", "timestamp": "t", "arrived_at": "got"}
    made = {topic: {"source": {"path": f"{topic}/raw", "format": "parquet"}, **of} for topic in logs}
    return FeedConfig.model_validate({"feed": "activity", "partitions": 1, "max_task_idle": idle, "logs": made})


def write(root, topic, hour, rows=5):
    start = T0 + hour * HOUR
    write_rows(root / topic, f"h{hour}", [{"user": "u", "t": start + n, "got": start + n, "x": n} for n in range(rows)])


@pytest.fixture
def land(tmp_path):
    """Return a function that lands logs with their next hour. The first landing has hour 0 of two logs."""
    tables = DeltaFeedTables(f"{tmp_path}/w")

    def land(hour, *logs, idle="forever", **more):
        write(tmp_path, logs[0], hour)
        report = land_locally(config(*logs, idle=idle), tables, tmp_path, T0 + (hour + 1) * HOUR, **more)
        return report.watermark_ms

    for topic in ("events", "others"):
        write(tmp_path, topic, 0)
    land.tables = tables
    assert land(0, "events", "others") == LAST
    return land


def test_the_watermark_does_not_wait_for_a_log_that_is_removed(land):
    assert land(1, "events", new_generation=True, keep=1) == LAST + HOUR
    assert land(2, "events") == LAST + 2 * HOUR


def test_nor_for_the_former_name_of_a_log(land, tmp_path):
    write(tmp_path, "names", 1)
    assert land(1, "events", "names", new_generation=True, keep=1) == LAST + HOUR


def test_a_removed_log_is_not_idle(land):
    land(1, "events", idle="2h", new_generation=True, keep=1)
    land(5, "events", idle="2h")
    assert [row.body["given_up"] for row in land.tables.state("activity") if row.kind == LANDING] == [[], [], []]


def test_a_feed_that_waited_for_a_removed_log_goes_on_without_another_generation(land, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(Progress, "waiting_for", lambda self, _topics: self)
        assert land(1, "events", new_generation=True, keep=1) == LAST
    assert land(2, "events") == LAST + 2 * HOUR


def test_a_log_that_comes_back_goes_on_with_its_next_offset_and_is_waited_for(land, tmp_path):
    land(1, "events", new_generation=True, keep=1)
    write(tmp_path, "others", 1)
    land(2, "events", "others", new_generation=True, keep=2)
    rows = land.tables.state("activity")
    progress = fold_progress(rows)
    assert (progress.ranges[OTHERS].start, progress.ranges[OTHERS].end) == (5, 10)
    assert [row.body["watermark"] for row in rows if row.kind == LANDING] == [LAST, LAST + HOUR, LAST + HOUR]


def test_held_records_of_a_removed_table_are_released_with_the_last_of_them():
    call = SimpleNamespace(feed=SimpleNamespace(feed="clicks", logs=[]))
    held = [HeldFile("others", "", 0, 5, 100, 0, 7)]

    def released(watermark_ms):
        return release_offset(held, 2, 5, watermark_ms, lambda *where: _first_above(call, *where))

    assert released(99) == (2, (held[0],))
    assert released(100) == (5, ())
