"""L5 for `land`: after a kill at any step, concurrent calls or a zombie, the tables are those of one clean call."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rewindow.control.ingest.landings import LANDING, PLAN
from rewindow.control.plan.spec import Attempt
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.shared.paths import QUARANTINE, log_path
from tests.ingest.local_engine import (
    HOUR,
    T0,
    LocalEngine,
    feed_config,
    land_locally,
    landings,
    log_rows,
    write_rows,
)
from tests.refusals import containing, refused

NOW = T0 + 3 * HOUR
FEED = feed_config(log={"invalid_timestamp": "skip"}, lag="10m")


class Killed(BaseException):
    """Simulates a kill: no code after it runs."""


def source(root: Path, more: int = 0) -> None:
    for hour in range(2 + more):
        rows = [
            {"user": f"u{n % 5}", "t": T0 + hour * HOUR + n if n % 7 else -1, "got": T0 + hour * HOUR + n, "x": n}
            for n in range(40)
        ]
        write_rows(root, f"hour-{hour}", rows)


def clean(root: Path) -> DeltaFeedTables:
    tables = DeltaFeedTables(f"{root}/clean")
    land_locally(FEED, tables, root, NOW)
    return tables


def step_names(root: Path) -> list[str]:
    names: list[str] = []
    land_locally(FEED, DeltaFeedTables(f"{root}/names"), root, NOW, on_step=names.append)
    return names


def files_of(tables: DeltaFeedTables) -> set[str]:
    found = Path(tables.warehouse).glob("*/**/*.parquet")
    return {str(path) for path in found if "_delta_log" not in path.parts and "landings" not in path.parts}


def named_files(tables: DeltaFeedTables) -> set[str]:
    log, quarantine = tables.roots("activity", "events")
    named = set()
    for row in tables.state("activity"):
        if row.kind == LANDING:
            named |= {f"{log}/{file['path']}" for files in row.body["files"].values() for file in files}
            named |= {f"{quarantine}/{file['path']}" for files in row.body["quarantine"].values() for file in files}
    return named


@pytest.mark.slow
def test_killed_before_any_step_and_called_again(tmp_path):
    source(tmp_path)
    expected = clean(tmp_path)
    names = step_names(tmp_path)
    assert {"recover", "look", "plan", "write events", "decide", "publish"} <= set(names)
    assert any(name.startswith("publish quarantine") for name in names)
    for count, name in enumerate(names):
        tables = DeltaFeedTables(f"{tmp_path}/killed-{count}")
        seen: list[str] = []

        def kill(step, seen=seen, count=count):
            seen.append(step)
            if len(seen) > count:
                raise Killed

        with pytest.raises(Killed):
            land_locally(FEED, tables, tmp_path, NOW, on_step=kill)
        again = DeltaFeedTables(tables.warehouse)
        land_locally(FEED, again, tmp_path, NOW)
        assert log_rows(again) == log_rows(expected), f"killed before {name}"
        assert landings(again) == landings(expected), f"killed before {name}"
        assert files_of(again) == named_files(again), f"killed before {name}: files of dead attempts remain"


def test_a_dead_attempts_files_go_and_only_they(tmp_path):
    source(tmp_path)
    tables = DeltaFeedTables(f"{tmp_path}/w")

    def kill(step):
        if step == "decide":
            raise Killed

    with pytest.raises(Killed):
        land_locally(FEED, tables, tmp_path, NOW, on_step=kill)
    orphans = files_of(tables)
    assert orphans
    stranger = Path(next(iter(sorted(orphans)))).with_name("part-0.parquet")
    stranger.write_bytes(b"")
    land_locally(FEED, tables, tmp_path, NOW)
    assert not orphans & files_of(tables)
    assert stranger.exists()


def test_a_live_attempt_is_waited_for(tmp_path):
    source(tmp_path)
    tables = DeltaFeedTables(f"{tmp_path}/w")

    def kill(step):
        if step == "decide":
            raise Killed

    other = Attempt(id="a" * 32, host="test", pid=12345)
    with pytest.raises(Killed):
        land_locally(FEED, tables, tmp_path, NOW, on_step=kill, attempt=other)
    with refused("feed-being-landed", process=12345):
        land_locally(FEED, tables, tmp_path, NOW, alive=lambda attempt: attempt == other)


def test_a_zombie_cannot_land_after_another_took_over(tmp_path):
    source(tmp_path)
    expected = clean(tmp_path)
    tables = DeltaFeedTables(f"{tmp_path}/w")

    def take_over(step):
        if step == "decide":
            land_locally(FEED, DeltaFeedTables(tables.warehouse), tmp_path, NOW)

    with refused("landing-overtaken"):
        land_locally(FEED, tables, tmp_path, NOW, on_step=take_over)
    assert log_rows(tables) == log_rows(expected)
    assert [row.kind for row in tables.state("activity")].count(PLAN) == 2


def test_a_zombie_whose_files_were_removed_is_told_to_come_back(tmp_path):
    source(tmp_path)
    tables = DeltaFeedTables(f"{tmp_path}/w")

    class Overtaken(LocalEngine):
        def write(self, write, look, window):
            blocks = super().write(write, look, window)
            land_locally(FEED, DeltaFeedTables(tables.warehouse), tmp_path, NOW)
            return blocks

    with refused("landing-overtaken"):
        land_locally(FEED, tables, tmp_path, NOW, engine=Overtaken(tmp_path))
    assert log_rows(tables) == log_rows(clean(tmp_path))


def test_a_commit_that_another_made_meanwhile_is_not_made_twice(tmp_path):
    source(tmp_path)
    expected = clean(tmp_path)
    tables = DeltaFeedTables(f"{tmp_path}/w")

    def publish(step):
        if step.startswith("publish"):
            DeltaFeedTables(tables.warehouse).publish("activity")

    land_locally(FEED, tables, tmp_path, NOW, on_step=publish)
    assert log_rows(tables) == log_rows(expected)


@pytest.mark.parametrize("by_another", [True, False])
def test_a_staged_file_that_is_gone_is_an_error_but_not_if_another_published_it(tmp_path, by_another):
    source(tmp_path)
    tables = DeltaFeedTables(f"{tmp_path}/w")

    def before_publishing(step):
        if step.startswith("publish events"):
            if by_another:
                DeltaFeedTables(tables.warehouse).publish("activity")
            for file in (tmp_path / "w/logs/activity/events").glob("**/*.parquet"):
                file.unlink()

    if by_another:
        land_locally(FEED, tables, tmp_path, NOW, on_step=before_publishing)
    else:
        with refused("staged-file-altered", fault="is gone", fix=containing("Only a copy of the warehouse")):
            land_locally(FEED, tables, tmp_path, NOW, on_step=before_publishing)
    assert DeltaTable(tables.roots("activity", "events")[0]).version() == by_another


def test_publishing_again_commits_nothing(tmp_path):
    source(tmp_path)
    tables = clean(tmp_path)
    table_paths = [table_path(tables.warehouse, path) for path in (log_path("activity", "events"), QUARANTINE)]
    before = [DeltaTable(table_location).version() for table_location in table_paths]
    DeltaFeedTables(tables.warehouse).publish("activity")
    land_locally(FEED, tables, tmp_path, NOW)
    assert [DeltaTable(table_location).version() for table_location in table_paths] == before


def test_a_failed_landing_lands_nothing_and_the_next_goes_on(tmp_path):
    source(tmp_path)
    tables = DeltaFeedTables(f"{tmp_path}/w")
    with refused(
        "record-invalid",
        reason=containing("negative timestamp (-1)"),
        fix=containing("Fix the source, or set `invalid"),
    ):
        land_locally(feed_config(), tables, tmp_path, NOW)
    assert [row.kind for row in tables.state("activity")] == [PLAN]
    land_locally(FEED, tables, tmp_path, NOW)
    assert log_rows(tables) == log_rows(clean(tmp_path))


def test_landing_nothing_leaves_no_attempt_behind(tmp_path):
    source(tmp_path)
    tables = DeltaFeedTables(f"{tmp_path}/w")
    land_locally(FEED, tables, tmp_path, T0 + 2 * HOUR)
    before = len(tables.state("activity"))
    assert land_locally(FEED, tables, tmp_path, T0 + 3 * HOUR).landings == ()
    assert len(tables.state("activity")) == before, "the ledger knows that no landed file has more rows"
    write_rows(tmp_path, "tomorrow", [{"user": "ann", "t": T0, "got": T0 + 24 * HOUR, "x": 1}])
    assert land_locally(FEED, tables, tmp_path, T0 + 3 * HOUR).landings == ()
    kinds = [row.kind for row in tables.state("activity")]
    assert kinds[before:] == ["PLAN", "NOTE"], "a single interval is planned without reading the arrival times first"
    assert land_locally(FEED, tables, tmp_path, T0 + 5 * HOUR).landings == ()
    assert len(tables.state("activity")) == before + 2, "nothing is planned for intervals without arrivals"


def test_a_source_that_changes_while_it_is_landed_is_noticed(tmp_path):
    source(tmp_path)

    class Meddled(LocalEngine):
        def write(self, write, look, window):
            blocks = super().write(write, look, window)
            write_rows(tmp_path, "hour-1", [])
            return blocks

    with refused("file-changed-while-landing"):
        land_locally(FEED, DeltaFeedTables(f"{tmp_path}/w"), tmp_path, NOW, engine=Meddled(tmp_path))


@pytest.mark.slow
def test_sigkill_at_random_moments_then_again(tmp_path):
    source(tmp_path, more=1)
    expected = DeltaFeedTables(f"{tmp_path}/clean")
    land_locally(FEED, expected, tmp_path, NOW)
    tables = DeltaFeedTables(f"{tmp_path}/w")
    kills = 0
    for seconds in (0.0, 0.02, 0.05, 0.1):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.ingest.land_once", str(tmp_path), tables.warehouse, str(NOW)],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"recover\n"  # the call has started
            time.sleep(seconds)
            process.send_signal(signal.SIGKILL)
        kills += process.returncode == -signal.SIGKILL
    assert kills, "every process ended before its kill: kill them earlier"
    land_locally(FEED, tables, tmp_path, NOW)
    assert log_rows(tables) == log_rows(expected)
    assert landings(tables) == landings(expected)
    assert files_of(tables) == named_files(tables)
    assert not list(Path(tables.warehouse).glob("rewindow/heartbeats/*"))


@pytest.mark.slow
def test_two_processes_at_once_land_once(tmp_path):
    source(tmp_path, more=1)
    expected = DeltaFeedTables(f"{tmp_path}/clean")
    land_locally(FEED, expected, tmp_path, NOW)
    tables = DeltaFeedTables(f"{tmp_path}/w")
    command = [sys.executable, "-m", "tests.ingest.land_once", str(tmp_path), tables.warehouse, str(NOW)]
    root = Path(__file__).parents[2]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=root) for _ in range(3)]
    codes = [process.wait() for process in processes]
    assert set(codes) <= {0, 75}, codes
    land_locally(FEED, tables, tmp_path, NOW)
    assert log_rows(tables) == log_rows(expected)
    assert landings(tables) == landings(expected)
