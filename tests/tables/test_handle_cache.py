"""A cached handle shows the same table as a handle that reads the whole log, whatever happened in between."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from rewindow.contracts.staged_files import StagedFile
from rewindow.errors import StorageError
from rewindow.tables.delta import handle_cache
from rewindow.tables.delta.commit import commit_files, create_table, open_table
from tests.properties.effort import examples

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = pa.schema([("n", pa.int64())])
ACTIONS = ("commit", "commit elsewhere", "make anew", "keep a copy", "put back the copy", "hold", "let go", "clean out")


@given(st.lists(st.sampled_from(ACTIONS), max_size=30))
@examples(20)
def test_a_look_is_as_good_as_one_from_the_beginning(
    tmp_path_factory: pytest.TempPathFactory, actions: list[str]
) -> None:
    path = str(tmp_path_factory.mktemp("table") / "t")
    create_table(path, SCHEMA)
    held: list[DeltaTable] = []
    for number, action in enumerate(actions):
        if action == "commit":
            _commit(path, number, "mine")
        elif action == "commit elsewhere":
            handle_cache.release(_commit_through(DeltaTable(path), path, number))
        elif action == "make anew":
            shutil.rmtree(path)
            create_table(path, SCHEMA)
        elif action == "keep a copy":
            shutil.rmtree(f"{path}-copy", ignore_errors=True)
            shutil.copytree(path, f"{path}-copy")
        elif action == "put back the copy" and Path(f"{path}-copy").exists():
            shutil.rmtree(path)
            shutil.copytree(f"{path}-copy", path)
        elif action == "clean out" and DeltaTable(path).version() > 1:
            DeltaTable(path).create_checkpoint()
            for version in range(DeltaTable(path).version()):
                Path(f"{path}/_delta_log/{version:020}.json").unlink(missing_ok=True)
        elif action == "hold":
            held.append(_open(path))
        elif held:
            held.pop(0)
        assert _known(_open(path)) == _known(DeltaTable(path)), actions[: number + 1]
    assert len({id(table._table) for table in held}) == len(held), "two users share a handle"


def test_what_nobody_wrote_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    _commit(path, 1, "mine")
    _open(path)
    monkeypatch.setattr(handle_cache.Handle, "__init__", _never)
    monkeypatch.setattr(handle_cache.Handle, "update_incremental", _never)
    assert _known(_open(path))[0] == 1


def test_news_are_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    _open(path)
    _commit_through(DeltaTable(path), path, 1)
    monkeypatch.setattr(handle_cache.Handle, "__init__", _never)
    assert _known(_open(path))[0] == 1


def test_commits_that_were_cleaned_out_hide_none_after_them(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    _open(path)
    for number in (1, 2):
        _commit_through(DeltaTable(path), path, number)
    DeltaTable(path).create_checkpoint()
    for version in (0, 1):  # cleaning begins with the oldest
        Path(f"{path}/_delta_log/{version:020}.json").unlink()
    assert _known(_open(path))[0] == 2


def test_an_empty_commit_is_refused_by_who_knew_those_before(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    _open(path)
    Path(f"{path}/_delta_log/{1:020}.json").touch()
    with pytest.raises(StorageError, match="is empty"):
        open_table(path)


def test_a_handle_with_which_a_commit_failed_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    first = _open(path)
    raw = first._table
    handle_cache.release(first, is_good=False)
    assert _open(path)._table is not raw


def _commit(path: str, number: int, app_id: str) -> None:
    last = _open(path).transaction_version(app_id) or 0
    commit_files(path, [_file(path, number)], app_id=app_id, version=last + 1)


def _commit_through(table: DeltaTable, path: str, number: int) -> DeltaTable:
    last = table.transaction_version("theirs") or 0
    commit_files(path, [_file(path, number)], app_id="theirs", version=last + 1, table=table)
    return table


def _file(path: str, number: int) -> StagedFile:
    data = Path(path) / f"{number}.parquet"
    data.write_bytes(b"data")
    stats = {"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {}}
    return StagedFile("t", 0, data.name, 1, 4, {}, stats, "", "")


def _open(path: str) -> DeltaTable:
    table = open_table(path)
    assert table is not None
    return table


def _known(table: DeltaTable) -> tuple[object, ...]:
    files = sorted(pa.table(table.get_add_actions(flatten=True))["path"].to_pylist())
    ids = table.transaction_version("mine"), table.transaction_version("theirs")
    return table.version(), table.metadata().id, files, *ids


def _never(*_: object) -> Callable[..., None]:
    raise AssertionError("the whole log was read")
