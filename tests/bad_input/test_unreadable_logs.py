"""A commit of a Delta log was cut short or emptied, as by a crash of the machine: the message names a way out that works."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rewindow.app.failures import Failure
from rewindow.errors import AccessError, StorageError
from rewindow.tables.delta import open_table
from rewindow.tables.delta.files import Folder
from tests.bad_input.files import HARMS
from tests.bad_input.scene import FRESH, Bench, copy_of, goes_on, hour
from tests.refusals import containing

pytestmark = pytest.mark.usefixtures("in_process")

READERS = ("land activity", "run counts", "show counts", "verify counts", "republish counts")
CUT = "that is cut short"
TABLES = ("logs/activity/events", "alerts/totals", "state/counts/sums/*", "rewindow/metrics", "rewindow/quarantine")


@pytest.fixture(scope="module")
def template(two_hours: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = copy_of(two_hours, tmp_path_factory.mktemp("template") / "bench")
    bench.edit("conf/feeds/activity.yaml", "arrived_at: got}", "arrived_at: got, invalid_timestamp: skip}")
    bench.rows("bad", [{**row, "t": None} for row in hour(FRESH)[:2]])
    goes_on(bench)  # so that no command has anything to do
    return bench


def log_of(bench: Bench, table: str) -> Path:
    (folder,) = bench.warehouse.glob(f"{table}/_delta_log")
    return folder


def newest(bench: Bench, table: str) -> Path:
    return max(log_of(bench, table).glob("*.json"))


def failures(bench: Bench) -> list[Failure]:
    """Return why commands fail."""
    return [answer.failure for line in READERS if (answer := bench.run(*line.split())).failure]


@pytest.mark.parametrize(("table", "harm"), [*((table, CUT) for table in TABLES), (TABLES[0], "that is empty")])
def test_without_a_copy_the_log_is_removed_and_the_named_command_publishes_again(
    bench: Bench, template: Bench, table: str, harm: str
) -> None:
    HARMS[harm]([newest(bench, table)])
    told = failures(bench)
    assert {failure.code for failure in told} == {"delta-log-commit-broken"}
    assert all("_delta_log" in str(failure.facts["fix"]) for failure in told)
    shutil.rmtree(log_of(bench, table))
    for command in re.findall(r"`rewindow (\w+)[^`]*`", told[0].message.partition("and call ")[2]):
        bench.done(f"{command} {'activity' if command == 'land' else 'counts'}")
    assert failures(bench) == []
    assert (bench.result(), bench.quarantined()) == (template.result(), template.quarantined())
    assert bench.quarantined()


@pytest.mark.parametrize(
    ("table", "line", "code"),
    [
        ("runs", "run counts", "job-ledger-behind-tables"),
        ("landings", "land activity", "landing-ledger-behind-log"),
    ],
)
def test_a_ledger_is_not_to_be_removed_and_what_it_lost_is_told(bench: Bench, table: str, line: str, code: str) -> None:
    last = newest(bench, f"rewindow/{table}")
    HARMS[CUT]([last])
    bench.refuses(line, "delta-log-commit-broken", fix=containing("remove its newest commit, the broken one"))
    last.unlink()
    bench.refuses(line, code)


@pytest.mark.parametrize("table", ["runs", "landings"])
def test_of_a_ledger_whose_broken_commit_is_not_the_newest_nothing_is_to_be_removed(bench: Bench, table: str) -> None:
    """The newest commit can still be used."""
    older = sorted(log_of(bench, f"rewindow/{table}").glob("*.json"))[-2]
    HARMS[CUT]([older])
    told = [*(failure.message for failure in failures(bench)), bench.run("status").out]
    assert any("from a copy" in text for text in told)
    assert not any("remove" in text for text in told)


HINT = "_last_checkpoint"
BROKEN_CHECKPOINTS: dict[str, Callable[[Path], object]] = {
    "is gone": Path.unlink,
    "is empty": lambda file: file.write_bytes(b""),
    "is cut short": lambda file: file.write_bytes(file.read_bytes()[:-9]),
    "is not the one that the hint names": lambda file: (file.parent / HINT).write_text('{"version": 7777, "size": 1}'),
}


def with_checkpoint(bench: Bench, table: str) -> Path:
    """Write a checkpoint of a table's newest version, and return its file."""
    DeltaTable(log_of(bench, table).parent).create_checkpoint()
    (checkpoint,) = log_of(bench, table).glob("*.checkpoint.parquet")
    return checkpoint


@pytest.mark.parametrize("table", ["rewindow/runs", "rewindow/landings", *TABLES[:3]])
@pytest.mark.parametrize("harm", BROKEN_CHECKPOINTS)
def test_a_checkpoint_that_cannot_be_read_is_removed_if_no_commit_is_broken(
    bench: Bench, template: Bench, table: str, harm: str
) -> None:
    BROKEN_CHECKPOINTS[harm](with_checkpoint(bench, table))
    told = failures(bench)
    assert {failure.code for failure in told} == {"delta-log-checkpoint-broken"}
    for name in str(told[0].facts["files"]).split(" and "):
        (log_of(bench, table) / name).unlink()
    assert failures(bench) == []
    assert bench.result() == template.result()


@pytest.mark.parametrize("hint", ["null", "[]", "5", '{"version": null}', "cut {"])
def test_a_hint_to_a_checkpoint_that_cannot_be_read_is_ignored(bench: Bench, hint: str) -> None:
    for log in bench.warehouse.rglob("_delta_log"):
        (log / HINT).write_text(hint)
    assert failures(bench) == []


def test_a_broken_checkpoint_that_is_needed_is_as_bad_as_a_broken_commit(bench: Bench, template: Bench) -> None:
    with_checkpoint(bench, TABLES[1]).write_bytes(b"")
    min(log_of(bench, TABLES[1]).glob("*.json")).unlink()
    assert {failure.code for failure in failures(bench)} == {"delta-log-commit-broken"}
    shutil.rmtree(log_of(bench, TABLES[1]))
    bench.done("republish counts")
    assert bench.result() == template.result()


def system_error(number: int) -> OSError:
    """Return an error as delta-rs raises it."""
    return OSError(f"Kernel error: Generic LocalFileSystem error: {os.strerror(number)} (os error {number})")


@pytest.mark.parametrize(
    ("table", "number", "code"),
    [
        *((table, errno.EIO, "read-failed") for table in (TABLES[1], "rewindow/runs")),
        (TABLES[0], errno.EACCES, "read-not-permitted"),
    ],
)
def test_a_log_that_the_system_does_not_let_us_read_is_not_called_broken(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, table: str, number: int, code: str
) -> None:
    really, root = open_table.take, str(log_of(bench, table).parent)

    def take(path: str, **how: bool) -> object:
        if path == root:
            raise system_error(number)
        return really(path, **how)

    with monkeypatch.context() as failing:
        failing.setattr(open_table, "take", take)
        told = failures(bench)
    assert {failure.code for failure in told} == {code}
    assert not any("remove" in failure.message or "republish" in failure.message for failure in told)
    assert failures(bench) == [], "following the advice"


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


def test_a_first_landing_that_the_ledger_has_lost_is_not_deleted(bench: Bench) -> None:
    shutil.rmtree(bench.warehouse)
    bench.done("land activity")
    files = {*bench.warehouse.rglob("logs/**/*.parquet")}
    newest(bench, "rewindow/landings").unlink()
    refusal = bench.refuses("land activity", "landing-ledger-behind-log")
    assert "another name" in str(refusal.facts["fix"])
    assert {*bench.warehouse.rglob("logs/**/*.parquet")} >= files
