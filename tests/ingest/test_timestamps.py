"""Timestamps: extractors, policies for invalid ones, and D19's bound on the future. Vectorized and scalar code agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rewindow.contracts.ingest import FAIL, PARTITION_TIME, SKIP, TimestampPolicy
from rewindow.control.ingest.landings import Landing, fold_feed
from rewindow.engine.worker.timestamps import InvalidTimestampError, extract, judge
from rewindow.streams.record import Record
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import HOUR, T0, feed_config, land_locally, log_rows, write_rows
from tests.refusals import containing, refused, told

DAY = 24 * HOUR


def by_value(record, partition_time):
    """Use the value as the timestamp. Negative values, None and text are invalid."""
    if record.value.x == 13:
        raise ValueError("unlucky")
    return {7: None, 8: "eight", 9: True, 10: 2**70}.get(record.value.x, record.value.x)


def counting(record, partition_time):
    return partition_time + 1 if partition_time >= 0 else record.timestamp


@given(
    st.lists(st.none() | st.integers(-3, 30), max_size=20),
    st.sampled_from([FAIL, SKIP, PARTITION_TIME]),
    st.integers(0, 30),
    st.integers(-1, 10),
    st.data(),
)
def test_vectors_and_single_records_are_judged_alike(times, invalid, limit, partition_time, data):
    faults = data.draw(
        st.just([]) | st.lists(st.sampled_from([None, None, "broken"]), min_size=len(times), max_size=len(times))
    )
    policy = TimestampPolicy(invalid, 0)
    limits = np.full(len(times), limit)

    def answer(call):
        try:
            judged = call()
        except InvalidTimestampError as error:
            return error.row
        landed = [(row, int(judged.timestamps[row])) for row in range(len(times)) if judged.keep[row]]
        return landed, [refusal.row for refusal in judged.refusals], judged.partition_time

    records = [Record(None, time) for time in times]
    one = answer(lambda: judge(pa.array(times, pa.int64()), limits, faults, policy, partition_time))
    other = answer(lambda: extract(lambda r, _: r.value, records, limits, faults, policy, partition_time))
    assert one == other
    assert one == naive(times, invalid, limit, partition_time, faults)


def naive(times, invalid, limit, partition_time, faults):
    landed, refused = [], []
    for row, time in enumerate(times):
        fault = bool(faults) and faults[row] is not None
        if fault or time is None or time < 0:
            if invalid == FAIL:
                return row
            if invalid == SKIP or fault:
                refused.append(row)
                continue
            if partition_time < 0:
                return row
            landed.append((row, partition_time))
        elif time > limit:
            refused.append(row)
        else:
            landed.append((row, time))
            partition_time = max(partition_time, time)
    return landed, refused, partition_time


def quarantine(tables):
    from rewindow.tables.delta.open_table import open_table, table_path

    table = open_table(table_path(tables.warehouse, "rewindow/quarantine"))
    return table.to_pyarrow_table().to_pylist() if table else []


def test_the_far_future_is_quarantined_and_moves_nothing(tmp_path):
    tables, feed = DeltaFeedTables(f"{tmp_path}/w"), feed_config()
    rows = [
        {"user": "ann", "t": t, "got": T0, "x": n} for n, t in enumerate([T0, T0 + DAY, T0 + DAY + 1, T0 + 900 * DAY])
    ]
    write_rows(tmp_path, "a", rows)
    report = land_locally(feed, tables, tmp_path, T0 + HOUR)
    assert (report.rows, report.quarantined, report.watermark_ms) == (2, 2, T0 + DAY)
    assert [row["offset"] for row in log_rows(tables)] == [0, 1]
    found = quarantine(tables)
    assert {row["reason"] for row in found} == {"too far ahead (`max_ahead`)"}
    assert {(row["name"], row["topic"], row["landing"], row["_run"]) for row in found} == {
        ("activity", "events", 1, None)
    }
    assert sorted(row["record"] for row in found) == ['{"user":"ann","x":2}', '{"user":"ann","x":3}']
    assert land_locally(feed, tables, tmp_path, T0 + HOUR).landings == ()


def test_a_landing_counts_quarantined_rows_by_topic(tmp_path):
    """A job that reads one topic is not alarmed by those of another."""
    log = {"source": {"path": "raw", "format": "parquet"}, "key": "user", "timestamp": "t", "arrived_at": "got"}
    tables, feed = DeltaFeedTables(f"{tmp_path}/w"), feed_config(logs={"events": log, "others": log})
    write_rows(tmp_path, "a", [{"user": "ann", "t": t, "got": T0, "x": 0} for t in (T0, T0 + 2 * DAY)])
    land_locally(feed, tables, tmp_path, T0 + HOUR)
    (landing,) = fold_feed((row.kind, row.body) for row in tables.state("activity")).landings
    assert landing.quarantined == {"events": 1, "others": 1}
    assert [landing.quarantined_of(topics) for topics in ({"events"}, {"events", "others"}, set())] == [1, 2, 0]
    older = replace(landing, quarantined=None)
    assert older.quarantined_of({"events"}) == 2, "it knows only the sum"
    assert [Landing.from_json(known.as_json()) for known in (landing, older)] == [landing, older]


def test_without_an_arrival_the_recorded_time_bounds(tmp_path):
    tables, feed = DeltaFeedTables(f"{tmp_path}/w"), feed_config(landing={}, log={"arrived_at": None})
    write_rows(tmp_path, "a", [{"user": "ann", "t": t, "got": 0, "x": 0} for t in (T0 + DAY, T0 + DAY + 1)])
    report = land_locally(feed, tables, tmp_path, T0)
    assert (report.rows, report.quarantined) == (1, 1)


def test_the_bound_can_be_switched_off(tmp_path):
    tables = DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", [{"user": "ann", "t": T0 + 900 * DAY, "got": T0, "x": 0}])
    feed = feed_config(landing={"every": "1h", "max_ahead": "none"})
    assert land_locally(feed, tables, tmp_path, T0 + HOUR).rows == 1


def test_a_landing_of_refused_records_only_is_one_all_the_same(tmp_path):
    tables, feed = DeltaFeedTables(f"{tmp_path}/w"), feed_config(log={"invalid_timestamp": "skip"})
    write_rows(tmp_path, "a", [{"user": "ann", "t": T0, "got": T0, "x": 0}])
    land_locally(feed, tables, tmp_path, T0 + HOUR)
    write_rows(tmp_path, "b", [{"user": "ann", "t": None, "got": T0 + HOUR, "x": 0}])
    report = land_locally(feed, tables, tmp_path, T0 + 2 * HOUR)
    assert (report.landings, report.rows, report.quarantined, report.watermark_ms) == ((2,), 0, 1, T0)
    told(report.warnings, "landing-all-quarantined", what="the only new record", topic="events")
    assert land_locally(feed, tables, tmp_path, T0 + 2 * HOUR).landings == ()


def test_a_log_whose_first_records_are_all_refused_is_an_error(tmp_path):
    tables, feed = DeltaFeedTables(f"{tmp_path}/w"), feed_config(log={"invalid_timestamp": "skip"})
    write_rows(tmp_path, "a", [{"user": user, "t": None, "got": T0, "x": 0} for user in ("ann", "bob")])
    with refused(
        "log-all-quarantined",
        topic="events",
        records="all 2 records",
        reason="no timestamp",
        fix=containing("Fix `timestamp:`"),
    ):
        land_locally(feed, tables, tmp_path, T0 + HOUR)
    assert quarantine(tables) == []
    write_rows(tmp_path, "b", [{"user": "ann", "t": T0 + HOUR, "got": T0 + HOUR, "x": 0}])
    report = land_locally(feed, tables, tmp_path, T0 + 2 * HOUR)
    assert (report.landings, report.rows, report.quarantined) == ((1, 2), 1, 2)


def test_extractors_of_ones_own(tmp_path):
    feed = feed_config(
        landing={"every": "1h", "max_ahead": "none"},
        log={"timestamp": f"{__name__}:by_value", "invalid_timestamp": "skip", "value": ["x"]},
    )
    tables = DeltaFeedTables(f"{tmp_path}/w")
    write_rows(
        tmp_path,
        "a",
        [{"user": "ann", "t": 0, "got": T0 + n, "x": x} for n, x in enumerate([5, 13, 7, 8, 9, 10, -2, 6])],
    )
    report = land_locally(feed, tables, tmp_path, T0 + HOUR)
    assert [row["timestamp"] for row in log_rows(tables)] == [5, 6]
    reasons = " | ".join(sorted(row["reason"] for row in quarantine(tables)))
    assert report.quarantined == 6
    for part in ("ValueError: unlucky", "returned None", "'eight'", "True", str(2**70), "negative timestamp (-2)"):
        assert part in reasons


def test_the_partition_time_is_carried_from_landing_to_landing(tmp_path):
    feed = feed_config(log={"timestamp": f"{__name__}:counting", "value": ["x"]})
    tables = DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", [{"user": "ann", "t": 0, "got": T0 + h * HOUR, "x": h} for h in range(3)])
    for hour in range(1, 4):
        land_locally(feed, tables, tmp_path, T0 + hour * HOUR)
    assert [row["timestamp"] - T0 for row in log_rows(tables)] == [0, 1, 2]


def test_the_partition_time_fills_gaps_but_not_the_first(tmp_path):
    feed = feed_config(log={"invalid_timestamp": "partition_time"})
    tables = DeltaFeedTables(f"{tmp_path}/w")
    rows = [{"user": "ann", "t": t, "got": T0 + n, "x": n} for n, t in enumerate([T0 + 5, None, T0 + 3, -4])]
    write_rows(tmp_path, "a", rows)
    land_locally(feed, tables, tmp_path, T0 + HOUR)
    assert [row["timestamp"] - T0 for row in log_rows(tables)] == [5, 5, 3, 5]
    write_rows(tmp_path, "b", [{"user": "bob", "t": None, "got": T0 + HOUR, "x": 0}])
    other = feed_config(partitions=64, log={"invalid_timestamp": "partition_time"})
    with refused(
        "record-invalid",
        record=containing('"user":"bob","x":0}'),
        arrival="arrived at 2023-11-14 23:00:00Z",
        reason=containing("no valid timestamp, and none before it"),
    ):
        land_locally(other, DeltaFeedTables(f"{tmp_path}/o"), tmp_path, T0 + 2 * HOUR)


def test_a_record_without_an_arrival_belongs_to_no_interval(tmp_path):
    write_rows(tmp_path, "a", [{"user": "ann", "t": T0, "got": got, "x": 0} for got in (T0, None)])
    tables = DeltaFeedTables(f"{tmp_path}/w")
    report = land_locally(feed_config(log={"invalid_timestamp": "skip"}), tables, tmp_path, T0 + HOUR)
    assert (report.rows, report.quarantined) == (1, 1)


def test_an_extractor_that_is_not_there(tmp_path):
    write_rows(tmp_path, "a", [{"user": "ann", "t": T0, "got": T0, "x": 0}])
    feed = feed_config(log={"timestamp": "jobs.nowhere:time"})
    with refused("timestamp-function-missing", function="jobs.nowhere:time"):
        land_locally(feed, DeltaFeedTables(f"{tmp_path}/w"), tmp_path, T0 + HOUR)
