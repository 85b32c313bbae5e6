"""What a ledger's rows give is stored beside it: it saves time, and decides nothing."""

from __future__ import annotations

import json
import shutil
import weakref
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from rewindow.control.plan.job_fold import fold
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.errors import StorageError
from rewindow.tables.delta import ledger as ledger_module
from rewindow.tables.delta.files import Folder, digest_of
from rewindow.tables.delta.gc import JobGc
from rewindow.tables.delta.ledger import FOLDS, Ledger, LedgerFiles, RowValues, fold_path, read_fold, write_fold
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import RUNS
from tests.refusals import containing, refused
from tests.tables.scene import JOB, finish, one_by_one, replay, spoil


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """Merge files of the ledger after three commits, and no more once they have three rows."""
    monkeypatch.setattr(ledger_module, "SMALL_ROWS", 3)
    monkeypatch.setattr(ledger_module, "_FILES_MAX", 2)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_module, "SMALL_ROWS", 3)
        patch.setattr(ledger_module, "_FILES_MAX", 2)
        return one_by_one(tmp_path_factory.mktemp("made"), runs=6, landings=8)


@pytest.fixture
def warehouse(made: str, tmp_path: Path) -> str:
    return shutil.copytree(made, str(tmp_path / "w"))


def folder(warehouse: str) -> Folder:
    return Folder(table_path(warehouse, RUNS))


def fold_file(warehouse: str) -> Path:
    return Path(warehouse) / RUNS / fold_path(JOB)


def all_rows(warehouse: str) -> list[LedgerRow]:
    return list(DeltaTables(warehouse).ledger_rows(JOB))


def hashes(warehouse: str) -> dict[str, str]:
    return DeltaTables(warehouse).hashes(JOB, "main")


@pytest.fixture
def read(monkeypatch) -> Counter[int]:
    """Return the numbers of the ledger rows that are read from now on."""
    numbers = Counter[int]()
    load = LedgerFiles.load

    def loading(self: LedgerFiles, row: RowValues) -> LedgerRow:
        if self._folder.root.endswith(RUNS):
            numbers[row[0]] += 1
        return load(self, row)

    monkeypatch.setattr(LedgerFiles, "load", loading)
    return numbers


def test_a_new_process_does_not_read_the_rows_of_earlier_runs(warehouse, read):
    stored = read_fold(folder(warehouse), JOB)
    assert stored is not None
    assert stored.rows >= 6
    replay(warehouse, "next", through_landing=7)
    assert read
    assert min(read) > stored.rows


def test_it_is_written_again_as_the_ledger_grows(warehouse):
    before = read_fold(folder(warehouse), JOB)
    finish(warehouse)
    after = read_fold(folder(warehouse), JOB)
    assert before is not None
    assert after is not None
    assert after.rows > before.rows
    assert sorted(path.name for path in (Path(warehouse) / RUNS / FOLDS).iterdir()) == [JOB]
    assert DeltaTables(warehouse).state(JOB) == fold(all_rows(warehouse))


def test_all_rows_are_there_for_whoever_asks(warehouse, read):
    rows = DeltaTables(warehouse).ledger_rows(JOB)
    assert len(rows) == 12
    assert 1 not in read
    assert [row.seq for row in rows] == list(range(1, 13))
    assert rows[0].seq == 1
    assert [row.seq for row in rows[2:5]] == [3, 4, 5]
    assert set(read.values()) == {1}


