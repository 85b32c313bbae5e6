"""`land` continues from what is stored beside the landing ledger, and lands what it would land without it."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from rewindow.control.ingest.feed_progress import fold_progress
from rewindow.tables.delta import ledger as ledger_module
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.gc import FeedGc
from rewindow.tables.delta.ledger import FOLDS, LedgerFiles, read_fold, write_fold
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import count_rows
from rewindow.tables.shared.paths import LANDINGS, QUARANTINE, log_path
from tests.ingest.local_engine import HOUR, T0, feed_config, land_locally, log_rows, write_rows
from tests.refusals import containing, refused

FEED = feed_config(log={"invalid_timestamp": "skip"}, lag="10m")
HOURS = 5


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """Merge files of the ledger after three commits, and no more once they have three rows."""
    monkeypatch.setattr(ledger_module, "SMALL_ROWS", 3)
    monkeypatch.setattr(ledger_module, "_FILES_MAX", 2)


def write_hour(root: Path, hour: int) -> None:
    rows = [
        {"user": f"u{n % 5}", "t": T0 + hour * HOUR + n if n % 7 else -1, "got": T0 + hour * HOUR + n, "x": n}
        for n in range(20)
    ]
    write_rows(root, f"hour-{hour}", rows)


def land_hour(root: Path, hour: int, warehouse: str = "w"):
    """Land one more hour, as a new process."""
    write_hour(root, hour)
    return land_locally(FEED, DeltaFeedTables(f"{root}/{warehouse}"), root, T0 + (hour + 1) * HOUR)


@pytest.fixture
def landed(tmp_path: Path) -> Path:
    for hour in range(HOURS):
        land_hour(tmp_path, hour)
    return tmp_path


def ledger_folder(root: Path) -> Folder:
    return Folder(table_path(f"{root}/w", LANDINGS))


@pytest.fixture
def read(monkeypatch) -> Counter[int]:
    """Return the numbers of the ledger rows that are read from now on."""
    numbers, load = Counter[int](), LedgerFiles.load

    def loading(self, row):
        numbers[row[0]] += 1
        return load(self, row)

    monkeypatch.setattr(LedgerFiles, "load", loading)
    return numbers


def test_a_landing_does_not_read_the_rows_of_earlier_ones(landed, read):
    stored = read_fold(ledger_folder(landed), "activity")
    assert stored is not None
    assert stored.rows >= 6
    assert land_hour(landed, HOURS).landings == (HOURS + 1,)
    assert min(read) > stored.rows


def test_all_that_follows_is_as_without_it(landed, read):
    other = landed / "other"
    shutil.copytree(landed / "w", other)
    for hour in range(HOURS, HOURS + 4):
        land_hour(landed, hour)
        shutil.rmtree(other / LANDINGS / FOLDS, ignore_errors=True)
        read.clear()
        land_locally(FEED, DeltaFeedTables(str(other)), landed, T0 + (hour + 1) * HOUR)
        assert read[1]
    mine, theirs = (DeltaFeedTables(str(path)) for path in (landed / "w", other))
    for tables in (mine, theirs):
        assert fold_progress(tables.state("activity")) == fold_progress(list(tables.state("activity")))
    assert log_rows(mine) == log_rows(theirs)
    refused = [count_rows(table_path(tables.warehouse, QUARANTINE)) for tables in (mine, theirs)]
    assert refused[0] == refused[1] > 0


@pytest.mark.parametrize("table", [log_path("activity", "events"), QUARANTINE], ids=["log", "quarantine"])
def test_a_table_that_lacks_landings_that_it_covers_gets_them(landed, tmp_path, table):
    whole = count_rows(f"{landed}/w/{table}")
    log = Path(f"{landed}/w/{table}/_delta_log")
    commits = sorted(log.glob("*.json"))
    for commit in [*commits[3:], *log.glob("*.checkpoint*"), *log.glob("_last_checkpoint")]:
        commit.unlink()
    assert count_rows(f"{landed}/w/{table}") < whole
    DeltaFeedTables(f"{landed}/w").publish("activity")
    assert count_rows(f"{landed}/w/{table}") == whole


def test_a_new_generation_reads_what_it_keeps(landed):
    report = land_locally(
        feed_config(log={"invalid_timestamp": "skip"}, lag="20m"),
        DeltaFeedTables(f"{landed}/w"),
        landed,
        T0 + HOURS * HOUR,
        new_generation=True,
        keep=2,
    )
    assert report.generation == 2
    land_hour(landed, HOURS)
    rows = DeltaFeedTables(f"{landed}/w").state("activity")
    assert fold_progress(rows) == fold_progress(list(rows))


def test_a_wrong_one_is_found_by_gc(landed):
    folder = ledger_folder(landed)
    stored = read_fold(folder, "activity")
    assert stored is not None
    wrong = [line.replace('"number":', '"number":1') for line in stored.lines]
    write_fold(folder, "activity", ledger_module.StoredFold(stored.rows, stored.token, stored.covers, wrong))
    with refused("ledger-fold-wrong", removal=containing("rewindow/landings/_folds")):
        list(FeedGc(DeltaFeedTables(f"{landed}/w"), "activity", lambda: True).garbage(0))
