"""Times at the ends of 64 bits, which Arrow wraps or Python cannot represent, in files that are landed without Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.control.ingest.land import land
from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine
from rewindow.errors import DataError
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.land_by_arrow import Unused, land_by_arrow
from tests.ingest.local_engine import HOUR, T0, log_rows, one_log

LAST, FIRST = 2**63 - 1, -(2**63)
YEAR_10000 = 253_402_300_800_000


def write(root, name="a", **columns):
    (root / "raw").mkdir(exist_ok=True)
    rows = len(next(iter(columns.values())))
    pq.write_table(pa.table({"user": ["ann"] * rows, **columns}), root / "raw" / f"{name}.parquet")


@pytest.mark.parametrize(("unit", "good"), [("s", T0 // 1000), ("us", T0 * 1000), ("ns", T0 * 1_000_000)])
def test_the_smallest_integer_is_no_time_in_any_unit(tmp_path, unit, good):
    """Pandas writes NaT as this integer."""
    write(tmp_path, t=pa.array([FIRST, FIRST + 1, good]))
    found = land_by_arrow(tmp_path, units={"t": unit}, invalid_timestamp="skip")
    assert [row["timestamp"] for row in found] == [T0]


def test_seconds_are_converted_as_far_as_their_milliseconds_have_64_bits(tmp_path):
    most = LAST // 1000
    write(tmp_path, t=pa.array([most + 1, most, -most, -most - 1, LAST]))
    found = land_by_arrow(tmp_path, units={"t": "s"}, invalid_timestamp="skip")
    assert [row["timestamp"] for row in found] == [most * 1000]


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("far", [YEAR_10000, -YEAR_10000])
def test_an_arrival_beyond_the_years_of_python_does_not_block_the_feed(tmp_path, unit, far):
    """A landed file whose statistics have such a time is read again."""
    feed = one_log(every="1h", arrived_at="got")
    engine = ArrowLandingEngine(Unused, Unused(), project_root=str(tmp_path), most_rows=10**9)
    tables = DeltaFeedTables(f"{tmp_path}/w")
    for hour in (0, 1, 2):
        got = [T0 + hour * HOUR, far] if far > 0 else [far]
        arrivals = pa.array(got).cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp(unit, "UTC"))
        write(tmp_path, str(hour), t=[T0 + n for n in range(len(got))], got=arrivals, x=[hour] * len(got))
        land(feed, tables, engine, now_ms=T0 + (hour + 1) * HOUR)
    assert [row["x"] for row in log_rows(tables)] == [0, 1, 2]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("far", [LAST, FIRST, LAST // 1000 + 1])
def test_milliseconds_whose_microseconds_exceed_64_bits_are_refused_with_file_and_column(tmp_path, zone, far):
    write(tmp_path, t=pa.array([T0, None]), x=pa.array([1, far], pa.timestamp("ms", zone)))
    says = r"raw/a\.parquet has a value in x that does not fit into TIMESTAMP.*Fix the file"
    with pytest.raises(DataError, match=says) as told:
        land_by_arrow(tmp_path)
    assert told.value.exit_code == 65
    assert not (tmp_path / "w" / "logs").exists()


def test_the_last_milliseconds_that_fit_are_landed(tmp_path):
    write(tmp_path, t=pa.array([T0, T0 + 1]), x=pa.array([LAST // 1000, -(LAST // 1000)], pa.timestamp("ms", "UTC")))
    assert {row["x"] for row in land_by_arrow(tmp_path)} == {LAST // 1000, -(LAST // 1000)}
