from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from rewindow.control.plan.job_state import LedgerRow
from rewindow.errors import ConfigError, InvariantError
from rewindow.tables.delta import ledger as ledger_module
from rewindow.tables.delta.commit import commit_actions
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.table_rows import read_rows
from tests.conftest import ROOT
from tests.refusals import containing, refused
from tests.tables.scene import spoil


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "rewindow" / "runs")


def row(seq: int, **body: object) -> LedgerRow:
    return LedgerRow(seq, "NOTE", body, 17)


def said(ledger: Ledger) -> list[LedgerRow]:
    """Return the rows that a ledger has, as they were appended: without the tokens of their appends."""
    return [replace(one, token="") for one in ledger.read()]


def test_rows_come_back_in_order_as_they_were(path):
    ledger = Ledger(path, "job")
    assert ledger.read() == []
    assert ledger.append([row(1, text="ä", deep={"b": [1, 2.5, None]})])
    assert ledger.append([row(2), row(3)])
    assert said(Ledger(path, "job")) == [row(1, text="ä", deep={"b": [1, 2.5, None]}), row(2), row(3)]


def test_names_do_not_see_each_other(path):
    one, other = Ledger(path, "one"), Ledger(path, "other")
    assert one.append([row(1, of="one")])
    assert other.append([row(1, of="other")])
    assert one.append([row(2)])
    assert [len(ledger.read()) for ledger in (one, other)] == [2, 1]


def test_all_rows_of_an_append_have_its_token_and_a_new_ledger_has_another(path):
    ledger = Ledger(path, "job")
    ledger.append([row(1), row(2)])
    ledger.append([row(3)])
    first, second, third = (one.token for one in ledger.read())
    assert first == second != third
    ledger.compact()
    assert [one.token for one in Ledger(path, "job").read()] == [first, second, third]
    shutil.rmtree(path)
    Ledger(path, "job").append([row(1), row(2)])
    assert Ledger(path, "job").read()[0].token not in {first, third}


def test_several_rows_are_one_commit(path):
    ledger = Ledger(path, "job")
    ledger.append([row(1)])
    before = DeltaTable(path).version()
    ledger.append([row(2), row(3), row(4)])
    assert DeltaTable(path).version() == before + 1
    assert DeltaTable(path).transaction_version("rewindow.ledger/job") == 4


def test_a_number_that_is_taken_is_anothers(path):
    ledger = Ledger(path, "job")
    assert ledger.append([row(1, who="a")])
    assert not ledger.append([row(1, who="b")])
    assert not ledger.append([row(1, who="a")]), "an equal row of another writer is not ours"
    assert said(ledger) == [row(1, who="a")]


def test_a_stale_handle_loses(path):
    slow, fast = Ledger(path, "job"), Ledger(path, "job")
    assert slow.append([row(1)])
    slow.read()
    assert fast.append([row(2, who="fast")])
    assert not slow.append([row(2, who="slow")])
    assert said(slow)[-1] == row(2, who="fast")
    assert slow.append([row(3, who="slow")])


@pytest.mark.parametrize("numbers", [[2], [1, 3], [2, 1], [0]])
def test_numbers_that_leave_a_gap_are_refused(path, numbers):
    with pytest.raises(InvariantError):
        Ledger(path, "job").append([row(number) for number in numbers])
    assert Ledger(path, "job").read() == []


@pytest.mark.parametrize("name", ["", "a/b", "../a", "a b", ".a", "a..b", "a'b", "ä", "a\n"])
def test_a_name_that_is_no_name_is_refused(path, name):
    with pytest.raises(ConfigError):
        Ledger(path, name)


def test_an_answer_that_is_lost_after_landing_is_no_failure(path, monkeypatch):
    ledger = Ledger(path, "job")
    ledger.append([row(1)])
    calls = []

    def lands_and_raises(*args):
        commit_actions(*args)
        calls.append(args)
        raise CommitFailedError("the answer was lost")

    monkeypatch.setattr(ledger_module, "commit_actions", lands_and_raises)
    assert ledger.append([row(2, who="me")])
    assert len(calls) == 1
    assert said(Ledger(path, "job")) == [row(1), row(2, who="me")]


def test_an_answer_that_lies_is_found_out(path, monkeypatch):
    ledger = Ledger(path, "job")
    ledger.append([row(1)])
    lies = iter([True, True, False])

    def says_it_did(*args):
        if not next(lies):
            commit_actions(*args)

    monkeypatch.setattr(ledger_module, "commit_actions", says_it_did)
    assert ledger.append([row(2)])
    assert len(Ledger(path, "job").read()) == 2


def test_a_failure_while_another_lands_is_another_s_row(path, monkeypatch):
    ledger = Ledger(path, "job")
    ledger.append([row(1)])
    rival = Ledger(path, "job")

    def another_lands(*_args):
        monkeypatch.undo()
        assert rival.append([row(2, who="rival")])
        raise OSError("no answer")

    monkeypatch.setattr(ledger_module, "commit_actions", another_lands)
    assert not ledger.append([row(2, who="me")])


