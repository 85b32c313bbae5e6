"""Landing with Arrow in the command's own process: it lands what the engine of the tests lands, in any memory."""

from __future__ import annotations

import random
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from rewindow.control.ingest.land import land
from rewindow.engine.worker.landing import arrow_source as source
from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine
from rewindow.engine.worker.landing.parquet_files import open_parquet
from rewindow.engine.worker.landing.sorted_runs import write_run
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.bench.day import JOB, write_project, write_source
from tests.conftest import ROOT
from tests.ingest.land_by_arrow import land_by_arrow
from tests.ingest.local_engine import HOUR, T0, feed_config, land_locally, landings, log_rows, one_log, write_rows
from tests.refusals import containing, refused


class NoSpark:
    """Fails the test if Arrow leaves something to Spark."""

    def __getattr__(self, name):
        raise AssertionError(name)


def arrow_at(root, most_rows=10**9):
    return ArrowLandingEngine(NoSpark, NoSpark(), project_root=str(root), most_rows=most_rows)


@pytest.fixture(params=["at once", "in runs"])
def memory(request, monkeypatch):
    if request.param == "in runs":
        monkeypatch.setattr("rewindow.engine.worker.landing.parquet_files._READ_ROWS", 11)
        monkeypatch.setattr("rewindow.engine.worker.landing.sorted_runs._BATCH_ROWS", 3)
        monkeypatch.setattr("rewindow.engine.worker.landing.sorted_runs._SHARE", 2**20)
    return request.param


@pytest.mark.parametrize("seed", range(6))
def test_arrow_lands_what_the_engine_of_the_tests_lands(tmp_path, seed, memory):
    rng = random.Random(seed)
    feed = feed_config(
        lag=rng.choice([0, "10m"]), max_task_idle=rng.choice([0, "forever", "2h"]), log={"invalid_timestamp": "skip"}
    )
    ours, theirs = DeltaFeedTables(f"{tmp_path}/ours"), DeltaFeedTables(f"{tmp_path}/theirs")
    for hour in range(4):
        rows = [
            {
                "user": rng.choice(["ann", "bob", "cid", None]),
                "t": T0 + hour * HOUR + rng.randrange(-HOUR, HOUR) if rng.random() < 0.9 else None,
                "got": T0 + (hour - rng.choice([0, 0, 0, 1])) * HOUR + rng.randrange(HOUR) // 600_000 * 600_000,
                "x": rng.choice([None, 1, 2]),
            }
            for _ in range(rng.randrange(60))
        ]
        write_rows(tmp_path, f"hour-{hour}", rows)
        if rng.random() < 0.7:
            for tables, engine in ((ours, arrow_at(tmp_path)), (theirs, None)):
                land_locally(feed, tables, tmp_path, T0 + (hour + 1) * HOUR, engine=engine)
    for tables, engine in ((ours, arrow_at(tmp_path)), (theirs, None)):
        land_locally(feed, tables, tmp_path, T0 + 9 * HOUR, engine=engine)
    assert landings(ours) == landings(theirs), f"seed {seed}"
    assert log_rows(ours) == log_rows(theirs), f"seed {seed}"


def test_a_delta_table_is_landed_commit_by_commit_with_its_partitions_and_new_columns(tmp_path, memory):
    path = tmp_path / "w" / "raw" / "events"
    first = pa.table({"user": ["b", "a"], "t": pa.array([2, 1], pa.int64()), "day": ["2026-01-01", "2026-01-02"]})
    write_deltalake(str(path), first, partition_by=["day"])
    more = first.append_column("x", pa.array([5, 6], pa.int64()))
    write_deltalake(str(path), more, partition_by=["day"], mode="append", schema_mode="merge")
    feed = one_log(source={"table": "raw.events"}, value=["day", "x"])
    tables = DeltaFeedTables(f"{tmp_path}/w")
    land_locally(feed, tables, tmp_path, T0, engine=arrow_at(tmp_path))
    found = [(row["user"], row["day"], row["x"]) for row in log_rows(tables)]
    assert sorted(found, key=str) == sorted(
        [("b", "2026-01-01", None), ("b", "2026-01-01", 5), ("a", "2026-01-02", None), ("a", "2026-01-02", 6)], key=str
    )


