"""gc of a feed merges many small files, loses and changes no row, and keeps files that a planned run needs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from rewindow.contracts.staged_files import StagedFile, named_checksum
from rewindow.control.garbage_collection import Tidied, _FeedSteps, collect_feed
from rewindow.control.ingest.feed_progress import held_file
from rewindow.control.ledger_steps import drive
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.gc import FeedGc
from rewindow.tables.delta.merging import LogPart, LogPartition, due_merges, is_covered, log_parts
from rewindow.tables.delta.open_table import open_table
from rewindow.tables.delta.warehouse import DeltaTables
from tests.crash import scene
from tests.ingest.local_engine import HOUR, T0, LocalEngine, land_locally, landings, log_rows
from tests.refusals import containing, refused

FEED, TOPIC, HOURS = scene.FEED, scene.TOPIC, 6


def land(warehouse: str, hours: int) -> None:
    tables = DeltaFeedTables(warehouse)
    land_locally(scene.FEED_CONFIG, tables, Path(warehouse), T0 + hours * HOUR, engine=LocalEngine(Path(warehouse)))


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a warehouse with six hours, landed in four calls."""
    warehouse = str(tmp_path_factory.mktemp("feed") / "w")
    scene.write_source(warehouse, 6, hours=HOURS)
    for hours in (1, 2, 4, HOURS):
        land(warehouse, hours)
    return warehouse


@pytest.fixture
def warehouse(landed: str, tmp_path: Path) -> str:
    return shutil.copytree(landed, str(tmp_path / "w"))


def collecting(warehouse: str, *, is_quiet: bool = True) -> _FeedSteps:
    tables = DeltaFeedTables(warehouse)
    return collect_feed(FEED, tables.publish_steps, FeedGc(tables, FEED, lambda: is_quiet), keep_ms=0)


def gc(warehouse: str, *, is_quiet: bool = True) -> Tidied:
    return drive(collecting(warehouse, is_quiet=is_quiet))


def log(warehouse: str) -> str:
    return DeltaFeedTables(warehouse).roots(FEED, TOPIC)[0]


def parts(warehouse: str) -> dict[LogPartition, list[LogPart]]:
    table = open_table(log(warehouse))
    assert table is not None
    return log_parts(log(warehouse), table)


def rows(warehouse: str) -> object:
    return log_rows(DeltaFeedTables(warehouse)), landings(DeltaFeedTables(warehouse))


def replayed(warehouse: str, throughs: list[int]) -> dict[str, str]:
    scene.run_until(warehouse, throughs)
    return DeltaTables(warehouse).hashes(scene.JOB, "main")


def test_small_files_become_one_with_the_same_rows_in_order(warehouse: str) -> None:
    before, was = rows(warehouse), parts(warehouse)
    done = gc(warehouse)
    assert done.merged > done.into > 0
    assert rows(warehouse) == before
    now = parts(warehouse)
    assert sum(map(len, now.values())) == sum(map(len, was.values())) - done.merged + done.into
    assert {log_partition: sum(part.rows for part in some) for log_partition, some in now.items()} == {
        log_partition: sum(part.rows for part in some) for log_partition, some in was.items()
    }
    new = {part.path for some in now.values() for part in some} - {part.path for some in was.values() for part in some}
    for path in new:
        offsets = pq.read_table(Path(log(warehouse), path))["offset"].to_pylist()
        assert offsets == list(range(offsets[0], offsets[-1] + 1))
        assert named_checksum(path) is not None
    assert (gc(warehouse).merged, gc(warehouse).deleted) == (0, [])


def test_it_says_that_no_row_changed(warehouse: str) -> None:
    gc(warehouse)
    newest = max(Path(log(warehouse), "_delta_log").glob("*.json")).read_text()
    assert '"dataChange":false' in newest
    assert '"dataChange":true' not in newest


def test_jobs_give_the_same_tables_after_it_and_beside_it(landed: str, warehouse: str, tmp_path: Path) -> None:
    untouched = shutil.copytree(landed, str(tmp_path / "untouched"))
    expected = replayed(untouched, [2, 4, HOURS])
    assert replayed(shutil.copytree(landed, str(tmp_path / "first")), [HOURS]) != {}
    scene.run_until(warehouse, [2])
    running = scene.running(DeltaTables(warehouse), "main", 4)
    for step in running:  # this run has planned to read the old files
        if step.startswith("execute"):
            break
    assert gc(warehouse, is_quiet=False).into > 0
    drive(running)
    gc(warehouse)
    assert replayed(warehouse, [HOURS]) == expected


def test_landing_goes_on_from_what_was_held_back(tmp_path: Path) -> None:
    warehouses = [str(tmp_path / name) for name in ("untouched", "kept")]
    for warehouse in warehouses:
        scene.write_source(warehouse, 9, hours=HOURS)
        for hours in (2, 3, 5, HOURS):
            land(warehouse, hours)
            if warehouse.endswith("kept"):
                gc(warehouse)
                scene.grow_old(warehouse)
                gc(warehouse)
    assert rows(warehouses[0]) == rows(warehouses[1])
    assert replayed(warehouses[0], [3, HOURS]) == replayed(warehouses[1], [2, HOURS])


def test_old_files_stay_for_a_day_and_while_a_run_reads_the_feed(warehouse: str) -> None:
    gc(warehouse)
    left = sorted(path for path in Path(log(warehouse)).glob("generation=*/**/*.parquet"))
    assert gc(warehouse).deleted == []
    scene.grow_old(warehouse)
    assert gc(warehouse, is_quiet=False).deleted == []
    before = rows(warehouse)
    deleted = gc(warehouse).deleted
    assert {one.why for one in deleted} == {"its rows are in another file"}
    there = {part.path for some in parts(warehouse).values() for part in some}
    assert len(deleted) > 0
    assert len(left) - len(deleted) >= len(there)
    assert rows(warehouse) == before
    assert replayed(warehouse, [HOURS])


