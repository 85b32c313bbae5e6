"""A handle on a table in a bucket shows what delta-rs reads there, and its commits land once."""

from __future__ import annotations

import gc
import random
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction

from rewindow.errors import StorageError
from rewindow.storage.locations import options_of, use
from rewindow.storage.objects import Objects
from rewindow.tables.delta import handle
from rewindow.tables.delta.commit import commit_actions, commit_files, removal
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.open_table import open_table
from rewindow.tables.delta.table_rows import table_files
from tests.object_store.server import BUCKET

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture
def table(settings: dict[str, str]) -> str:
    """Return the URI of a new table."""
    warehouse = f"s3://{BUCKET}/{uuid4().hex[:8]}"
    use(warehouse, settings)
    create_table(f"{warehouse}/t", SCHEMA)
    return f"{warehouse}/t"


def test_a_look_is_as_good_as_one_of_delta_rs(table: str) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    draws, files = random.Random(seed), ["f0"]
    _commit(table, 0)
    for number in range(1, 60):
        action = draws.choice(["commit", "commit", "commit", "elsewhere", "remove", "checkpoint", "clean", "forget"])
        if action == "commit":
            _commit(table, number)
            files.append(f"f{number}")
        elif action == "elsewhere":
            _commit_elsewhere(table, number)
            files.append(f"f{number}")
        elif action == "remove" and files:
            actions = [removal(files.pop(draws.randrange(len(files))), {}, data_change=True)]
            commit_actions(_open(table), actions, f"removed {number}", 1)
        elif action == "checkpoint":
            _directly(table).create_checkpoint()
        elif action == "clean":
            _clean(table)
        else:
            handle.cached.clear()
        seen, right = _open(table), _directly(table)
        assert seen.version() == right.version(), (seed, number, action)
        assert sorted(file.path for file in table_files(table, seen)) == sorted(files), (seed, number, action)
        for app_id in ("mine", "elsewhere"):
            assert seen.transaction_version(app_id) == right.transaction_version(app_id), (seed, number, action)


def test_a_handle_that_ends_in_a_cycle_does_not_return_to_the_cache_without_its_copy(table: str) -> None:
    _commit(table, 1)
    holder = SimpleNamespace(handle=_open(table))
    holder.me = holder  # as a failed commit's traceback refers to the frame that keeps it
    del holder
    gc.collect()
    assert _open(table).transaction_version("nobody") is None


def test_of_two_commits_of_one_version_both_land_once(table: str) -> None:
    first, second = _open(table), _open(table)
    commit_actions(first, [_file(1)], "first", 1)
    commit_actions(second, [_file(2)], "second", 1)
    seen = _directly(table)
    assert (seen.version(), seen.transaction_version("first"), seen.transaction_version("second")) == (2, 1, 1)
    assert sorted(file.path for file in table_files(table, _open(table))) == ["f1", "f2"]


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_put_without_an_answer_lands_once(table: str, monkeypatch: pytest.MonkeyPatch, *, is_lost: bool) -> None:
    put, sent = Objects.put, list[str]()

    def unanswered(here: Objects, path: str, data: bytes, **how: Any) -> None:
        if how and not sent:
            if not is_lost:
                put(here, path, data, **how)
            sent.append(path)
            message = "no answer"
            raise OSError(message)
        put(here, path, data, **how)

    monkeypatch.setattr(Objects, "put", unanswered)
    assert commit_files(table, [], app_id="mine", version=1)
    assert sent
    assert (_directly(table).version(), _directly(table).transaction_version("mine")) == (1, 1)


def test_a_gap_in_the_log_is_refused(table: str) -> None:
    for number in range(1, 5):  # the second has a checkpoint
        _commit_elsewhere(table, number)
    Objects(table).delete(f"_delta_log/{3:020}.json")
    handle.cached.clear()
    with pytest.raises(StorageError, match=f"{3:020}.json is gone"):
        open_table(table)


def test_an_old_hint_does_not_hide_newer_commits(table: str) -> None:
    for number in range(1, 3):
        _commit_elsewhere(table, number)
    _directly(table).create_checkpoint()
    objects = Objects(table)
    old = objects.get("_delta_log/_last_checkpoint")
    assert old is not None
    for number in range(3, 6):
        _commit_elsewhere(table, number)
    _directly(table).create_checkpoint()
    _clean(table)
    objects.put("_delta_log/_last_checkpoint", old.to_pybytes())
    handle.cached.clear()
    assert _open(table).version() == _directly(table).version() == 5


def _commit(path: str, number: int) -> None:
    """Commit a file and look whether it landed, as `commit_files` does: that look ends with the commit, later ones do not."""
    table = _open(path)
    version = (table.transaction_version("mine") or 0) + 1
    commit_actions(table, [_file(number)], "mine", version)
    assert _open(path).transaction_version("mine") == version


def _commit_elsewhere(path: str, number: int) -> None:
    table = _directly(path)
    table.create_write_transaction(
        [_file(number)],
        mode="append",
        schema=table.schema(),
        partition_by=[],
        commit_properties=CommitProperties(app_transactions=[Transaction("elsewhere", number)]),
    )


def _clean(path: str) -> None:
    """Delete the commits and checkpoints before the last checkpoint, as Delta does when they have expired."""
    objects = Objects(path)
    names = list(objects.names_after("_delta_log", ""))
    last = max((name for name in names if ".checkpoint." in name), default="")
    for name in names:
        if name < last[:20]:
            objects.delete(f"_delta_log/{name}")


def _file(number: int) -> AddAction:
    return AddAction(f"f{number}", 1, {}, 0, True, '{"numRecords":1}')


def _directly(path: str) -> DeltaTable:
    return DeltaTable(path, storage_options=options_of(path))


def _open(path: str) -> DeltaTable:
    found = open_table(path)
    assert found is not None
    return found