def test_values_are_landed_in_the_types_of_a_log(tmp_path):
    (tmp_path / "raw").mkdir()
    table = pa.table(
        {
            "user": ["a"],
            "t": pa.array([datetime(2026, 1, 1, 0, 0, 0, 1999, UTC)], pa.timestamp("us", "UTC")),
            "before": pa.array([-1], pa.timestamp("us")),
            "day": pa.array([date(2026, 2, 28)]),
            "small": pa.array([-5], pa.int16()),
            "single": pa.array([0.1], pa.float32()),
            "zero": pa.array([-0.0]),
            "price": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
            "raw": pa.array([b"\x00\xff"]),
            "flag": pa.array([True]),
        }
    )
    pq.write_table(table, tmp_path / "raw" / "a.parquet")
    tables = DeltaFeedTables(f"{tmp_path}/w")
    land_locally(one_log(), tables, tmp_path, T0, engine=arrow_at(tmp_path))
    (row,) = log_rows(tables)
    assert row["timestamp"] == int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000) + 1
    assert (row["before"], row["day"], row["small"]) == (-1, "2026-02-28", -5)
    assert row["single"] == float(pa.scalar(0.1, pa.float32()).as_py())
    assert str(row["zero"]) == "0.0"
    assert (row["price"], row["raw"], row["flag"]) == (Decimal("1.50"), b"\x00\xff", True)


def test_a_damaged_page_is_reported_with_its_file_and_nothing_is_landed(tmp_path):
    write_rows(tmp_path, "a", [{"user": "ann", "t": n, "got": n, "x": n} for n in range(100)])
    path = tmp_path / "raw" / "a.parquet"
    data = bytearray(path.read_bytes())
    data[30] ^= 0xFF
    path.write_bytes(data)
    tables = DeltaFeedTables(f"{tmp_path}/w")
    with refused(
        "parquet-file-unreadable",
        file=containing("a.parquet"),
        reason="Couldn't deserialize thrift: invalid TType Deserializing page header failed",
    ):
        land_locally(one_log(), tables, tmp_path, T0, engine=arrow_at(tmp_path))
    assert landings(tables) == []


def test_a_small_landing_loads_no_spark(tmp_path):
    write_rows(tmp_path, "a", [{"user": "ann", "t": 0, "got": 0, "x": 1}])
    before = "pyspark" in sys.modules
    land_locally(one_log(), DeltaFeedTables(f"{tmp_path}/w"), tmp_path, T0, engine=arrow_at(tmp_path))
    assert ("pyspark" in sys.modules) == before


