"""Times that are not milliseconds are refused by the name of their unit, unless the feed's file declares it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rewindow.contracts.instants import as_ms, unit_of
from rewindow.errors import DataError
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import HOUR, T0, feed_config, land_locally, log_rows, one_log, write_rows
from tests.refusals import containing, refused

DAY = 24 * HOUR
FACTORS = [("s", "seconds", 1, 1000), ("us", "microseconds", 1000, 1), ("ns", "nanoseconds", 1_000_000, 1)]


def rows_of(*times, user="ann"):
    return [{"user": user, "t": time, "got": T0 + n, "x": n} for n, time in enumerate(times)]


def scaled(times, factor, divisor):
    return [time * factor // divisor for time in times]


def times_of(record, _partition_time):
    return 1_700_000_000 + record.value.x


@pytest.mark.parametrize(("unit", "name", "factor", "divisor"), FACTORS)
@pytest.mark.parametrize("policy", ["fail", "skip", "partition_time"])
@pytest.mark.parametrize("max_ahead", ["1d", "none"])
def test_a_column_that_is_not_in_milliseconds_is_refused_by_name(
    tmp_path, unit, name, factor, divisor, policy, max_ahead
):
    feed = one_log(invalid_timestamp=policy, landing={"max_ahead": max_ahead})
    tables = DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", rows_of(*scaled([T0, T0 + HOUR], factor, divisor)))
    with pytest.raises(DataError, match=rf"is in {name}, not milliseconds.*`units: \{{t: {unit}\}}`"):
        land_locally(feed, tables, tmp_path, T0 + DAY)


@pytest.mark.parametrize(("unit", "name", "factor", "divisor"), FACTORS)
@pytest.mark.parametrize("policy", ["fail", "skip", "partition_time"])
def test_a_later_file_in_another_unit_is_refused_too(tmp_path, unit, name, factor, divisor, policy):
    feed, tables = one_log(invalid_timestamp=policy), DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", rows_of(T0))
    land_locally(feed, tables, tmp_path, T0 + DAY)
    write_rows(tmp_path, "b", rows_of(*scaled([T0, T0 + HOUR], factor, divisor)))
    with pytest.raises(DataError, match=f"{name}.*{unit}"):
        land_locally(feed, tables, tmp_path, T0 + DAY)
    assert len(log_rows(tables)) == 1


def test_one_record_in_seconds_is_quarantined_if_the_feed_skips(tmp_path):
    feed, tables = feed_config(log={"invalid_timestamp": "skip"}), DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", rows_of(T0, T0 // 1000, T0 + 1))
    report = land_locally(feed, tables, tmp_path, T0 + HOUR)
    assert (report.rows, report.quarantined) == (2, 1)


def test_old_history_in_milliseconds_is_landed(tmp_path):
    tables = DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", rows_of(0, 5, DAY, 30 * 365 * DAY, 5 * 365 * DAY))
    assert land_locally(one_log(), tables, tmp_path, T0).rows == 5


def test_a_history_of_january_1970_can_be_declared(tmp_path):
    tables = DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", rows_of(10 * DAY, 11 * DAY))
    with refused("record-invalid", fix=containing("`ms` if these really are milliseconds")):
        land_locally(one_log(), tables, tmp_path, T0)
    assert land_locally(one_log(units={"t": "ms"}), tables, tmp_path, T0).rows == 2
    write_rows(tmp_path, "b", rows_of(1))
    assert land_locally(one_log(), tables, tmp_path, T0).rows == 1, "declaring milliseconds is no other definition"


def test_times_close_to_their_arrival_are_milliseconds(tmp_path):
    rows = [{"user": "ann", "t": 10 * DAY + n, "got": 10 * DAY + n, "x": n} for n in range(3)]
    write_rows(tmp_path, "a", rows)
    assert land_locally(feed_config(), DeltaFeedTables(f"{tmp_path}/w"), tmp_path, 10 * DAY + HOUR).rows == 3


def test_an_extractor_that_returns_seconds_is_refused(tmp_path):
    feed = one_log(timestamp=f"{__name__}:times_of", value=["x"])
    write_rows(tmp_path, "a", rows_of(1, 2))
    fix = rf"return milliseconds from {__name__}:times_of, or write `units: \{{{__name__}:times_of: ms\}}` if these really are"
    with pytest.raises(DataError, match=rf"(?i)1700000000 is in seconds.*{fix}"):
        land_locally(feed, DeltaFeedTables(f"{tmp_path}/w"), tmp_path, T0)
    told = one_log(timestamp=f"{__name__}:times_of", value=["x"], units={f"{__name__}:times_of": "ms"})
    assert land_locally(told, DeltaFeedTables(f"{tmp_path}/w"), tmp_path, T0).rows == 2


def test_the_far_future_is_no_unit():
    year_9999 = 253_370_764_800_000
    assert unit_of(year_9999, T0) is None
    assert unit_of(T0, T0) is None
    assert as_ms(T0 * 1000 + 7, "us") == as_ms(T0 * 1_000_000, "ns") == as_ms(T0, "ms") == T0


def test_units_name_the_columns_of_times():
    with pytest.raises(ValidationError, match="units names x, which is neither timestamp nor arrived_at"):
        one_log(units={"x": "s"})
    with pytest.raises(
        ValidationError,
        match=r"units cannot convert a:b: return milliseconds from the function\. `a:b: ms` takes its numbers",
    ):
        one_log(timestamp="a:b", units={"a:b": "s"})
