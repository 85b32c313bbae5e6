from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.errors import StorageError
from rewindow.tables.delta.journal import Journal
from tests.refusals import refused
from tests.tables.scene import spoil

FILE = StagedFile("output/x", 1, "a.parquet", 3, 99, {}, {"numRecords": 3}, "0" * 32, "1" * 32)
REPORTS = [
    TaskReport(0, 1, (FILE,), {"offsets": {"events": 3}}, ({"name": "process", "count": 3},), {"events": 3}),
    TaskReport(0, 0, (), {"text": "ä"}, (), {"events": 0}),
    TaskReport(1, 0, (), {}, (), {}),
]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path / "journal"), "job")


def test_reports_come_back_by_stage_and_partition(journal):
    kept = journal.append("attempt1", REPORTS)
    assert journal.read(kept, "attempt1") == [REPORTS[1], REPORTS[0], REPORTS[2]]


def test_staging_twice_changes_nothing(journal):
    kept = journal.append("attempt1", REPORTS)
    version = DeltaTable(journal.path).version()
    assert journal.append("attempt1", REPORTS) == kept
    assert DeltaTable(journal.path).version() == version


def test_an_attempt_stages_once(journal):
    journal.append("attempt1", REPORTS)
    with refused("attempt-staged-otherwise"):
        journal.append("attempt1", REPORTS[:2])


def test_a_file_that_was_merged_away_is_searched_in_the_table(journal):
    kept = journal.append("attempt1", REPORTS)
    journal.append("attempt2", REPORTS[:1])
    Journal(journal.path, "other").append("attempt3", REPORTS)
    DeltaTable(journal.path).optimize.compact()
    (Path(journal.path) / kept.path).unlink()
    assert journal.read(kept, "attempt1") == [REPORTS[1], REPORTS[0], REPORTS[2]]
    assert len(journal.read(replace(kept, path="job=job/gone.parquet"), "attempt2")) == 1


def test_a_journal_that_is_gone_or_damaged_is_an_error(journal):
    kept = journal.append("attempt1", REPORTS)
    file = Path(journal.path) / kept.path
    spoil(file)
    with refused("report-altered"):
        journal.read(kept, "attempt1")
    spoil(file)
    with refused("reports-missing", attempt="attempt9"):
        journal.read(replace(kept, path="job=job/gone.parquet"), "attempt9")
    file.unlink()
    with pytest.raises(StorageError):
        journal.read(kept, "attempt1")
    with refused("reports-missing"):
        Journal(journal.path + "x", "job").read(kept, "attempt1")
