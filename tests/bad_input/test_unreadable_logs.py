"""A commit of a Delta log was cut short or emptied, as by a crash of the machine: the message names a way out that works."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from rewindow.errors import AccessError, StorageError
from rewindow.tables.delta import commit
from rewindow.tables.delta.files import Folder
from tests.bad_input.files import HARMS, Harm
from tests.bad_input.scene import FRESH, Bench, copy_of, goes_on, hour, make_template

pytestmark = pytest.mark.usefixtures("in_process")

READERS = (("land", "activity"), ("run", "counts"), ("show", "counts"), ("verify", "counts"), ("republish", "counts"))
BROKEN = [pytest.param(HARMS[how], id=how) for how in ("that is cut short", "that is empty")]
TABLES = ("logs/activity/events", "alerts/totals", "state/counts/sums/*", "rewindow/metrics", "rewindow/quarantine")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = make_template(tmp_path_factory.mktemp("template") / "bench")
    bench.edit("conf/feeds/activity.yaml", "arrived_at: got}", "arrived_at: got, invalid_timestamp: skip}")
    bench.rows("bad", [{**row, "t": None} for row in hour(FRESH)[:2]])
    goes_on(bench)  # so that no command has anything to do
    return bench


def log_of(bench: Bench, table: str) -> Path:
    (folder,) = bench.warehouse.glob(f"{table}/_delta_log")
    return folder


def newest(bench: Bench, table: str) -> Path:
    return max(log_of(bench, table).glob("*.json"))


def told(bench: Bench) -> list[str]:
    """Return what commands say that fail because of the log."""
    answers = [bench.run(*words) for words in READERS]
    assert {answer.code for answer in answers} <= {0, 74}, answers
    return [answer.err for answer in answers if answer.code == 74]


@pytest.mark.parametrize("harm", BROKEN)
@pytest.mark.parametrize("table", TABLES)
def test_without_a_copy_the_log_is_removed_and_the_named_command_publishes_again(
    bench: Bench, template: Bench, table: str, harm: Harm
) -> None:
    harm([newest(bench, table)])
    said = told(bench)
    assert said, "no command reads this log"
    for text in said:
        assert "Without one, " in text, text
        assert "remove the folder _delta_log and nothing else, and call `rewindow" in text, text
    shutil.rmtree(log_of(bench, table))
    for words in map(shlex.split, re.findall(r"`rewindow (\w+[^`]*)`", said[0].partition("and call ")[2])):
        name = "activity" if words[0] == "land" else "counts"
        answer = bench.run(words[0], name)
        assert answer.code == 0, answer.err
    assert told(bench) == []
    assert (bench.result(), bench.quarantined()) == (template.result(), template.quarantined())
    assert bench.quarantined()


@pytest.mark.parametrize("harm", BROKEN)
@pytest.mark.parametrize(("table", "words"), [("runs", ("run", "counts")), ("landings", ("land", "activity"))])
def test_a_ledger_is_not_to_be_removed_and_what_it_lost_is_told(
    bench: Bench, table: str, words: tuple[str, str], harm: Harm
) -> None:
    last = newest(bench, f"rewindow/{table}")
    harm([last])
    answer = bench.run(*words)
    assert answer.code == 74
    assert "[delta-log-commit-broken]" in answer.err
    assert "remove its newest commit, the broken one" in answer.err
    assert "Keep the table, which is the ledger of all" in answer.err
    last.unlink()
    answer = bench.run(*words)
    assert answer.code == 76
    assert "an older copy of the ledger was restored" in answer.err


@pytest.mark.parametrize("table", ["runs", "landings"])
def test_of_a_ledger_whose_broken_commit_is_not_the_newest_nothing_is_to_be_removed(bench: Bench, table: str) -> None:
    """The newest commit can still be used."""
    older = sorted(log_of(bench, f"rewindow/{table}").glob("*.json"))[-2]
    HARMS["that is cut short"]([older])
    answer = bench.run("status")
    errors = [bench.run(*words).err for words in READERS]
    assert any("Restore its _delta_log from a copy" in text for text in (answer.out, *errors))
    assert not any("remove" in text for text in (answer.out, *errors))


def system_error(number: int) -> OSError:
    """Return an error as delta-rs raises it."""
    return OSError(f"Kernel error: Generic LocalFileSystem error: {os.strerror(number)} (os error {number})")


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.EACCES, 77), (errno.EPERM, 77), (errno.EMFILE, 74), (errno.EIO, 74), (errno.ESTALE, 74)],
)
@pytest.mark.parametrize("table", [*TABLES, "rewindow/runs", "rewindow/landings"])
def test_a_log_that_the_system_does_not_let_us_read_is_not_called_broken(
    bench: Bench, template: Bench, monkeypatch: pytest.MonkeyPatch, table: str, number: int, code: int
) -> None:
    really, root = commit.take, str(log_of(bench, table).parent)

    def take(path: str, **how: bool) -> object:
        if path == root:
            raise system_error(number)
        return really(path, **how)

    with monkeypatch.context() as failing:
        failing.setattr(commit, "take", take)
        answers = [bench.run(*words) for words in READERS]
    refused = [answer for answer in answers if answer.code]
    assert refused, "no command reads this log"
    assert {answer.code for answer in refused} == {code}
    assert not any("remove" in answer.err or "republish" in answer.err for answer in refused)
    assert all("un again" in answer.err for answer in refused)
    assert told(bench) == [], "following the advice"
    assert bench.result() == template.result()


def test_a_file_that_the_system_does_not_let_us_read_is_not_to_be_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(str(tmp_path))
    for number, kind in ((errno.EACCES, AccessError), (errno.EIO, StorageError), (errno.ENOENT, StorageError)):

        def failing(_self: Folder, _path: str, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(Folder, "_read", failing)
        with pytest.raises(kind) as refused:
            folder.read_bytes("a.parquet")
        assert ("Restore" in str(refused.value)) == (number == errno.ENOENT)


def test_a_first_landing_that_the_ledger_has_lost_is_not_deleted(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "first")
    shutil.rmtree(bench.warehouse)
    assert bench.run("land", "activity").code == 0
    files = {path.relative_to(bench.warehouse) for path in bench.warehouse.rglob("logs/**/*.parquet")}
    commits = sorted(log_of(bench, "rewindow/landings").glob("*.json"))
    commits[-1].unlink()
    answer = bench.run("land", "activity")
    assert answer.code == 76
    assert "[landing-ledger-behind-log]" in answer.err
    assert "has files of a landing that its ledger does not know" in answer.err
    assert "give the feed another name" in answer.err
    assert {path.relative_to(bench.warehouse) for path in bench.warehouse.rglob("logs/**/*.parquet")} >= files
