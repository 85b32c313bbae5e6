from __future__ import annotations

import struct
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from rewindow.streams.serde.schema import Column
from rewindow.tables.delta.commit import commit_files
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.handle import Handle
from rewindow.tables.delta.table_rows import content_hash, count_rows, read_rows
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.content_hash import hash_rows
from tests.refusals import containing, refused
from tests.tables.scene import spoil
from tests.tables.test_tables import APP, COLUMNS, SCHEMA, staged

KINDS = arrow_schema(
    [
        Column("text", "string"),
        Column("whole", "long"),
        Column("real", "double"),
        Column("yes", "boolean"),
        Column("raw", "binary"),
        Column("money", "decimal(38,18)"),
    ]
)
rows = st.lists(
    st.tuples(
        st.none() | st.text(max_size=3),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(),
        st.none() | st.booleans(),
        st.none() | st.binary(max_size=3),
        st.none() | st.decimals(-1000, 1000, places=3),
    ),
    max_size=12,
)


def as_table(rows, splits=()):
    whole = pa.table([pa.array([row[i] for row in rows], KINDS.types[i]) for i in range(len(KINDS))], schema=KINDS)
    edges = [0, *sorted(cut % (len(rows) + 1) for cut in splits), len(rows)]
    return pa.concat_tables([whole.slice(a, b - a) for a, b in pairwise(edges)])


@given(rows, st.randoms(use_true_random=False), st.lists(st.integers(0, 12), max_size=3))
def test_the_order_of_rows_and_columns_and_the_splits_do_not_count(rows, rng, splits):
    permuted = list(rows)
    rng.shuffle(permuted)
    names = list(KINDS.names)
    rng.shuffle(names)
    assert hash_rows(as_table(rows)) == hash_rows(as_table(permuted, splits).select(names))


@given(rows.filter(bool), st.data())
def test_a_row_that_is_lost_doubled_or_altered_counts(rows, data):
    at = data.draw(st.integers(0, len(rows) - 1))
    before = hash_rows(as_table(rows))
    assert hash_rows(as_table(rows[:at] + rows[at + 1 :])) != before
    assert hash_rows(as_table([*rows, rows[at]])) != before
    column = data.draw(st.integers(0, len(KINDS) - 1))
    other = ("other", 12345, 0.123, None if rows[at][3] else True, b"other", Decimal("7.7"))[column]
    assert (
        hash_rows(as_table([*rows[:at], (*rows[at][:column], other, *rows[at][column + 1 :]), *rows[at + 1 :]]))
        != before
    )


def test_zeros_and_nans_are_values_not_bits():
    odd_nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000123))[0]
    row = ("a", 1, None, None, None, None)
    assert hash_rows(as_table([(*row[:2], 0.0, *row[3:])])) == hash_rows(as_table([(*row[:2], -0.0, *row[3:])]))
    nan = hash_rows(as_table([(*row[:2], float("nan"), *row[3:])]))
    assert nan == hash_rows(as_table([(*row[:2], odd_nan, *row[3:])]))
    assert nan != hash_rows(as_table([row]))


def test_null_is_not_the_empty_text_and_texts_do_not_run_together():
    def texts(*values):
        return hash_rows(pa.table({"a": pa.array(values, pa.string())}))

    assert texts(None) != texts("")
    assert texts("ab", "c") != texts("a", "bc")
    assert texts() != texts(None)


def test_the_hash_of_a_table_does_not_see_files_or_runs(tmp_path):
    hashes = []
    for name, sizes in (("one", [6]), ("many", [1, 2, 3])):
        path = str(tmp_path / name)
        create_table(path, SCHEMA, ("partition",))
        for version, _ in enumerate(sizes, start=1):
            commit_files(path, [staged(path, "same" + "x" * version, sizes[version - 1])], app_id=APP, version=version)
        hashes.append(content_hash(path, exclude=("k", "v")))
        assert count_rows(path) == 6
    assert hashes[0] == hashes[1]


def test_rows_are_read_with_their_partitions(tmp_path):
    path = str(tmp_path / "t")
    assert count_rows(path) == 0
    create_table(path, SCHEMA, ("partition",))
    assert read_rows(path).num_rows == 0
    commit_files(path, [staged(path, "a", 2, 0), staged(path, "b", 2, 1)], app_id=APP, version=1)
    found = read_rows(path, ["partition", "v"], where=pc.field("k") == "b")
    assert sorted(found.to_pylist(), key=str) == [{"partition": 1, "v": 0}, {"partition": 1, "v": 1}]
    assert read_rows(path).schema.equals(arrow_schema(COLUMNS))


def test_a_column_added_later_is_null_in_older_files(tmp_path):
    path = str(tmp_path / "t")
    create_table(path, SCHEMA, ("partition",))
    commit_files(path, [staged(path, "a", 2)], app_id=APP, version=1)
    wider = DeltaTable.create(str(tmp_path / "wider"), arrow_schema([Column("w", "double")]))
    DeltaTable(path).alter.add_columns(wider.schema().fields)
    assert read_rows(path, ["w"])["w"].to_pylist() == [None, None]


def test_reading_what_is_not_there_or_damaged_is_an_error(tmp_path):
    path = str(tmp_path / "t")
    with refused("table-missing"):
        content_hash(path)
    create_table(path, SCHEMA, ("partition",))
    file = staged(path, "a", 500)
    commit_files(path, [file], app_id=APP, version=1)
    before = content_hash(path)
    spoil(Path(path) / file.path, 200)
    with refused("file-unreadable", path=containing("a.parquet")):
        content_hash(path)
    spoil(Path(path) / file.path, 200)
    assert content_hash(path) == before
    (Path(path) / file.path).unlink()
    with refused("file-unreadable", path=containing("a.parquet")):
        content_hash(path)


def test_column_mapping_is_refused(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table = create_table(path, SCHEMA, ("partition",))
    real = table.metadata()

    mapped = SimpleNamespace(
        configuration={**real.configuration, "delta.columnMapping.mode": "name"},
        partition_columns=real.partition_columns,
    )
    monkeypatch.setattr(Handle, "metadata", lambda _self: mapped)
    with refused("table-not-readable-by-file", features="column mapping"):
        content_hash(path)
