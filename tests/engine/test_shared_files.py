"""Files that the tasks of a process share: what goes into them, what does not, and how a task finds its rows again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.contracts.staged_files import SHARED, StagedFile
from rewindow.engine.worker import changelog_reader
from rewindow.engine.worker.changelog_reader import changelog_batches
from rewindow.engine.worker.digest import RowsDigest
from rewindow.engine.worker.staging import GROUP_ROWS, SHARED_ROWS, SharedFiles, StagingTarget, sharing
from rewindow.streams.serde.schema import Column
from tests.refusals import containing, refused

COLUMNS = (Column("key", "string"), Column("n", "long"), Column("_run", "long"))


def stage(root: Path, rows: dict[int, int], shared: SharedFiles | None = None) -> list[StagedFile]:
    """Stage so many rows of each partition, each by a task of its own."""
    staged: list[StagedFile] = []
    for partition, count in rows.items():
        target = StagingTarget("changelog/counts", str(root), attempt="a", partition=partition)
        buffer = target.buffer(COLUMNS, ["_run"], partition)
        for number in range(count):
            buffer.append((f"{partition}-{number}", number, 7))
            buffer.flush_if_full()
        staged += buffer.close()
        if shared is not None:
            assert shared.end_task() == (count if shared.has(str(root)) and count <= SHARED_ROWS else 0)
    return staged + (shared.close() if shared is not None else [])


def read(root: Path, files: list[StagedFile], partition: int) -> list[str]:
    paths = [f"{root}/{file.path}" for file in files]
    return [key for batch in changelog_batches(paths, partition, ["key"]) for key in batch.column("key").to_pylist()]


def test_small_tasks_share_a_file_and_each_finds_its_rows(tmp_path: Path) -> None:
    with sharing(lambda _root: True) as shared:
        (file,) = stage(tmp_path, {0: 3, 1: 0, 2: 2}, shared)
    assert (file.partition, file.partition_values, file.rows) == (SHARED, {}, 5)
    assert file.stats["minValues"] == {"_run": 7, "_partition": 0}
    assert file.stats["maxValues"] == {"_run": 7, "_partition": 2}
    for partition, rows in ((0, 3), (1, 0), (2, 2)):
        assert read(tmp_path, [file], partition) == [f"{partition}-{number}" for number in range(rows)]


def test_the_digest_of_rows_does_not_depend_on_who_shares_what(tmp_path: Path) -> None:
    with sharing(lambda _root: True) as shared:
        (file,) = stage(tmp_path / "shared", {0: 3, 1: 2}, shared)
    own = stage(tmp_path / "own", {0: 3, 1: 2})
    assert [(one.partition, one.partition_values) for one in own] == [
        (0, {"_partition": "0"}),
        (1, {"_partition": "1"}),
    ]
    whole = RowsDigest()
    for one in own:
        rows = pq.read_table(tmp_path / "own" / one.path)
        assert set(rows["_partition"].to_pylist()) == {one.partition}
        for batch in rows.drop_columns(["_partition"]).to_batches():
            whole.update(batch)
    assert file.rows_digest == whole.hexdigest()


def test_a_task_with_many_rows_has_a_file_of_its_own(tmp_path: Path) -> None:
    with sharing(lambda _root: True) as shared:
        files = stage(tmp_path, {0: 2, 1: SHARED_ROWS + 1, 2: 1}, shared)
    assert [(one.partition, one.rows) for one in files] == [(1, SHARED_ROWS + 1), (SHARED, 3)]


def test_a_table_that_is_partitioned_gets_a_file_for_each_task(tmp_path: Path) -> None:
    with sharing(lambda _root: False) as shared:
        files = stage(tmp_path, {0: 2, 1: 1}, shared)
    assert [(one.partition, one.rows) for one in files] == [(0, 2), (1, 1)]


def test_a_task_that_starts_again_leaves_nothing_in_shared_files(tmp_path: Path) -> None:
    target = StagingTarget("output/out", str(tmp_path), attempt="a", partition=0)
    with sharing(lambda _root: True) as shared:
        for attempt in ("first", "second"):
            shared.forget()
            buffer = target.buffer(COLUMNS, ["_run"])
            buffer.append((attempt, 1, 7))
            assert buffer.close() == []
        assert shared.end_task() == 1
        (file,) = shared.close()
    assert pq.read_table(tmp_path / file.path)["key"].to_pylist() == ["second"]


def failing(root: Path) -> None:
    """Fill a row group of a shared file, and fail."""
    with sharing(lambda _root: True) as shared:
        buffer = StagingTarget("output/out", str(root), attempt="a", partition=0).buffer(COLUMNS, ["_run"])
        for number in range(GROUP_ROWS):
            buffer.append((str(number), number, 7))
        buffer.close()
        shared.end_task()
        assert len(list(root.iterdir())) == 1
        raise ZeroDivisionError


def test_an_error_deletes_shared_files(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        failing(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_row_groups_end_with_tasks_so_a_task_reads_its_part_of_a_large_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sharing(lambda _root: True) as shared:
        (file,) = stage(tmp_path, {0: GROUP_ROWS - 1, 1: 5, 2: GROUP_ROWS, 3: 1}, shared)
    parquet = pq.ParquetFile(tmp_path / file.path)
    groups = [parquet.metadata.row_group(number).num_rows for number in range(parquet.num_row_groups)]
    assert groups == [GROUP_ROWS + 4, GROUP_ROWS, 1]
    monkeypatch.setattr(changelog_reader, "_SMALL_ROWS", 10)
    assert read(tmp_path, [file], 1) == [f"1-{number}" for number in range(5)]
    assert len(read(tmp_path, [file], 2)) == GROUP_ROWS


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    with sharing(lambda _root: True) as shared:
        (file,) = stage(tmp_path, {0: 3, 1: 2}, shared)
    assert len(read(tmp_path, [file], 0)) == 3
    path = tmp_path / file.path
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with refused("checkpoint-file-unreadable", reason=containing("checksum")):
        read(tmp_path, [file], 1)
    path.unlink()
    with refused("checkpoint-file-unreadable"):
        read(tmp_path, [file], 1)


def test_files_of_one_partition_without_the_column_are_read_as_a_whole(tmp_path: Path) -> None:
    """An earlier version wrote them, below the directory of their partition."""
    pq.write_table(pa.table({"key": ["a", "b"]}), tmp_path / "old.parquet")
    batches = list(changelog_batches([str(tmp_path / "old.parquet")], 3, ["key"]))
    assert [batch.column("key").to_pylist() for batch in batches] == [["a", "b"]]
