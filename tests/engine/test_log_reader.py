"""The partition-local reader on rewritten files: the same rows, or an error, never a gap."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.contracts.tasks import LogFile, LogSlice
from rewindow.engine.worker import log_reader as reader
from rewindow.engine.worker.checksums import open_verified
from rewindow.engine.worker.log_reader import LogReader, ordered_batches
from rewindow.streams.record import row_class
from rewindow.streams.serde.schema import Column, row_shape, scalar_shape
from tests.refusals import refused


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
    with refused("log-offset-missing", topic="log", offset=wrong):
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


def text_log(folder: Path, keys: list[str | None], texts: list[str | None]) -> LogFile:
    """Return a log of keys and values with a text and a number, in row groups of 1,000."""
    numbers = pa.array(range(len(keys)), pa.int64())
    columns = {"offset": numbers, "timestamp": numbers, "user": keys, "text": texts, "number": numbers}
    path = folder / "texts.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=1000)
    return LogFile(str(path), 0, len(keys) - 1)


def read_texts(made: LogFile, bounds: list[tuple[int, int]]) -> list[tuple[int, str | None, tuple[str | None, int]]]:
    value = row_shape([Column("text", "string"), Column("number", "long")])
    reader_ = LogReader("log", LogSlice((made,), tuple(bounds)), scalar_shape("user", "string"), value)
    epochs = [rows for _ in bounds for rows in reader_.epoch()]
    return [row for rows in epochs for row in zip(rows.offsets, rows.keys, rows.values, strict=True)]


def test_texts_that_repeat_are_read_as_one_object_in_all_epochs_of_a_batch(tmp_path: Path) -> None:
    keys = [f"user-{number % 7}" for number in range(2500)]
    texts = [None if number % 5 == 0 else f"text-{number % 3 + number // 1000}" for number in range(2500)]
    made = text_log(tmp_path, list(keys), texts)
    found = read_texts(made, [(0, 10), (10, 10), (10, 990), (990, 2500)])
    row = row_class(("text", "number"))
    assert found == [(number, keys[number], row(texts[number], number)) for number in range(2500)]
    first = {key: key for _, key, _ in found[:7]}
    assert all(key is first[key] for _, key, _ in found[:1000])


def test_only_columns_whose_dictionary_has_all_values_are_read_with_it(tmp_path: Path) -> None:
    made = text_log(tmp_path, ["a", "b"] * 600, [f"{number}" * 600 for number in range(1200)])
    file = open_verified(made.path, repeating=["user", "text"])
    assert [pa.types.is_dictionary(file.schema_arrow.field(name).type) for name in ("user", "text")] == [True, False]
    assert [value.text for _, _, value in read_texts(made, [(0, 1200)])] == [
        f"{number}" * 600 for number in range(1200)
    ]


def test_a_text_that_was_added_later_is_null_in_an_older_file_with_many_rows(tmp_path: Path) -> None:
    made = text_log(tmp_path, ["a", "b"] * 600, ["x"] * 1200)
    value = row_shape([Column("text", "string"), Column("added", "string"), Column("number", "long")])
    reader_ = LogReader("log", LogSlice((made,), ((0, 1200),)), scalar_shape("user", "string"), value)
    values = [value for rows in reader_.epoch() for value in rows.values]
    assert {(one.text, one.added) for one in values} == {("x", None)}
    assert [one.number for one in values] == list(range(1200))