def test_a_table_that_takes_nothing_is_an_error_at_last(path, monkeypatch):
    ledger = Ledger(path, "job")
    ledger.append([row(1)])

    def refuses(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger_module, "commit_actions", refuses)
    with refused("not-committed", why=containing("No space left")):
        ledger.append([row(2)])
    assert said(ledger) == [row(1)]


def test_many_files_are_merged_and_nothing_changes(path, monkeypatch):
    monkeypatch.setattr(ledger_module, "_FILES_MAX", 3)
    ledger, other = Ledger(path, "job"), Ledger(path, "other")
    other.append([row(1)])
    for number in range(1, 12):
        assert ledger.append([row(number, n=number)])
    assert said(Ledger(path, "job")) == [row(number, n=number) for number in range(1, 12)]
    assert len(DeltaTable(path).file_uris()) <= 5
    assert other.append([row(2)])


def test_a_row_is_written_again_a_few_times_and_not_with_each_merge(path):
    ledger = Ledger(path, "job")
    for number in range(1, 301):
        assert ledger.append([row(number)])
    written = sum(pq.read_metadata(file).num_rows for file in Path(path).rglob("name=job/*.parquet"))
    assert 300 < written < 5 * 300
    assert len(DeltaTable(path).file_uris()) <= 17
    assert len(Ledger(path, "job").read()) == 300


def test_merging_loses_to_whoever_merged_before(path, monkeypatch):
    ledger = Ledger(path, "job")
    for number in range(1, 6):
        ledger.append([row(number)])
    one = Ledger(path, "job")._look()
    ledger.append([row(6)])
    two = Ledger(path, "job")._look()
    assert one is not None
    assert two is not None
    ledger._merge(one, one.small)
    ledger._merge(two, two.small)
    assert len(Ledger(path, "job").read()) == 6
    assert read_rows(path).num_rows == 6
    assert len(DeltaTable(path).file_uris()) == 2


def test_a_ledger_that_was_made_anew_is_read_anew(path):
    ledger = Ledger(path, "job")
    ledger.append([row(1, which="old")])
    shutil.rmtree(path)
    Ledger(path, "job").append([row(1, which="new")])
    assert said(ledger) == [row(1, which="new")]


def test_a_row_that_was_lost_stops_everything(path):
    ledger = Ledger(path, "job")
    for number in range(1, 4):
        ledger.append([row(number)])
    table = DeltaTable(path)
    (file,) = [uri for uri in table.file_uris() if Ledger(path, "job")._files.rows_of(relative(path, uri))[0][0] == 2]
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    DeltaTable(path).delete(f"seq = 2 and name = 'job' and '{file}' <> ''")
    with refused("ledger-damaged", numbers="1, 3", last=3):
        Ledger(path, "job").read()


def test_a_ledger_that_was_set_back_stops_everything(path):
    ledger = Ledger(path, "job")
    for number in range(1, 4):
        ledger.append([row(number)])
    before = DeltaTable(path).version() - 1
    DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "false"})
    DeltaTable(path).restore(before)
    with refused("ledger-damaged", last=3):
        Ledger(path, "job").append([row(3)])


def test_a_flipped_bit_is_never_another_row(path):
    ledger = Ledger(path, "job")
    ledger.append([row(1, text="x" * 300)])
    (uri,) = DeltaTable(path).file_uris()
    file = Path(uri.removeprefix("file://"))
    for at in range(0, file.stat().st_size, 50):
        spoil(file, at)
        with refused("ledger-altered"):
            Ledger(path, "job").read()
        spoil(file, at)
    assert said(Ledger(path, "job")) == [row(1, text="x" * 300)]


def relative(path: str, uri: str) -> str:
    return uri.rpartition(path.lstrip("/") + "/")[2]


DUEL = """
import sys
from rewindow.control.plan.job_state import LedgerRow
from rewindow.tables.delta.ledger import Ledger
path, who = sys.argv[1:]
ledger = Ledger(path, "job")
print("ready", flush=True)
sys.stdin.readline()
won = lost = 0
while won < 100:
    rows = ledger.read()
    if ledger.append([LedgerRow(len(rows) + 1, "NOTE", {"who": who, "n": won})]):
        won += 1
    else:
        lost += 1
print(lost)
"""


@pytest.mark.slow
def test_two_processes_lose_nothing_and_double_nothing(path):
    Ledger(path, "job").append([row(1)])
    duellists = [
        subprocess.Popen(
            [sys.executable, "-c", DUEL, path, who],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT / "lib",
        )
        for who in "ab"
    ]
    for duellist in duellists:
        assert duellist.stdout.readline() == "ready\n"
    for duellist in duellists:
        duellist.stdin.write("go\n")
        duellist.stdin.flush()
    lost = [int(duellist.communicate()[0]) for duellist in duellists]
    assert [duellist.returncode for duellist in duellists] == [0, 0]

    rows = Ledger(path, "job").read()[1:]

    assert Counter((row.body["who"], row.body["n"]) for row in rows) == Counter(
        (w, n) for w in "ab" for n in range(100)
    )
    for who in "ab":
        assert [row.body["n"] for row in rows if row.body["who"] == who] == list(range(100))
    assert sum(lost) > 0, "the processes never competed, so this run proves nothing"
