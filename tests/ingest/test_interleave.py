"""Rows of several partitions and keys of another job's output, in the order of time (ADR-134, ADR-137)."""

from __future__ import annotations

from itertools import accumulate, groupby, product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.contracts.ingest import FAIL, JOB, LogColumns, LogSpec, LogWrite, SourceSpec, TimestampPolicy
from rewindow.engine.worker.landing.sorted_runs import ARRIVED, PARTITION, TIMESTAMP, order_name
from rewindow.engine.worker.landing.source_order import interleaved

NAMES = (PARTITION, ARRIVED, order_name("_partition"), order_name("_offset"), TIMESTAMP, "a", order_name("b"))
KEYS = st.tuples(st.sampled_from(["", "x", "y"]), st.none() | st.integers(0, 1))
TIMES = st.none() | st.integers(-1, 30)
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(0, 2), TIMES, KEYS))


def write_of(memory_bytes, timestamp="_timestamp", keys=("a", "b")):
    source = SourceSpec(JOB, "warehouse", "first:sums", {})
    spec = LogSpec("sums", source, ("k",), True, None, False, timestamp, order=("_partition", "_offset", *keys))
    return LogWrite(
        feed="sums",
        generation=1,
        attempt="a",
        partitions=3,
        spec=spec,
        columns=LogColumns((), (), True, False),
        log_root="log",
        quarantine_root="quarantine",
        landings=(),
        starts={},
        policy=TimestampPolicy(FAIL),
        now_ms=0,
        memory_bytes=memory_bytes,
    )


def batches_of(rows, size, names=NAMES):
    for start in range(0, len(rows), size):
        columns = zip(*rows[start : start + size], strict=True)
        arrays = [
            pa.array(column, pa.string() if name == "a" else pa.int64())
            for name, column in zip(names, columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=list(names))


def sorted_rows(drawn):
    """Return rows (partition, epoch, source partition, offset, time, parts of the key), sorted as they come."""
    rows = [(p, e, s, offset, time, *key) for offset, (p, e, s, time, key) in enumerate(drawn)]
    return sorted(rows, key=lambda row: row[:4])


def lateness(times):
    """Return by how much each time is behind the largest one before it."""
    known = [-1 if time is None else time for time in times]
    return [latest - time for time, latest in zip(known, accumulate(known, max), strict=True)]


@given(ROWS, st.integers(1, 7), st.sampled_from([1, 400, 1 << 20]), st.sampled_from([(), ("a",), ("a", "b")]))
def test_no_row_is_later_than_among_those_of_its_key_and_none_moves_there(drawn, size, memory, keys):
    rows = sorted_rows(drawn)
    found = [
        tuple(row[name] for name in NAMES)
        for batch in interleaved(write_of(memory, keys=keys), batches_of(rows, size))
        for row in batch.to_pylist()
    ]
    assert sorted(found, key=lambda row: row[:4]) == rows
    assert [row[:2] for row in found] == [row[:2] for row in rows]

    def key_of(row):
        return row[2], *row[5 : 5 + len(keys)]

    for _, some in groupby(found, key=lambda row: row[:2]):
        group = list(some)
        late = dict(zip((row[3] for row in group), lateness([row[4] for row in group]), strict=True))
        for key in {key_of(row) for row in group}:
            own = [row for row in group if key_of(row) == key]
            assert own == sorted(own, key=lambda row: row[3])
            before = lateness([row[4] for row in own])
            assert all(late[row[3]] <= alone for row, alone in zip(own, before, strict=True))


@pytest.mark.parametrize("memory", [1, 1 << 20])
def test_rows_of_equal_times_stay_in_the_order_of_partition_and_offset(memory):
    rows = [(0, 1, source, offset, 5, "x", offset) for source in range(3) for offset in range(4)]
    (*found,) = interleaved(write_of(memory), batches_of(rows, 5))
    assert [row for batch in found for row in zip(*batch.to_pydict().values(), strict=True)] == [
        (*row, 5) for row in rows
    ]


def test_the_results_of_windows_that_close_together_are_in_the_order_of_their_times():
    rows = [(0, 1, 0, offset, time, key, None) for offset, (key, time) in enumerate(product("xy", (10, 20, 30)))]
    (batch,) = interleaved(write_of(1 << 20), batches_of(rows, 9))
    assert batch.column(TIMESTAMP).to_pylist() == [10, 10, 20, 20, 30, 30]


def test_with_an_extractor_the_times_of_the_output_decide():
    names = (*NAMES[:4], order_name("_timestamp"))
    rows = [(0, 1, 0, 0, 10), (0, 1, 0, 1, 30), (0, 1, 1, 0, 20), (0, 1, 1, 1, 40)]
    (batch,) = interleaved(write_of(1 << 20, "module:function", keys=()), batches_of(rows, 9, names))
    assert batch.column(order_name("_timestamp")).to_pylist() == [10, 20, 30, 40]
