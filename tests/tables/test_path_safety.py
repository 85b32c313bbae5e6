"""Tables stay inside the warehouse, also when their folders change while a process uses them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rewindow.tables.delta.open_table import safe_path
from tests.refusals import refused


@pytest.mark.parametrize("files", [3, 200])
def test_a_folder_that_becomes_a_link_is_refused_however_many_files_its_table_has(tmp_path: Path, files: int) -> None:
    warehouse, table = tmp_path / "warehouse", tmp_path / "warehouse" / "a" / "b"
    (table / "_delta_log").mkdir(parents=True)
    (table / "_partition=1").mkdir()
    for number in range(files):
        (table / f"{number}.parquet").touch()
    for moved in (table / "_delta_log", table / "_partition=1", table, table.parent):
        assert safe_path(str(warehouse), str(table)) == str(table)
        shutil.move(moved, tmp_path / "outside")
        moved.symlink_to(tmp_path / "outside", target_is_directory=True)
        with refused("path-leaves-warehouse"):
            safe_path(str(warehouse), str(table))
        moved.unlink()
        shutil.move(tmp_path / "outside", moved)


def test_a_large_folder_is_looked_into_again_after_as_many_changes_as_it_has_entries(tmp_path: Path) -> None:
    table = tmp_path / "warehouse" / "t"
    table.mkdir(parents=True)
    for number in range(100):
        (table / f"{number}.parquet").touch()
    safe_path(str(tmp_path / "warehouse"), str(table))
    (tmp_path / "outside").touch()
    (table / "link").symlink_to(tmp_path / "outside")

    def change_often() -> None:
        for number in range(110):
            (table / f"new{number}.parquet").touch()
            safe_path(str(tmp_path / "warehouse"), str(table))

    with refused("path-leaves-warehouse"):
        change_often()


def test_a_link_inside_the_warehouse_is_followed_each_time(tmp_path: Path) -> None:
    warehouse, inside = tmp_path / "warehouse", tmp_path / "warehouse" / "elsewhere"
    inside.mkdir(parents=True)
    (warehouse / "t").symlink_to(inside, target_is_directory=True)
    assert safe_path(str(warehouse), str(warehouse / "t"))
    shutil.move(inside, tmp_path / "outside")
    (warehouse / "t").unlink()
    (warehouse / "t").symlink_to(tmp_path / "outside", target_is_directory=True)
    with refused("path-leaves-warehouse"):
        safe_path(str(warehouse), str(warehouse / "t"))