def test_a_word_in_a_column_of_numbers_is_refused_without_spark(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("user,t,x\nann,1,1\nbob,2,many\n")
    source = {"path": "raw", "format": "csv", "schema": "user STRING, t BIGINT, x BIGINT"}
    for number, intervals in enumerate([{}, {"every": "1h", "arrived_at": "t"}]):
        tables = DeltaFeedTables(f"{tmp_path}/w{number}")
        with refused(
            "source-value-invalid",
            reason="a.csv, line 3, column x: 'many' is not a valid BIGINT (accepted: whole numbers of 64 bits, like 42)",
            fix=containing("Nothing was landed. Fix the file, or set `unreadable: skip`"),
        ):
            land(one_log(source=source, **intervals), tables, arrow_at(tmp_path), now_ms=T0)


def test_rows_that_exceed_the_memory_of_a_feed_are_sorted_on_disk(tmp_path, monkeypatch):
    from rewindow.engine.worker.landing import sorted_runs

    runs = []
    monkeypatch.setattr(sorted_runs, "write_run", lambda *given: runs.append(write_run(*given)) or runs[-1])
    monkeypatch.setattr("rewindow.engine.worker.landing.parquet_files._READ_ROWS", 5_000)
    write_rows(tmp_path, "a", [{"user": f"u{n % 9}", "t": n, "got": n, "x": n} for n in range(20_000)])
    large, small = DeltaFeedTables(f"{tmp_path}/large"), DeltaFeedTables(f"{tmp_path}/small")
    land_locally(one_log(), large, tmp_path, T0, engine=arrow_at(tmp_path))
    assert runs == []
    land_locally(one_log(landing={"memory": "1MiB"}), small, tmp_path, T0, engine=arrow_at(tmp_path))
    assert len(runs) > 1
    assert log_rows(small) == log_rows(large)


def test_the_command_of_a_small_landing_loads_no_spark(tmp_path):
    write_project(tmp_path, execution="auto", landings="hourly", source="auto", advance=60)
    write_source(tmp_path / "raw", 100)
    code = (
        "import sys; from rewindow.app.open_project import OpenProject; "
        f"print(OpenProject.open({str(tmp_path)!r}).land({JOB!r}).rows, 'pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["100", "False"]


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), pa.timestamp("ms"), pa.timestamp("us")]
)
def test_a_landed_file_is_read_again_only_for_rows_that_arrived_later(tmp_path, monkeypatch, kind):
    read = []
    monkeypatch.setattr(
        "rewindow.engine.worker.landing.parquet_files.open_parquet",
        lambda path, coded=(): read.append(path.rpartition("/")[2]) or open_parquet(path, coded),
    )
    footers = []
    footer = source.footer_of
    monkeypatch.setattr(source, "footer_of", lambda path: footers.append(path) or footer(path))
    feed, tables = feed_config(log={"invalid_timestamp": "skip"}), DeltaFeedTables(f"{tmp_path}/w")
    (tmp_path / "raw").mkdir()
    for hour, later in enumerate((0, 0, 2, 0, 0, 0)):
        got = [T0 + hour * HOUR, None, T0 + (hour + later) * HOUR + 1]
        table = pa.table(
            {
                "user": ["a", "b", "c"],
                "t": pa.array(got).fill_null(T0),
                "got": pa.array(got).cast(pa.timestamp("ms", "UTC")).cast(kind),
            }
        )
        pq.write_table(
            table.append_column("x", pa.array([1, 3, 2])), tmp_path / "raw" / f"{hour}.parquet", row_group_size=2
        )
        read.clear()
        footers.clear()
        land_locally(feed, tables, tmp_path, T0 + (hour + 1) * HOUR, engine=arrow_at(tmp_path))
        waiting = ["2.parquet"] if hour == 4 else []  # the row that was not due when its file was landed
        assert sorted(set(read)) == [*waiting, f"{hour}.parquet"], hour
        assert {path.rpartition("/")[2] for path in footers} == set(read), hour
    assert sorted(row["arrived_at"] for row in log_rows(tables) if row["x"] == 2) == [
        T0 + hour * HOUR + 1 for hour in (0, 1, 3, 4, 4, 5)
    ]


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
@pytest.mark.parametrize("key", ["user", ["user", "page"]])
@pytest.mark.parametrize("data_page_version", ["1.0", "2.0"])
def test_keys_in_every_encoding_of_parquet_are_landed(tmp_path, encoding, key, data_page_version):
    (tmp_path / "raw").mkdir()
    users = ["ann", "bob", "", None, "bo"] * 8
    rows = pa.table({"user": users, "page": [f"/{n}" for n in range(40)], "t": [T0 + n for n in range(40)]})
    for name, options in {
        "plain": {},
        "delta": {"use_dictionary": False, "column_encoding": {"user": encoding, "page": encoding}},
    }.items():
        pq.write_table(
            rows,
            tmp_path / "raw" / f"{name}.parquet",
            row_group_size=15,
            data_page_version=data_page_version,
            **options,
        )
    found = land_by_arrow(tmp_path, key=key, value=["page", "t"] if key == "user" else ["t"])
    assert sorted(row["t"] for row in found) == sorted([T0 + n for n in range(40)] * 2)
    assert {(row["user"], row["t"]) for row in found} == {(user, T0 + n) for n, user in enumerate(users)}


def test_what_arrow_cannot_decode_is_left_to_spark(tmp_path, monkeypatch):
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table({"user": ["ann"], "t": [T0]}), tmp_path / "raw" / "a.parquet")

    def unable(*_args, **_options):
        raise pa.ArrowNotImplementedError("a new encoding")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", unable)
    with pytest.raises(AssertionError, match="write"):
        land_by_arrow(tmp_path)
