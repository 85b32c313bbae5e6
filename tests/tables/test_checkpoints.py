from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rewindow.control.ingest.landings import Feed
from rewindow.errors import InvariantError
from rewindow.streams.record import TopicPartition
from rewindow.tables.delta.log_tables import LogFiles
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import log_path
from rewindow.tables.shared.publications import publication_id
from tests.control.ledgers import TOPIC, a_feed, planned
from tests.refusals import refused
from tests.tables.scene import JOB, a_job, changelog, finish, land, replay

HERE = TopicPartition(TOPIC, 1)


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    land(str(tmp_path), 4)
    for landing in (1, 2):
        replay(str(tmp_path), f"a{landing}", through_landing=landing)
    return str(tmp_path)


@pytest.fixture
def sums(warehouse: str) -> str:
    return changelog(warehouse, "sums")


def finished(warehouse: str) -> dict[str, str]:
    finish(warehouse)
    return DeltaTables(warehouse).hashes(JOB, "main")


def test_changelog_files_are_in_the_order_of_their_runs(warehouse):
    tables = DeltaTables(warehouse)
    state = tables.state(JOB)
    replay(warehouse, "b", "trial")
    replay(warehouse, "a3", through_landing=3)
    state = tables.state(JOB)
    checkpoint = tables.restore(state, state.branch("main").runs[2].spec)
    staged = {
        file.path: run.spec.run for run in state.committed for report in tables.reports(run) for file in report.files
    }
    for (store, _), paths in checkpoint.stores.items():
        root = f"{changelog(warehouse, store)}/"
        assert [staged[path.removeprefix(root)] for path in paths] == [1, 3]


def test_a_store_whose_files_were_merged_is_restored_all_the_same(warehouse, sums, tmp_path):
    DeltaTable(sums).optimize.compact()
    clean = tmp_path / "clean"
    land(str(clean), 4)
    assert finished(warehouse) == finished(str(clean))


def test_a_store_whose_files_were_merged_and_vacuumed_is_an_error(warehouse, sums):
    DeltaTable(sums).optimize.compact()
    DeltaTable(sums).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    with refused("changelog-rewritten"):
        finish(warehouse)


def test_a_changelog_that_lost_rows_is_an_error(warehouse, sums):
    DeltaTable(sums).delete()
    with refused("changelog-altered"):
        finish(warehouse)


def test_a_table_that_somebody_dropped_is_published_again(warehouse, sums):
    shutil.rmtree(Path(sums) / "_delta_log")
    finish(warehouse)
    ledger = DeltaTables(warehouse).state(JOB).ledger
    assert DeltaTable(sums).transaction_version(publication_id(ledger, JOB, "changelog/sums")) == 3


def test_a_table_of_another_job_is_refused(warehouse):
    tables = DeltaTables(warehouse)
    other = a_job(tables, name="other")
    spec = planned([], "x")
    with refused("table-of-another-job", other="counts"):
        tables.roots(replace(spec, binding=other.binding), [])


def test_roots_name_every_target(warehouse):
    tables = DeltaTables(warehouse)
    spec = tables.state(JOB).committed[0].spec
    roots = tables.roots(spec, ["by-user-repartition"])
    assert roots["internal/by-user-repartition"] == f"{warehouse}/internal/{JOB}/a1/by-user-repartition"
    assert roots["changelog/sums"] == changelog(warehouse, "sums")


def test_a_feed_that_was_never_landed_is_an_error(tmp_path):
    with refused("feed-never-landed", feed="activity"):
        DeltaTables(str(tmp_path)).feed("activity")


def test_a_ledger_that_lost_its_commit_stops_the_job(warehouse):
    runs = table_path(warehouse, "rewindow/runs")
    DeltaTable(runs).alter.set_table_properties({"delta.appendOnly": "false"})
    DeltaTable(runs).delete("kind = 'COMMIT' and seq = 2")
    with pytest.raises(InvariantError):
        DeltaTables(warehouse).state(JOB)


def found(warehouse: str, feed: Feed, start: int, end: int) -> list[tuple[int, int]]:
    files = LogFiles(table_path(warehouse, log_path("activity", TOPIC))).find(feed, HERE, start, end)
    assert all("partition=1" in file.path and Path(file.path).exists() for file in files)
    return [(file.first, file.last) for file in files]


def test_the_files_of_a_range_of_offsets(warehouse):
    feed = a_feed(4)
    assert found(warehouse, feed, 0, 40) == [(0, 9), (10, 19), (20, 29), (30, 39)]
    assert found(warehouse, feed, 10, 20) == [(10, 19)]
    assert found(warehouse, feed, 15, 21) == [(15, 19), (20, 20)]
    assert found(warehouse, feed, 40, 40) == []


def test_only_what_the_feeds_generation_still_has_is_found(warehouse):
    assert found(warehouse, a_feed(4, generation=2, kept=2), 0, 40) == [(0, 9), (10, 19)]


def test_a_log_that_is_not_there_is_an_error(tmp_path):
    with refused("log-missing"):
        LogFiles(str(tmp_path / "nothing"))
