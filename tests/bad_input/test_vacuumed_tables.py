"""A Delta table without `arrived_at:` whose older files OPTIMIZE replaced and VACUUM deleted can be landed as it is now."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rewindow.tables.delta.table_rows import read_rows
from tests.bad_input.scene import FEED, Answer, Bench, hour

SCHEMA = pa.schema([("user", pa.string()), ("t", pa.int64()), ("got", pa.int64()), ("x", pa.int64())])
OTHER = FEED.replace("feed: activity", "feed: other").replace("{path: raw, format: parquet}", "{table: raw.events}")
BY_COMMIT = OTHER.replace(", arrived_at: got", ", value: [x]")
NEW = ("land", "other", "--new-generation")


def table_of(bench: Bench) -> str:
    return str(bench.warehouse / "raw" / "events")


def append(bench: Bench, number: int) -> None:
    write_deltalake(table_of(bench), pa.Table.from_pylist(hour(number), schema=SCHEMA), mode="append")


def vacuum(bench: Bench) -> None:
    """Compact the table, and delete the files that it no longer names."""
    table = DeltaTable(table_of(bench))
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def landed(answer: Answer) -> None:
    """Check that a landing succeeded, and did not look for files that are gone."""
    assert answer.code == 0, answer.err
    assert "Errno" not in answer.err
    assert "read raw.events:" not in answer.err


def log_of(bench: Bench) -> list[tuple[int, int, int]]:
    """Return partition, offset and value of the newest generation's rows."""
    rows = read_rows(str(bench.warehouse / "logs/other/events")).to_pylist()
    newest = max(row["generation"] for row in rows)
    return sorted((row["partition"], row["offset"], row["x"]) for row in rows if row["generation"] == newest)


@pytest.fixture
def other(bench: Bench) -> Bench:
    """A project with a feed that reads a Delta table of two versions."""
    bench.write("conf/feeds/other.yaml", BY_COMMIT)
    append(bench, 0)
    append(bench, 1)
    return bench


def test_a_first_landing_takes_what_the_table_has(other: Bench) -> None:
    vacuum(other)
    landed(other.run("land", "other"))
    assert sorted(x for _, _, x in log_of(other)) == sorted([*range(12), *range(12)])
    append(other, 2)
    landed(other.run("land", "other"))
    assert len(log_of(other)) == 36


def test_a_new_generation_takes_what_the_table_has_and_is_the_same_each_time(other: Bench) -> None:
    landed(other.run("land", "other"))
    vacuum(other)
    append(other, 2)
    landed(other.run("land", "other"))
    landed(other.run(*NEW))
    once = log_of(other)
    assert len(once) == 36
    vacuum(other)  # the same rows in other files
    landed(other.run(*NEW))
    assert log_of(other) == once


def test_intervals_need_a_column_of_arrivals_and_the_message_says_so(other: Bench) -> None:
    vacuum(other)
    other.write("conf/feeds/other.yaml", BY_COMMIT + "landing: {every: 1h}\n")
    other.refuses("land other", "source-arrival-unknown")
    other.write("conf/feeds/other.yaml", OTHER + "landing: {every: 1h}\n")
    landed(other.run("land", "other"))


def test_rows_that_waited_for_their_interval_are_refused_with_the_column_that_they_need(other: Bench) -> None:
    feed = BY_COMMIT + "landing: {every: 1d}\n"
    other.write("conf/feeds/other.yaml", feed)
    landed(other.run("land", "other", "--until", "2100-01-01T00:00:00Z"))
    append(other, 2)
    vacuum(other)
    refusal = other.refuses("land other --until 2100-01-02T00:00:00Z", "source-rewritten-before-landing")
    assert "`arrived_at: COLUMN`" in refusal.message
    other.write("conf/feeds/other.yaml", OTHER + "landing: {every: 1d}\n")
    landed(other.run(*NEW))
