"""Somebody deletes files below the warehouse, or adds some: every command that relies on a table says so (74)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.bad_input.scene import Bench, goes_on, make_template

COMMANDS = (("run", "counts"), ("show", "counts"), ("verify", "counts"))


pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = make_template(tmp_path_factory.mktemp("template") / "bench")
    goes_on(bench)  # so that no run has anything to do
    return bench


def named(folder: Path) -> list[Path]:
    """Return the data files that a table names."""
    return sorted(folder / path for path in DeltaTable(folder).file_uris())


def one_file(folder: Path) -> None:
    named(folder)[-1].unlink()


def all_files(folder: Path) -> None:
    for file in named(folder):
        file.unlink()


def cut_short(folder: Path) -> None:
    file = named(folder)[0]
    file.write_bytes(file.read_bytes()[:-1])


def whole_table(folder: Path) -> None:
    shutil.rmtree(folder)


def output(bench: Bench) -> Path:
    return bench.warehouse / "alerts/totals"


def changelog(bench: Bench) -> Path:
    (folder,) = (bench.warehouse / "state/counts/sums").iterdir()
    return folder


def metrics(bench: Bench) -> Path:
    return bench.warehouse / "rewindow/metrics"


def test_head_names_the_repair_of_a_lost_file(bench: Bench) -> None:
    one_file(output(bench))
    answer = bench.run("head", "counts")
    assert answer.code == 74
    assert "[published-table-changed]" in answer.err
    assert "alerts/totals lacks 1 of" in answer.err
    assert "`rewindow republish counts`" in answer.err


@pytest.mark.parametrize("lose", [one_file, all_files, cut_short, whole_table])
@pytest.mark.parametrize("table", [output, changelog, metrics])
def test_no_command_succeeds_without_files_that_a_table_names(
    bench: Bench, template: Bench, table: Callable[[Bench], Path], lose: Callable[[Path], None]
) -> None:
    folder = table(bench)
    lose(folder)
    for command in COMMANDS:
        answer = bench.run(*command)
        assert answer.code == 74, (command, answer.out, answer.err)
        assert str(folder.relative_to(bench.root)) in answer.err
        assert "rewindow republish counts" in answer.err
    answer = bench.run("republish", "counts")
    assert answer.code == 0, answer.err
    for command in COMMANDS:
        assert bench.run(*command).code == 0, command
    assert bench.result() == template.result()


@pytest.mark.parametrize("lose", [one_file, all_files, cut_short, whole_table])
@pytest.mark.parametrize("words", [("rewind", "counts", "--to", "main/1"), ("promote", "counts", "trial")], ids=str)
def test_no_command_takes_rows_out_of_a_table_that_was_altered(
    bench: Bench, words: tuple[str, ...], lose: Callable[[Path], None]
) -> None:
    assert bench.run("backfill", "counts", "--from", "2", "--branch", "trial").code == 0
    before = bench.decided()
    lose(output(bench))
    answer = bench.run(*words)
    assert answer.code == 74, (answer.out, answer.err)
    assert "rewindow republish counts" in answer.err
    assert bench.decided() == before
    assert bench.run("republish", "counts").code == 0
    assert bench.run(*words).code == 0
    assert bench.run("show", "counts").code == 0


def test_a_log_without_files_that_a_run_reads_is_reported(bench: Bench) -> None:
    all_files(bench.warehouse / "logs/activity/events")
    for command in (("verify", "counts"), ("run", "counts", "--branch", "again")):
        answer = bench.run(*command)
        assert answer.code == 74, (command, answer.out, answer.err)
        assert "logs/activity/events" in answer.err
    shutil.rmtree(bench.warehouse / "logs")
    answer = bench.run("land", "activity")
    assert answer.code == 74, (answer.out, answer.err)
    assert "[staged-file-altered]" in answer.err
    assert "restore the file" in answer.err


def test_a_file_that_another_tool_added_without_statistics_is_reported(bench: Bench) -> None:
    folder = output(bench)
    added = shutil.copy(named(folder)[0], folder / "foreign.parquet")
    facts = Path(added).stat()
    action = {
        "path": "foreign.parquet",
        "partitionValues": {},
        "size": facts.st_size,
        "modificationTime": facts.st_mtime_ns // 1_000_000,
        "dataChange": True,
    }
    version = DeltaTable(folder).version() + 1
    (folder / f"_delta_log/{version:020}.json").write_text(json.dumps({"add": action}) + "\n")
    for command in COMMANDS:
        answer = bench.run(*command)
        assert answer.code == 74, (command, answer.out, answer.err)
        assert "[published-table-changed]" in answer.err
        assert "rewindow did not add foreign.parquet" in answer.err
        assert "rewindow republish counts" in answer.err
    assert bench.run("republish", "counts").code == 0
    for command in COMMANDS:
        assert bench.run(*command).code == 0, command


def test_a_feed_whose_ledger_was_deleted_is_broken_and_says_what_to_remove(bench: Bench) -> None:
    shutil.rmtree(bench.warehouse / "rewindow/landings")
    said = [json.loads(bench.run(*command, "--json").out) for command in (("status",), ("land", "activity"))]
    (feed,) = [one for one in said[0]["feeds"] if one["feed"] == "activity"]
    assert feed["status"] == "broken", feed
    for text in (str(feed), said[1]["error"]):
        assert "are of a ledger that was deleted. Restore that ledger from a copy, or remove that table" in text
    shutil.rmtree(bench.warehouse / "logs/activity")
    assert bench.run("land", "activity").code == 0
