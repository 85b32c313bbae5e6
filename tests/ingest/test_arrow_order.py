"""The order of rows in a landing: sorting columns, merging sorted runs, and the partitions of whole key columns."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rewindow.engine.worker.landing.sorted_runs import (
    PARTITION,
    merged,
    order_of,
    read_run,
    sort_key,
    sorted_rows,
    write_run,
)
from rewindow.engine.worker.landing.source_rows import partitions_of
from rewindow.streams.serde.key_bytes import partition_of

LONG = st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 7])
TEXT = st.sampled_from(["", "a", "aa", "b", "B", "ä", "\uffff", "\U0001f600"])
FLOAT = st.sampled_from([0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan")])
KINDS = {
    pa.int64(): LONG,
    pa.string(): TEXT,
    pa.float64(): FLOAT,
    pa.bool_(): st.booleans(),
    pa.binary(): st.sampled_from([b"", b"\0", b"\xff", b"a"]),
    pa.decimal128(9, 2): st.sampled_from([Decimal("0.00"), Decimal("-1.50"), Decimal("12.34")]),
}


@st.composite
def tables(draw, most_columns=4):
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=most_columns))
    rows = draw(st.integers(0, 40))
    columns = [pa.array(draw(st.lists(st.none() | KINDS[kind], min_size=rows, max_size=rows)), kind) for kind in kinds]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{number}" for number in range(len(kinds))])


def as_rows(batch):
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


@given(tables())
def test_rows_are_sorted_as_their_keys_are(batch):
    order = order_of(batch.columns)
    rows = as_rows(batch)
    expected = sorted(range(len(rows)), key=lambda row: sort_key(rows[row]))
    assert (list(range(len(rows))) if order is None else order.tolist()) == expected


@given(tables(), st.data())
def test_merged_runs_are_the_rows_sorted(batch, data):
    names = batch.schema.names
    runs = []
    start = 0
    while start < batch.num_rows:
        count = data.draw(st.integers(1, batch.num_rows - start))
        run = sorted_rows(batch.slice(start, count), names)
        size = data.draw(st.integers(1, 5))
        runs.append([run.slice(at, size) for at in range(0, count, size)])
        start += count
    found = [row for part in merged(runs, names) for row in as_rows(part)]
    assert list(map(sort_key, found)) == sorted(map(sort_key, as_rows(batch)))


def test_runs_that_follow_each_other_are_passed_on_without_sorting():
    runs = [[pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [3, 3]})], [pa.record_batch({"a": [4, 5]})]]
    found = list(merged(runs, ["a"]))
    assert found[0].column(0).buffers()[1].address == runs[0][0].column(0).buffers()[1].address
    assert [row for batch in found for row in batch.column(0).to_pylist()] == [1, 2, 3, 3, 4, 5]


@given(
    st.lists(st.tuples(st.none() | TEXT, st.none() | LONG, st.none() | FLOAT.filter(lambda x: x == x)), max_size=30),  # noqa: PLR0124
    st.integers(1, 7),
)
def test_each_row_gets_the_partition_of_its_key(keys, partitions):
    texts, longs, floats = (
        pa.array([key[at] for key in keys], kind) for at, kind in enumerate((pa.string(), pa.int64(), pa.float64()))
    )
    for column in (texts, longs, floats, texts.dictionary_encode()):
        found = partitions_of([column], is_scalar=True, partitions=partitions).to_pylist()
        assert found == [0 if key is None else partition_of(key, partitions) for key in column.to_pylist()]
    found = partitions_of([texts, longs, floats], is_scalar=False, partitions=partitions).to_pylist()
    assert found == [partition_of(key, partitions) for key in keys]


def test_a_run_keeps_the_rows_of_each_partition(tmp_path, monkeypatch):
    monkeypatch.setattr("rewindow.engine.worker.landing.sorted_runs._BATCH_ROWS", 3)
    rows = pa.record_batch({PARTITION: pa.array([0] * 7 + [2] * 2), "x": np.arange(9)})
    run = write_run(str(tmp_path), "a" * 32, rows)
    assert dict(run.batches) == {0: (0, 3), 2: (3, 4)}
    assert [x for batch in read_run(run, 2) for x in batch.column(1).to_pylist()] == [7, 8]
    assert [x for batch in read_run(run, 0) for x in batch.column(1).to_pylist()] == list(range(7))
