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
from rewindow.tables.delta import handle
from rewindow.tables.delta.commit import commit_actions, commit_files
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.open_table import open_table
from rewindow.tables.delta.table_rows import table_files
from tests.properties.effort import examples
from tests.refusals import refused

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
            handle.release(_commit_through(DeltaTable(path), path, number))
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
        assert _read_here(path, _open(path)) == _read_here(path, DeltaTable(path)), actions[: number + 1]
    assert _known(_open(path)) == _known(DeltaTable(path)), actions
    assert len({id(vars(table)["_raw"]) for table in held}) == len(held), "two users share a handle"


def test_what_nobody_wrote_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    _commit(path, 1, "mine")
    _open(path)
    monkeypatch.setattr(handle.Handle, "__init__", _never)
    monkeypatch.setattr(handle.Handle, "update_incremental", _never)
    assert _known(_open(path))[0] == 1


def test_news_are_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    _open(path)
    _commit_through(DeltaTable(path), path, 1)
    monkeypatch.setattr(handle.Handle, "__init__", _never)
    assert _known(_open(path))[0] == 1


def test_appends_are_written_and_read_without_delta_rs_until_a_checkpoint_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    table_files(path, _open(path))
    sent: list[int] = []
    send = DeltaTable.create_write_transaction
    monkeypatch.setattr(
        DeltaTable,
        "create_write_transaction",
        lambda table, *args, **kwargs: (sent.append(1), send(table, *args, **kwargs)),
    )
    with monkeypatch.context() as alone:
        alone.setattr(handle.Handle, "_catch_up", _never)
        for number in range(1, 9):
            _commit(path, number, "mine")
        assert len(table_files(path, _open(path))) == 8
        assert not sent
    _commit(path, 9, "mine")
    assert len(sent) == 1
    assert Path(f"{path}/_delta_log/{9:020}.checkpoint.parquet").exists()
    assert _known(_open(path)) == _known(DeltaTable(path))


def test_a_handle_that_others_have_overtaken_shows_its_own_version(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    _open(path)
    _commit(path, 1, "mine")
    first = _open(path)
    _commit_through(DeltaTable(path), path, 2)
    assert _known(first)[0] == 1
    assert len(_known(first)[2]) == 1
    with pytest.raises(Exception, match="oncurrent"):  # what was decided on it is refused
        commit_actions(first, [], "theirs", 1)
    assert _known(_open(path))[0] == 2


def test_a_change_of_the_table_is_read_with_delta_rs(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    _commit(path, 1, "mine")
    _open(path)
    DeltaTable(path).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    table = _open(path)
    assert table.metadata().configuration["delta.enableChangeDataFeed"] == "true"
    _commit(path, 2, "mine")
    assert _known(_open(path)) == _known(DeltaTable(path))


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


def test_a_handle_is_kept_while_the_commits_since_its_checkpoint_are_there(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    for number in (1, 2):
        _commit(path, number, "mine")
    DeltaTable(path).create_checkpoint()
    handle.cached.clear()
    raw = _open(path)._table
    for version in (0, 1):
        Path(f"{path}/_delta_log/{version:020}.json").unlink()
    _commit(path, 3, "mine")
    assert _open(path)._table is raw
    assert _known(_open(path)) == _known(DeltaTable(path))
    DeltaTable(path).create_checkpoint()
    Path(f"{path}/_delta_log/{2:020}.json").unlink()
    assert _open(path)._table is not raw
    assert _known(_open(path)) == _known(DeltaTable(path))


def test_an_empty_commit_is_refused_by_who_knew_those_before(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    _open(path)
    Path(f"{path}/_delta_log/{1:020}.json").touch()
    with refused("delta-log-commit-broken", fault="is empty"):
        open_table(path)


def test_a_handle_with_which_a_commit_failed_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA)
    first = _open(path)
    raw = first._table
    handle.release(first, is_good=False)
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


def _read_here(path: str, table: DeltaTable) -> tuple[object, ...]:
    """Return what a handle knows of appends without the library."""
    ids = [table.transaction_version(app_id) for app_id in ("mine", "theirs")]
    return table.version(), table.metadata().id, ids, table_files(path, table)


def _never(*_: object) -> Callable[..., None]:
    raise AssertionError("the whole log was read")