def altered(path: Path) -> None:
    spoil(path, at=len(path.read_bytes()) // 2)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def of_another_version(path: Path) -> None:
    rewritten(path, lambda about: about | {"version": [2, 0]})


def of_other_files(path: Path) -> None:
    rewritten(path, lambda about: about | {"files": [f"name={JOB}/{'0' * 32}.parquet"]})


def of_another_job(path: Path) -> None:
    rewritten(path, lambda about: about | {"name": "other"})


def rewritten(path: Path, change) -> None:
    """Change what a stored fold says of itself; its digest is right."""
    head, _, packed = path.read_bytes().partition(b"\n")
    text = pa.decompress(packed, int(head.split()[1]), codec="zstd", asbytes=True).decode()
    about, _, rest = text.partition("\n")
    data = f"{json.dumps(change(json.loads(about)))}\n{rest}".encode()
    again = pa.compress(data, codec="zstd", asbytes=True)
    path.write_bytes(f"{digest_of(again)} {len(data)}\n".encode() + again)


HARM = [Path.unlink, altered, cut, emptied, of_another_version, of_other_files, of_another_job]


@pytest.mark.parametrize("harm", HARM, ids=lambda one: one.__name__)
def test_one_that_does_not_fit_only_costs_time(warehouse, made, tmp_path, harm, read):
    harm(fold_file(warehouse))
    replay(warehouse, "next", through_landing=7)
    assert read[1]
    assert read_fold(folder(warehouse), JOB) is not None, "it was written anew"
    finish(warehouse)
    other = shutil.copytree(made, str(tmp_path / "untouched"))
    finish(other)
    assert hashes(warehouse) == hashes(other)


def test_an_older_one_is_used_as_far_as_it_goes(warehouse, read):
    older = fold_file(warehouse).read_bytes()
    finish(warehouse)
    fold_file(warehouse).write_bytes(older)
    before = read_fold(folder(warehouse), JOB)
    read.clear()
    state = DeltaTables(warehouse).state(JOB)
    assert before is not None
    assert min(read) == before.rows + 1
    assert state == fold(all_rows(warehouse))


def test_one_of_a_ledger_that_was_restored_from_an_older_copy_is_not_used(warehouse, made, tmp_path):
    """The rows after the copy are others than those that the stored fold covers."""
    older = shutil.copytree(made, str(tmp_path / "older"))
    finish(warehouse)
    ahead = fold_file(warehouse).read_bytes()
    fold_file(older).write_bytes(ahead)
    assert len(DeltaTables(older).ledger_rows(JOB)) == 12
    finish(older)
    fold_file(older).write_bytes(ahead)
    assert DeltaTables(older).state(JOB) == fold(all_rows(older))


def test_a_wrong_one_is_found_by_gc(warehouse):
    stored = read_fold(folder(warehouse), JOB)
    assert stored is not None
    lines = [stored.lines[0].replace('"standing": "open"', '"standing": "dropped"'), *stored.lines[1:]]
    write_fold(folder(warehouse), JOB, ledger_module.StoredFold(stored.rows, stored.token, stored.covers, lines))
    gc = JobGc(DeltaTables(warehouse), JOB, lambda _attempt: False)
    with refused("ledger-fold-wrong", removal=containing("rewindow/runs/_folds")):
        list(gc.garbage(0))
    shutil.rmtree(Path(warehouse) / RUNS / FOLDS)
    list(JobGc(DeltaTables(warehouse), JOB, lambda _attempt: False).garbage(0))


def test_gc_compares_one_with_all_rows_once(warehouse, read):
    for _ in range(2):
        read.clear()
        list(JobGc(DeltaTables(warehouse), JOB, lambda _attempt: False).garbage(0))
    stored = read_fold(folder(warehouse), JOB)
    assert stored is not None
    assert min(read) == stored.rows + 1, "the second call reads the rows after it"


@pytest.mark.parametrize("harm", [altered, Path.unlink], ids=["altered", "deleted"])
def test_harm_to_the_files_that_it_covers_is_found_as_without_it(warehouse, harm):
    stored = read_fold(folder(warehouse), JOB)
    assert stored is not None
    harm(Path(warehouse) / RUNS / min(stored.covers))
    with pytest.raises(StorageError):
        DeltaTables(warehouse).state(JOB)


class Killed(BaseException):
    """Simulates a kill: no code after it runs."""


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_a_process_that_dies_while_it_writes_it_does_no_harm(made, tmp_path, monkeypatch, share):
    warehouse = shutil.copytree(made, str(tmp_path / "w"))
    write, deaths = Folder.write_bytes, Counter[str]()

    def dying(self: Folder, path: str, data: pa.Buffer) -> None:
        write(self, path, data.slice(0, int(len(data) * share)))
        deaths[path] += 1
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "write_bytes", dying)
        for number in range(4):
            try:
                replay(warehouse, f"dies-{number}")
            except Killed:
                continue
    assert deaths
    finish(warehouse)
    other = shutil.copytree(made, str(tmp_path / "untouched"))
    finish(other)
    assert hashes(warehouse) == hashes(other)
    assert DeltaTables(warehouse).state(JOB) == fold(all_rows(warehouse))


def test_a_disk_on_which_it_cannot_be_written_stops_nothing(warehouse, monkeypatch):
    def full(self: Folder, path: str, data: pa.Buffer) -> None:
        message = "full"
        raise StorageError("made-up", "{text}", text=message)

    before = fold_file(warehouse).read_bytes()
    monkeypatch.setattr(Folder, "write_bytes", full)
    finish(warehouse)
    assert fold_file(warehouse).read_bytes() == before
    assert len(DeltaTables(warehouse).state(JOB).committed) == 7


def test_another_process_may_append_while_one_has_read_a_stored_fold(warehouse):
    one, other = DeltaTables(warehouse), DeltaTables(warehouse)
    assert len(one.state(JOB).committed) == 6
    finish(warehouse)
    assert one.state(JOB) == other.state(JOB) == DeltaTables(warehouse).state(JOB)
    one.ledger(JOB).compact()
    assert one.state(JOB) == other.state(JOB) == fold(all_rows(warehouse))
    assert isinstance(one.state(JOB), JobState)


def test_a_ledger_is_freed_with_its_last_reference(warehouse):
    """A handle that waits for the garbage collector would return to the cache without the copy of the log that it reads."""
    ledger = Ledger(table_path(warehouse, RUNS), JOB)
    rows = ledger.read()
    freed = weakref.ref(ledger)
    del ledger
    assert freed() is None
    assert len(list(rows)) == 12
