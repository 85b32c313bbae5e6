"""One file per run and table, whatever the number of tasks; a changelog that an earlier version created stays as it is."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from rewindow.tables.delta.create_table import OWNER, create_table
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_file, read_rows, table_files, table_schema
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.arrow_tables import arrow_schema
from tests.tables.scene import JOB, a_job, land, one_by_one, replay

RUNS = 3


def older(folder: Path) -> str:
    """Create a warehouse whose changelogs are partitioned, as those of earlier versions, and replay it."""
    warehouse = str(folder / "w")
    land(warehouse, RUNS)
    for target, table in a_job(DeltaTables(warehouse)).binding.tables.items():
        if target.startswith("changelog/"):
            schema, owner = arrow_schema(table.columns), {OWNER: JOB}
            create_table(table_path(warehouse, table.path), schema, ["_partition"], configuration=owner)
    for landing in range(1, RUNS + 1):
        replay(warehouse, f"a{landing}", through_landing=landing)
    return warehouse


def changelog_path(warehouse: str) -> str:
    return table_path(warehouse, a_job(DeltaTables(warehouse)).binding.tables["changelog/sums"].path)


def partitions_of_files(path: str) -> list[int]:
    """Return how many partitions each file of a table has rows of."""
    table = DeltaTable(path)
    rows = [read_file(Folder(path), file, table_schema(table)) for file in table_files(path, table)]
    return [len(set(one["_partition"].to_pylist())) for one in rows]


def test_each_run_adds_one_file_to_each_table(tmp_path: Path) -> None:
    warehouse = one_by_one(tmp_path, RUNS)
    for table in a_job(DeltaTables(warehouse)).binding.tables.values():
        path = table_path(warehouse, table.path)
        runs = [file.first_run for file in table_files(path, DeltaTable(path))]
        assert len(runs) == len(set(runs)), table.path
    assert max(partitions_of_files(changelog_path(warehouse))) > 1


def test_a_partitioned_changelog_gets_a_file_for_each_task_and_the_same_rows(tmp_path: Path) -> None:
    new, old = one_by_one(tmp_path / "new", RUNS), older(tmp_path / "old")
    assert set(partitions_of_files(changelog_path(old))) == {1}
    totals = [[run.commit.targets["changelog/sums"] for run in DeltaTables(w).state(JOB).committed] for w in (new, old)]
    assert [total.digest for total in totals[0]] == [total.digest for total in totals[1]]
    assert sum(total.files for total in totals[0]) < sum(total.files for total in totals[1])
    assert DeltaTables(old).hashes(JOB, "main") == DeltaTables(new).hashes(JOB, "main")
    rows = [sorted(map(str, read_rows(changelog_path(w)).drop_columns(["_run"]).to_pylist())) for w in (new, old)]
    assert rows[0] == rows[1]
