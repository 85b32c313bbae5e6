"""The partition-local reader on rewritten files: the same rows, or an error, never a gap."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.contracts.tasks import LogFile
from rewindow.engine.worker import log_reader as reader
from rewindow.engine.worker.log_reader import ordered_batches
from rewindow.errors import StorageError


def file(folder: Path, name: str, offsets: list[int]) -> LogFile:
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table({"offset": pa.array(offsets, pa.int64())}), path, row_group_size=4)
    return LogFile(str(path), min(offsets), max(offsets))


def read(files: list[LogFile], start: int, end: int) -> list[int]:
    return [row for batch in ordered_batches("log", files, start, end, ["offset"]) for row in batch[0].to_pylist()]


@pytest.mark.parametrize(
    "files",
    [
        [[*range(10), *range(30, 40), *range(20, 30)], [*range(10, 20)]],
        [[*range(39, -1, -1)]],
        [[*range(0, 40, 2)], [*range(1, 40, 2)]],
        [[0, *range(2, 40)], [1]],
    ],
)
@pytest.mark.parametrize(("start", "end"), [(0, 40), (0, 30), (5, 25), (39, 40), (7, 7)])
@pytest.mark.parametrize("at_once", [3, 1000])
def test_rewritten_files_yield_each_offset_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[list[int]], start: int, end: int, at_once: int
) -> None:
    monkeypatch.setattr(reader, "SORTED_ROWS", at_once)
    made = [file(tmp_path, str(number), offsets) for number, offsets in enumerate(files)]
    assert read(made, start, end) == list(range(start, end))


@pytest.mark.parametrize(("offsets", "wrong"), [([0, 1, 3, 4], 2), ([0, 1, 2, 2, 3, 4], 2), ([0, 1, 2], 3)])
def test_a_missing_or_duplicate_offset_is_an_error(tmp_path: Path, offsets: list[int], wrong: int) -> None:
    with pytest.raises(StorageError, match=f"offset {wrong} is missing or duplicated"):
        read([file(tmp_path, "a", offsets)], 0, 5)


def test_row_groups_without_a_wanted_offset_are_not_read(tmp_path: Path) -> None:
    made = file(tmp_path, "a", [*range(40)])
    data = bytearray(Path(made.path).read_bytes())
    first = pq.ParquetFile(made.path).metadata.row_group(0).column(0)
    begin = first.dictionary_page_offset or first.data_page_offset
    data[begin : begin + first.total_compressed_size] = bytes(first.total_compressed_size)  # reading it would fail
    Path(made.path).write_bytes(data)
    assert read([made], 8, 12) == [8, 9, 10, 11]


def test_a_rewritten_part_is_sorted_and_the_rest_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_spans: list[tuple[int, int]] = []
    known = reader._sorted_batches
    monkeypatch.setattr(reader, "_sorted_batches", lambda *given: (sorted_spans.append(given[3]), known(*given))[1])
    parts = [[*range(10)], [*range(15, 20), *range(10, 15)], [*range(20, 40)]]
    made = [file(tmp_path, str(number), offsets) for number, offsets in enumerate(parts)]
    assert read(made, 0, 40) == list(range(40))
    assert sorted_spans == [(10, 20)]
