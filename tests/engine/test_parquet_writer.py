"""An aborted staged file leaves nothing, and its writer logs nothing when it is garbage-collected."""

from __future__ import annotations

import gc
from pathlib import Path

import pyarrow as pa

from rewindow.engine.worker.parquet_writer import ROW_GROUP, FileWriter

SCHEMA = pa.schema([("n", pa.int64())])


def test_an_aborted_file_is_deleted(tmp_path: Path) -> None:
    writer = FileWriter(
        str(tmp_path), "", SCHEMA, target="t", partition=0, attempt="a", partition_values={}, stats_columns=["n"]
    )
    writer.write(pa.RecordBatch.from_arrays([pa.array(range(ROW_GROUP), pa.int64())], schema=SCHEMA))
    assert len(list(tmp_path.iterdir())) == 1
    writer.abort()
    assert list(tmp_path.iterdir()) == []
    del writer
    gc.collect()
    assert list(tmp_path.iterdir()) == []
