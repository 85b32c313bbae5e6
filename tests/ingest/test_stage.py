"""Staged files are durable and described, and their digests do not depend on cuts."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from hashlib import blake2b

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from rewindow.control.plan.spec import add_digests
from rewindow.engine.worker.digest import RowsDigest
from rewindow.engine.worker.parquet_writer import DIGEST_BYTES, FileWriter
from rewindow.tables.delta.commit import commit_files
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.files import Folder
from tests.refusals import refused

SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("text", pa.string()),
        ("number", pa.float64()),
        ("flag", pa.bool_()),
        ("raw", pa.binary()),
        ("price", pa.decimal128(10, 2)),
        ("_run", pa.int64()),
    ]
)


def batch(rows):
    return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def stage(root, batches, **parts):
    options = {
        "target": "log/events",
        "partition": 0,
        "attempt": "0" * 32,
        "partition_values": {},
        "stats_columns": ["offset", "text", "number", "price"],
    }
    writer = FileWriter(str(root), parts.pop("directory", ""), SCHEMA, **{**options, **parts})
    for one in batches:
        writer.write(one)
    return writer.close()


def digest_of(path):
    return blake2b(path.read_bytes(), digest_size=DIGEST_BYTES).hexdigest()


def digest(batches):
    running = RowsDigest()
    for one in batches:
        running.update(one)
    return running.hexdigest()


rows = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.none() | st.text(max_size=5),
        st.none() | st.floats(),
        st.none() | st.booleans(),
        st.none() | st.binary(max_size=5),
        st.none() | st.decimals(min_value=-1000, max_value=1000, places=2),
        st.integers(0, 9),
    ),
    max_size=20,
)


@given(rows, st.data())
def test_a_digest_depends_on_the_rows_alone(found, data):
    order = data.draw(st.permutations(found))
    cut = data.draw(st.integers(0, len(found)))
    whole = digest([batch(found)])
    assert digest([batch(order)]) == whole
    assert digest([batch(order).slice(0, cut), batch(order).slice(cut)]) == whole
    assert add_digests([digest([batch(found[:cut])]), digest([batch(found[cut:])])]) == whole
    other_run = [(*row[:-1], row[-1] + 1) for row in found]
    assert digest([batch(other_run)]) == whole


@given(rows, rows)
def test_other_rows_have_another_digest(one, other):
    def content(found):
        return sorted(
            repr([0.0 if value == 0 and isinstance(value, float) else value for value in row[:-1]]) for row in found
        )

    assert (digest([batch(one)]) == digest([batch(other)])) == (content(one) == content(other))


def test_cells_that_look_alike_differ():
    base = (1, "", 0.0, False, b"", Decimal("0.00"), 0)
    others = [
        (1, None, 0.0, False, b"", Decimal("0.00"), 0),
        (1, "", None, False, b"", Decimal("0.00"), 0),
        (1, "", 0.0, None, b"", Decimal("0.00"), 0),
        (1, "", 0.0, False, None, Decimal("0.00"), 0),
        (1, "", 0.0, False, b"\x00", Decimal("0.00"), 0),
        (1, "", 0.0, False, b"\x00\x00", Decimal("0.00"), 0),
        (0, "", 0.0, True, b"", Decimal("0.00"), 0),
        (1, "ab", 0.0, False, b"", Decimal("0.00"), 0),
        (1, "ba", 0.0, False, b"", Decimal("0.00"), 0),
    ]
    assert len({digest([batch([row])]) for row in [base, *others]}) == len(others) + 1
    doubled = digest([batch([base, base])])
    assert doubled != digest([batch([base])])
    assert digest([batch([(1, "", -0.0, False, b"", Decimal(0), 0)])]) == digest([batch([base])])


def test_a_file_says_what_is_in_it(tmp_path):
    file = stage(tmp_path, [batch([(n, f"t{n}", n / 2, None, None, None, 1) for n in range(5)])], directory="p=1")
    path = tmp_path / file.path
    assert (file.rows, file.bytes, file.file_digest) == (5, path.stat().st_size, digest_of(path))
    assert file.file_digest == Folder(str(tmp_path)).digest(file.path)
    assert file.stats == {
        "numRecords": 5,
        "minValues": {"offset": 0, "text": "t0", "number": 0.0},
        "maxValues": {"offset": 4, "text": "t4", "number": 2.0},
        "nullCount": {"offset": 0, "text": 0, "number": 0, "price": 5},
    }
    assert pq.ParquetFile(path, page_checksum_verification=True).read().num_rows == 5


def test_no_rows_no_file(tmp_path):
    assert stage(tmp_path, [batch([])]) is None
    assert list(tmp_path.iterdir()) == []


def test_bounds_that_json_cannot_hold_are_left_out(tmp_path):
    odd = [(2**60 + 1, "x" * 40, math.nan, None, None, None, 0), (1, None, 1.0, None, None, None, 0)]
    file = stage(tmp_path, [batch(odd)])
    assert json.loads(json.dumps(file.stats, allow_nan=False))["maxValues"] == {"offset": 2**60 + 1}


def test_many_rows_are_several_row_groups_and_survive(tmp_path):
    file = stage(tmp_path, [batch([(n, None, None, None, None, None, 0)] * 1000) for n in range(150)])
    parquet = pq.ParquetFile(tmp_path / file.path)
    assert (parquet.metadata.num_rows, parquet.metadata.num_row_groups) == (150_000, 2)


def test_a_flipped_bit_is_noticed(tmp_path):
    file = stage(tmp_path, [batch([(n, f"text {n}", n * 1.5, True, b"raw", None, 0) for n in range(1000)])])
    path = tmp_path / file.path
    data = bytearray(path.read_bytes())
    data[200] ^= 4
    path.write_bytes(data)
    assert digest_of(path) != file.file_digest
    with refused("file-unreadable"):
        Folder(str(tmp_path)).read_table(file.path)


def test_a_table_takes_the_file_and_prunes_by_it(tmp_path):
    create_table(str(tmp_path), SCHEMA)
    for start in (0, 100):
        file = stage(
            tmp_path, [batch([(n, "t", 0.5, True, b"", Decimal("1.50"), 0) for n in range(start, start + 10)])]
        )
        commit_files(str(tmp_path), [file], app_id="test", version=start // 100 + 1)
    table = DeltaTable(str(tmp_path))
    assert len(table.to_pyarrow_table()) == 20
    actions = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    assert sorted(actions["max.offset"]) == [9, 109]


def test_an_exception_leaves_no_file(tmp_path):
    def fail():
        with FileWriter(
            str(tmp_path), "", SCHEMA, target="t", partition=0, attempt="a", partition_values={}, stats_columns=[]
        ) as writer:
            writer.write(batch([(n, None, None, None, None, None, 0) for n in range(200_000)]))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with refused("staged-file-not-written"):
        stage(tmp_path / "file", [batch([(1, None, None, None, None, None, 0)])])
