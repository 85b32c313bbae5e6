"""A schedule that nobody looks after stays small: runs clean up after themselves, and take nothing away that is still needed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rewindow.app import open_project
from tests.year.calls import here
from tests.year.law import compare, hashes
from tests.year.project import FEED, JOB, write_hour, write_project
from tests.year.stored import stored

pytestmark = pytest.mark.slow

HOURS, DAY = 33, 16
"""Two days of so many hours, and one hour of the third."""
LEDGERS = ("rewindow/landings", "rewindow/runs")


@pytest.fixture(scope="module")
def schedule(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Return a project that was landed and run every hour for two days, and a line for each hour."""
    root, lines = tmp_path_factory.mktemp("flat"), []
    write_project(root)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(open_project, "_CLEANED_EVERY", DAY)
        for hour in range(HOURS):
            write_hour(root, hour)
            here(root, "land", FEED).checked()
            ran = here(root, "run", JOB).checked().data
            said = {"cleaned": ran["cleaned"], "hints": ran["summary"]["hints"]}
            lines.append(said | {"stored": stored(root / "warehouse")})
    return root, lines


def test_a_run_cleans_up_once_a_day_and_says_what_it_did(schedule: tuple[Path, list[dict[str, Any]]]) -> None:
    _, lines = schedule
    cleaned = {run: line["cleaned"] for run, line in enumerate(lines, start=1) if line["cleaned"]}
    assert list(cleaned) == [DAY, 2 * DAY]
    for done in cleaned.values():
        assert done["merged"] > done["into"] > 0
        assert done["seconds"] < 10
    assert cleaned[2 * DAY]["deleted_files"] > 0
    assert cleaned[2 * DAY]["deleted_bytes"] > 0
    assert not any(line["hints"] for line in lines)


def test_the_second_day_leaves_no_more_files_than_the_first(schedule: tuple[Path, list[dict[str, Any]]]) -> None:
    root, lines = schedule
    first, second = (lines[number * DAY]["stored"] for number in (1, 2))
    for table in LEDGERS:
        assert second[table][0] < 2 * DAY  # landings and runs have rows there every hour
    assert _files(second) - _files(first) <= _files(first)
    for table in ("rewindow/journal", "rewindow/metrics", "year/hourly", "year/latest"):
        assert len(DeltaTable(str(root / "warehouse" / table)).file_uris()) < DAY, table


def test_a_schedule_that_cleaned_up_has_the_rows_of_one_run(
    schedule: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    root = shutil.copytree(schedule[0], tmp_path / "copy")
    assert compare(root)["different"] == []


def test_each_earlier_run_can_be_gone_back_to_and_branched_from(
    schedule: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    root = shutil.copytree(schedule[0], tmp_path / "copy")
    before = hashes(root / "warehouse")
    here(root, "rewind", JOB, "--to", "main/9").checked()
    here(root, "run", JOB).checked()
    assert hashes(root / "warehouse") == before
    here(root, "backfill", JOB, "--from", "main/4", "--branch", "trial").checked()
    here(root, "promote", JOB, "trial").checked()
    assert hashes(root / "warehouse") == before


def _files(line: dict[str, tuple[int, int]]) -> int:
    return sum(files for files, _ in line.values())
