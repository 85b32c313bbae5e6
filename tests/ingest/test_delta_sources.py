"""Delta tables as sources: rows by version, arrival by commit, and which changes make it a different table."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindow.config.feed import feed_spec
from rewindow.contracts.ingest import ReadWindow
from rewindow.errors import DataError
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.source_table import look_at_table
from tests.ingest.local_engine import HOUR, T0, feed_config, land_locally, landings, log_rows
from tests.refusals import containing, refused


def append(source_path, rows, time_ms=None):
    """Append rows in one commit whose recorded time is ``time_ms``."""
    schema = pa.schema([("user", pa.string()), ("t", pa.int64()), ("got", pa.int64()), ("x", pa.int64())])
    write_deltalake(source_path, pa.Table.from_pylist(rows, schema=schema), mode="append")
    if time_ms is not None:
        stamp(source_path, time_ms)


def stamp(source_path, time_ms):
    path = Path(source_path) / "_delta_log" / f"{DeltaTable(source_path).version():020}.json"
    actions = [json.loads(line) for line in path.read_text().split("\n") if line]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = time_ms
    path.write_text("\n".join(map(json.dumps, actions)))


def vacuum(source_path):
    """Compact a table, and delete the files that it no longer names."""
    DeltaTable(source_path).optimize.compact()
    DeltaTable(source_path).vacuum(0, dry_run=False, enforce_retention_duration=False)


def row(n, hour=0):
    return {"user": f"u{n % 4}", "t": T0 + hour * HOUR, "got": T0 + hour * HOUR + n, "x": n}


def table_feed(**parts):
    log = {"source": {"table": "raw.events"}, **parts.pop("log", {})}
    return feed_config(**parts, log=log)


@pytest.fixture
def source_path(tmp_path):
    return f"{tmp_path}/w/raw/events"


@pytest.fixture
def tables(tmp_path):
    return DeltaFeedTables(f"{tmp_path}/w")


BY_COMMIT = {"log": {"arrived_at": None, "value": ["x"]}}
EACH_CALL = {"landing": {"max_ahead": "none"}}


def test_each_call_lands_the_versions_since(tmp_path, source_path, tables):
    feed = table_feed(**EACH_CALL)
    for n in range(3):
        append(source_path, [row(n)])
        assert land_locally(feed, tables, tmp_path, T0).rows == 1
    assert land_locally(feed, tables, tmp_path, T0).landings == ()
    assert sorted((row["x"], row["landing"]) for row in log_rows(tables)) == [(0, 1), (1, 2), (2, 3)]


def test_the_output_of_a_job_that_is_landed_as_a_table_is_told(tmp_path, source_path, tables):
    append(source_path, [row(0)])
    assert land_locally(table_feed(**EACH_CALL), tables, tmp_path, T0).warnings == ()
    DeltaTable(source_path).alter.set_table_properties({"rewindow.job": "totals"}, raise_if_not_exists=False)
    append(source_path, [row(1)])
    (warning,) = land_locally(table_feed(**EACH_CALL), tables, tmp_path, T0).warnings
    assert (warning.code, warning.facts["job"]) == ("output-landed-as-table", "totals")


def test_optimize_adds_no_rows_and_loses_none(tmp_path, source_path, tables):
    feed = table_feed(**EACH_CALL)
    append(source_path, [row(0)])
    append(source_path, [row(1)])
    land_locally(feed, tables, tmp_path, T0)
    append(source_path, [row(2)])
    DeltaTable(source_path).optimize.compact()
    append(source_path, [row(3)])
    assert land_locally(feed, tables, tmp_path, T0).rows == 2
    DeltaTable(source_path).optimize.compact()
    assert land_locally(feed, tables, tmp_path, T0).landings == ()
    assert sorted(row["x"] for row in log_rows(tables)) == [0, 1, 2, 3]


def test_what_optimize_and_vacuum_took_away_before_it_was_landed_is_said(tmp_path, source_path, tables):
    feed = table_feed(**EACH_CALL)
    append(source_path, [row(0)])
    land_locally(feed, tables, tmp_path, T0)
    append(source_path, [row(1)])
    vacuum(source_path)
    with refused("source-rewritten-before-landing", gone=containing("VACUUM")):
        land_locally(feed, tables, tmp_path, T0)


def test_a_vacuumed_table_is_landed_as_it_is_now_by_a_first_landing_and_by_each_new_generation(
    tmp_path, source_path, tables
):
    feed = table_feed(**EACH_CALL, **BY_COMMIT)
    for n in (0, 1):
        append(source_path, [row(n)])
    vacuum(source_path)
    assert land_locally(feed, tables, tmp_path, T0).rows == 2
    append(source_path, [row(2)])
    assert land_locally(feed, tables, tmp_path, T0).rows == 1
    generations = []
    for generation in (2, 3):
        vacuum(source_path)  # the same rows in other files
        assert land_locally(feed, tables, tmp_path, T0, new_generation=True).rows == 3
        rows = log_rows(tables, generation=generation)
        generations.append([(row["partition"], row["offset"], row["x"]) for row in rows])
    assert generations[0] == generations[1]


def test_a_vacuumed_table_needs_a_column_of_arrivals_for_intervals(tmp_path, source_path, tables):
    for n in (0, 1):
        append(source_path, [row(n)])
    vacuum(source_path)
    with refused("source-arrival-unknown"):
        land_locally(table_feed(**BY_COMMIT), tables, tmp_path, T0 + HOUR)
    assert land_locally(table_feed(), tables, tmp_path, T0 + HOUR).rows == 2


def test_vacuumed_rows_that_waited_for_their_interval_need_a_column_of_arrivals(tmp_path, source_path, tables):
    append(source_path, [row(0)], T0 + 1)
    land_locally(table_feed(**BY_COMMIT), tables, tmp_path, T0 + HOUR)
    append(source_path, [row(1)], T0 + HOUR + 1)
    vacuum(source_path)
    with refused("source-rewritten-before-landing", fix=containing("`arrived_at: COLUMN`")):
        land_locally(table_feed(**BY_COMMIT), tables, tmp_path, T0 + 2 * HOUR)
    assert land_locally(table_feed(), tables, tmp_path, T0 + 2 * HOUR, new_generation=True).rows == 2


def test_a_table_that_only_spark_reads_is_landed_with_the_files_that_it_has(tmp_path, source_path, monkeypatch):
    """Spark reads such a table as a whole, so it never sees a file that OPTIMIZE has replaced: its rows would be lost."""
    append(source_path, [row(0)])
    append(source_path, [row(1)])
    DeltaTable(source_path).optimize.compact()
    monkeypatch.setattr("rewindow.tables.delta.source_table.direct_problem", lambda _table: "its columns are mapped")
    feed = feed_spec(table_feed(**EACH_CALL, **BY_COMMIT), project_root=str(tmp_path), warehouse=f"{tmp_path}/w")
    look = look_at_table(feed.logs[0], None, ReadWindow())
    assert {piece.path for piece in look.fresh} == {unquote(path) for path in DeltaTable(source_path).file_uris()}


@pytest.mark.parametrize("change", ["delete", "update", "overwrite"])
def test_a_version_that_changes_rows_is_refused_by_name(tmp_path, source_path, tables, change):
    feed = table_feed(**EACH_CALL)
    append(source_path, [row(0), row(1)])
    land_locally(feed, tables, tmp_path, T0)
    table = DeltaTable(source_path)
    if change == "delete":
        table.delete("x = 0")
    elif change == "update":
        table.update({"x": "7"}, predicate="x = 0")
    else:
        write_deltalake(source_path, pa.Table.from_pylist([row(5)]), mode="overwrite")
    name = "WRITE Overwrite" if change == "overwrite" else change.upper()
    with pytest.raises(DataError, match=rf"raw\.events: version 1 \({name}\).*--new-generation"):
        land_locally(feed, tables, tmp_path, T0)
    assert land_locally(feed, tables, tmp_path, T0, new_generation=True).generation == 2
    expected = {"delete": [1], "update": [1, 7], "overwrite": [5]}[change]
    assert sorted(row["x"] for row in log_rows(tables, generation=2)) == expected


def test_a_restored_or_recreated_table_is_another_one(tmp_path, source_path, tables):
    feed = table_feed(**EACH_CALL)
    append(source_path, [row(0)])
    append(source_path, [row(1)])
    land_locally(feed, tables, tmp_path, T0)
    DeltaTable(source_path).restore(0)
    with refused("source-table-restored"):
        land_locally(feed, tables, tmp_path, T0)
    (Path(source_path) / "_delta_log" / f"{2:020}.json").unlink()
    (Path(source_path) / "_delta_log" / f"{1:020}.json").unlink()
    with refused("source-table-replaced", change="went back from version 1 to 0"):
        land_locally(feed, tables, tmp_path, T0)
    shutil.rmtree(source_path)
    append(source_path, [row(0)])
    with refused("source-table-replaced", change=containing("created again")):
        land_locally(feed, tables, tmp_path, T0)
    shutil.rmtree(source_path)
    with refused("source-table-missing"):
        land_locally(feed, tables, tmp_path, T0)


def test_a_file_that_a_later_version_adds_again_is_landed_once(tmp_path, source_path, tables):
    feed = table_feed(**EACH_CALL, **BY_COMMIT)
    append(source_path, [row(0)], T0)
    append(source_path, [row(1)], T0 + HOUR)
    table = DeltaTable(source_path)
    table.delete()
    table.restore(1)  # as a deletion vector does, it adds files that an earlier version added
    assert land_locally(feed, tables, tmp_path, T0 + 2 * HOUR).rows == 2
    assert sorted(row["x"] for row in log_rows(tables)) == [0, 1]


@pytest.mark.parametrize("left", [None, b'{"add": {"pa', b"\xff", b"[]", b'{"add": {"size": 1}}'])
def test_versions_that_were_cleaned_out_or_damaged_are_a_gap_and_said(tmp_path, source_path, tables, left):
    feed = table_feed(**EACH_CALL)
    append(source_path, [row(0)])
    land_locally(feed, tables, tmp_path, T0)
    append(source_path, [row(1)])
    append(source_path, [row(2)])
    DeltaTable(source_path).create_checkpoint()
    commit = Path(source_path) / "_delta_log" / f"{1:020}.json"
    if left is None:
        commit.unlink()
    else:
        commit.write_bytes(left)
    with refused("source-version-cleaned", version=1, fix=containing("--new-generation")):
        land_locally(feed, tables, tmp_path, T0)
    assert land_locally(feed, tables, tmp_path, T0, new_generation=True).rows == 3


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("by_commit", [True, False])
def test_hourly_and_bulk_calls_write_the_same_landings(tmp_path, seed, by_commit):
    """Also with OPTIMIZE in between, and with commit times that go backwards."""
    rng = random.Random(seed)
    source_path = f"{tmp_path}/events"
    log = {"source": {"path": source_path, "format": "delta"}, **(BY_COMMIT["log"] if by_commit else {})}
    feed = feed_config(log=log, max_task_idle=rng.choice([0, "forever"]), lag=rng.choice([0, "5m"]))
    hourly, bulk = DeltaFeedTables(f"{tmp_path}/hourly"), DeltaFeedTables(f"{tmp_path}/bulk")
    n = 0
    append(source_path, [], T0 - HOUR)
    for hour in range(4):
        for part in range(rng.randrange(4)):
            rows = [{**row(n + k, hour), "got": T0 + hour * HOUR + part * 1000 + k} for k in range(rng.randrange(1, 6))]
            append(source_path, rows, T0 + hour * HOUR + part * 60_000 - (rng.choice([0, 90_000]) if part > 1 else 0))
            n += len(rows)
        if rng.random() < 0.4 and by_commit:
            DeltaTable(source_path).optimize.compact(commit_properties=CommitProperties(custom_metadata={}))
            stamp(source_path, T0 + hour * HOUR + HOUR // 2)
        land_locally(feed, hourly, tmp_path, T0 + (hour + 1) * HOUR)
    land_locally(feed, bulk, tmp_path, T0 + 4 * HOUR)
    assert landings(hourly) == landings(bulk), f"seed {seed}"
    assert n == 0 or log_rows(hourly) == log_rows(bulk), f"seed {seed}"
    assert n == sum(landing["counts"]["rows"] for landing in landings(bulk)), f"seed {seed}"


def test_rows_of_a_version_that_comes_late_are_behind(tmp_path, source_path, tables):
    feed = table_feed()
    append(source_path, [row(0, hour=0), row(1, hour=1)])
    assert land_locally(feed, tables, tmp_path, T0 + HOUR).rows == 1
    append(source_path, [row(2, hour=0), row(3, hour=2), row(4, hour=1)])
    DeltaTable(source_path).optimize.compact()
    report = land_locally(feed, tables, tmp_path, T0 + 2 * HOUR)
    assert (report.rows, report.behind) == (3, 1)
    report = land_locally(feed, tables, tmp_path, T0 + 3 * HOUR)
    assert (report.rows, report.behind) == (1, 0)
    assert sorted((row["x"], row["landing"]) for row in log_rows(tables)) == [(0, 1), (1, 2), (2, 2), (3, 3), (4, 2)]


def test_versions_of_a_later_interval_wait_for_it(tmp_path, source_path, tables):
    feed = table_feed(**BY_COMMIT)
    append(source_path, [row(0)], T0 + 1)
    append(source_path, [row(1)], T0 + HOUR + 1)
    append(source_path, [row(2)], T0 + 2 * HOUR + 1)
    assert [land_locally(feed, tables, tmp_path, T0 + hour * HOUR).rows for hour in (1, 2, 3, 4)] == [1, 1, 1, 0]
    assert [row["arrived_at"] - T0 for row in sorted(log_rows(tables), key=lambda row: row["x"])] == [
        1,
        HOUR + 1,
        2 * HOUR + 1,
    ]


def test_without_a_log_that_goes_back_to_the_start_there_is_no_arrival(tmp_path, source_path, tables):
    append(source_path, [row(0)], T0 + 1)
    append(source_path, [row(1)], T0 + 2)
    DeltaTable(source_path).create_checkpoint()
    (Path(source_path) / "_delta_log" / f"{0:020}.json").unlink()
    with refused("source-arrival-unknown"):
        land_locally(table_feed(**BY_COMMIT), tables, tmp_path, T0 + HOUR)
    each = table_feed(landing={"max_ahead": "none"}, log=BY_COMMIT["log"])
    assert land_locally(each, tables, tmp_path, T0 + HOUR).rows == 2


def test_a_commit_whose_clock_went_back_arrives_when_the_one_before_did(tmp_path, source_path, tables):
    feed = table_feed(**BY_COMMIT)
    append(source_path, [row(0)], T0 + 1)
    land_locally(feed, tables, tmp_path, T0 + HOUR)
    append(source_path, [row(1)], T0 + HOUR + 30_000)
    append(source_path, [row(2)], T0 + HOUR - 60_000)
    report = land_locally(feed, tables, tmp_path, T0 + 2 * HOUR)
    assert (report.rows, report.behind) == (2, 0)
    assert {row["arrived_at"] - T0 for row in log_rows(tables)} == {1, HOUR + 30_000}


QUIET = st.lists(st.lists(st.integers(0, 3), max_size=2), min_size=3, max_size=6)
"""For each hour, the users with an arriving row."""


@pytest.mark.slow
@settings(max_examples=max(5, settings().max_examples // 10))
@given(QUIET, st.sampled_from(["1h", "2h", "150m"]), st.sampled_from([0, "20m"]))
def test_whoever_is_quiet_for_a_while_is_given_up_by_hourly_calls_as_by_one(hours, idle, lag):
    """D16 and D20: the watermark rises in the same interval, regardless of when `land` is called and of new rows."""
    with tempfile.TemporaryDirectory() as folder:
        source_path, root = f"{folder}/hourly/raw/events", Path(folder)
        bulk_source = f"{folder}/bulk/raw/events"
        hourly, bulk = DeltaFeedTables(f"{folder}/hourly"), DeltaFeedTables(f"{folder}/bulk")
        feed = table_feed(max_task_idle=idle, lag=lag, partitions=8, **BY_COMMIT)
        made = False
        for hour, users in enumerate([*hours, [], [], []]):
            at = T0 + hour * HOUR
            if users:
                rows = [{**row(user, hour), "t": at + user} for user in users]
                append(source_path, rows, at + 1)
                append(bulk_source, rows, at + 1)
                made = True
            if made:
                before = len(hourly.state("activity"))
                report = land_locally(feed, hourly, root, at + HOUR + 5)
                if not users and not report.landings:
                    assert len(hourly.state("activity")) == before
        if made:
            land_locally(feed, bulk, root, T0 + 1000 * HOUR, until_ms=T0 + (len(hours) + 3) * HOUR)
            assert landings(hourly) == landings(bulk)
            assert log_rows(hourly) == log_rows(bulk)
            latest = max(T0 + hour * HOUR + max(users) for hour, users in enumerate(hours) if users)
            assert landings(bulk)[-1]["watermark"] == latest - (1_200_000 if lag else 0)


def test_each_call_gives_up_who_was_quiet_for_so_long(tmp_path, source_path, tables):
    feed = table_feed(max_task_idle="2h", partitions=8, log={"value": ["x"], "arrived_at": None}, **EACH_CALL)
    append(source_path, [row(0), row(1, 1)])
    assert land_locally(feed, tables, tmp_path, T0).watermark_ms == T0
    assert land_locally(feed, tables, tmp_path, T0 + HOUR).landings == ()
    append(source_path, [row(1, 2)])
    assert land_locally(feed, tables, tmp_path, T0 + HOUR).watermark_ms == T0
    assert land_locally(feed, tables, tmp_path, T0 + 2 * HOUR - 1).landings == ()
    report = land_locally(feed, tables, tmp_path, T0 + 2 * HOUR)
    assert (report.landings, report.rows, report.enforced) == ((3,), 0, 1)
    assert report.watermark_ms == T0 + 2 * HOUR