def test_what_another_hand_took_out_is_not_deleted(warehouse: str) -> None:
    gc(warehouse)
    version = DeltaTable(log(warehouse)).version()
    scene.write_source(warehouse, 6, hours=HOURS + 2)
    land(warehouse, HOURS + 2)
    before = rows(warehouse)
    newest = DeltaTable(log(warehouse)).version()
    DeltaTable(log(warehouse)).restore(version)
    scene.grow_old(warehouse)
    named = {
        file["path"]
        for row in DeltaFeedTables(warehouse).state(FEED)
        for file in row.body.get("files", {}).get(TOPIC, ())
    }
    gone = {one.path for one in gc(warehouse).deleted}
    table = DeltaTable(log(warehouse))
    table.restore(newest, protocol_downgrade_allowed=True)
    assert gone
    assert gone < named
    assert rows(warehouse) == before


def test_a_new_generation_that_keeps_landings_finds_rows_whose_file_is_gone(warehouse: str, landed: str) -> None:
    tables = DeltaFeedTables(warehouse)
    file = next(row.body["files"][TOPIC][0] for row in tables.state(FEED) if row.body.get("files", {}).get(TOPIC))
    held = held_file(TOPIC, StagedFile.from_json(file))
    first = DeltaFeedTables(landed).first_above(FEED, held, held.start, held.largest - 1)
    gc(warehouse)
    scene.grow_old(warehouse)
    assert file["path"] in {one.path for one in gc(warehouse).deleted}
    assert DeltaFeedTables(warehouse).first_above(FEED, held, held.start, held.largest - 1) == first


def test_a_flipped_bit_is_not_copied(warehouse: str) -> None:
    log_partition, some = next(
        (log_partition, some) for log_partition, some in sorted(parts(warehouse).items()) if len(some) > 1
    )
    file = Path(log(warehouse), some[0].path)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    version = DeltaTable(log(warehouse)).version()
    with refused("file-unreadable", error=containing("not what was written")):
        gc(warehouse)
    assert DeltaTable(log(warehouse)).version() == version, log_partition


def test_an_optimize_or_a_landing_that_comes_between_is_not_undone(warehouse: str) -> None:
    before = rows(warehouse)
    machine = collecting(warehouse)
    for step in machine:
        if step.endswith(": written"):
            DeltaTable(log(warehouse)).optimize.compact()
            break
    drive(machine)
    assert rows(warehouse) == before
    scene.write_source(warehouse, 6, hours=HOURS + 1)
    first, second = collecting(warehouse), collecting(warehouse)
    land(warehouse, HOURS + 1)
    before = rows(warehouse)
    for machine in (first, second):
        drive(machine)
    assert rows(warehouse) == before


def test_two_at_once_merge_once(warehouse: str) -> None:
    before = rows(warehouse)
    first, second = collecting(warehouse), collecting(warehouse)
    for machine in (first, second):
        for step in machine:
            if step.endswith(": written"):
                break
    drive(first)
    drive(second)
    assert rows(warehouse) == before


def test_what_is_merged_is_small_near_and_not_held() -> None:
    def part(name: str, first: int, last: int, size: int = 10) -> LogPart:
        return LogPart(name, last - first + 1, size, first, last)

    some = [part("a", 0, 9), part("b", 10, 19), part("big", 20, 29, 1 << 30), part("c", 30, 39), part("d", 40, 49)]
    assert [[one.path for one in group] for group in due_merges(some, ())] == [["a", "b"], ["c", "d"]]
    assert [[one.path for one in group] for group in due_merges(some, {"d"})] == [["a", "b"]]
    assert due_merges([part("a", 0, 9), part("b", 11, 19)], ()) == []
    assert due_merges([part("a", 0, 9), part("b", 5, 19)], ()) == []
    large = [part(str(n), n * 10, n * 10 + 9, 16 << 20) for n in range(9)]
    assert [len(group) for group in due_merges(large, ())] == [4, 4]


def test_a_large_file_is_merged_again_when_the_later_files_are_as_large() -> None:
    def paths(*sizes: int) -> list[list[str]]:
        some = [LogPart(str(n), 10, size, n * 10, n * 10 + 9) for n, size in enumerate(sizes)]
        return [[one.path for one in group] for group in due_merges(some, ())]

    assert paths(100, 10, 10) == [["1", "2"]]
    assert paths(100, 50, 10, 10) == [["2", "3"]]
    assert paths(100, 50, 30, 20) == [["0", "1", "2", "3"]]
    assert paths(10, 10, 100, 10) == [["0", "1", "2", "3"]]  # small files before a large one do not stay for ever
    assert paths(100, 50, 10) == []


def test_many_small_files_are_merged_in_several_commits(warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, version = rows(warehouse), DeltaTable(log(warehouse)).version()
    monkeypatch.setattr("rewindow.tables.delta.merging._MOST_FILES", 3)
    done = gc(warehouse)
    assert DeltaTable(log(warehouse)).version() > version + 1
    assert done.merged > done.into > 0
    assert rows(warehouse) == before
    assert gc(warehouse).merged == 0


def test_covered_is_what_others_hold_without_a_gap() -> None:
    some = [LogPart("a", 10, 1, 0, 9), LogPart("b", 10, 1, 10, 19), LogPart("holes", 5, 1, 20, 29)]
    assert is_covered(0, 19, some)
    assert is_covered(3, 12, some)
    assert not is_covered(0, 20, some)
    assert not is_covered(25, 26, some)
    assert not is_covered(0, 1, [])
