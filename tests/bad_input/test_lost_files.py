"""Somebody deletes files below the warehouse, or adds some: every command that relies on a table says so (74)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rewindow.tables.delta import handle
from tests.bad_input.scene import Bench, copy_of, goes_on
from tests.refusals import containing

LINES = ("plan counts", "run counts", "show counts", "verify counts")
REPAIR = "`rewindow republish counts`"


pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture(scope="module")
def template(two_hours: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = copy_of(two_hours, tmp_path_factory.mktemp("template") / "bench")
    goes_on(bench)  # so that no run has anything to do
    return bench


@pytest.fixture(scope="module")
def whole(template: Bench) -> dict[str, str]:
    return template.result()


def named(folder: Path) -> list[Path]:
    """Return the data files that a table names."""
    return sorted(folder / path for path in DeltaTable(folder).file_uris())


def one_file(folder: Path) -> None:
    named(folder)[-1].unlink()


def a_flipped_bit(folder: Path) -> None:
    data = bytearray((file := named(folder)[-1]).read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


def all_rows(folder: Path) -> None:
    DeltaTable(folder).delete()


def later_commits(folder: Path) -> None:
    DeltaTable(folder).restore(1)


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


def journal(bench: Bench) -> Path:
    return bench.warehouse / "rewindow/journal"


LOSSES = [
    (output, one_file),
    (output, cut_short),
    (output, whole_table),
    (output, all_rows),
    (output, later_commits),
    (changelog, one_file),
    (changelog, whole_table),
    (metrics, whole_table),
]
"""What each command that relies on the tables notices."""
NOTICED_BY_VERIFY = [(changelog, a_flipped_bit), (journal, one_file), (journal, a_flipped_bit), (journal, whole_table)]


@pytest.mark.parametrize(("table", "lose"), [*LOSSES, *NOTICED_BY_VERIFY])
def test_no_command_succeeds_without_files_that_a_table_names_and_the_named_command_repairs_it(
    bench: Bench, whole: dict[str, str], table: Callable[[Bench], Path], lose: Callable[[Path], None]
) -> None:
    folder = table(bench)
    lose(folder)
    lines = LINES if (table, lose) in LOSSES else ("verify counts main/1 main/2 main/3",)
    if table is output and lose in (one_file, cut_short, whole_table):
        lines = (*lines, "head counts")
    for line in lines:
        handle.cached.clear()  # as a new process, which has opened no table before
        answer = bench.run(*line.split())
        assert (answer.code, REPAIR in answer.err) == (74, True), (line, answer)
        assert str(folder.relative_to(bench.root)) in answer.err or table is journal, answer
    bench.done("republish counts", *LINES)
    assert bench.result() == whole


@pytest.mark.parametrize(
    ("line", "lose"), [("rewind counts --to main/1", one_file), ("promote counts trial", whole_table)]
)
def test_no_command_takes_rows_out_of_a_table_that_was_altered(
    bench: Bench, line: str, lose: Callable[[Path], None]
) -> None:
    bench.done("backfill counts --from 2 --branch trial")
    before = bench.decided()
    lose(output(bench))
    answer = bench.run(*line.split())
    assert (answer.code, REPAIR in answer.err) == (74, True), answer
    assert bench.decided() == before
    bench.done("republish counts", line, "show counts")


def test_a_log_without_files_that_a_run_reads_is_reported(bench: Bench) -> None:
    all_files(bench.warehouse / "logs/activity/events")
    for line in ("verify counts", "run counts --branch again"):
        answer = bench.run(*line.split())
        assert (answer.code, "logs/activity/events" in answer.err) == (74, True), (line, answer)
    shutil.rmtree(bench.warehouse / "logs")
    bench.refuses("land activity", "staged-file-altered")


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
    for line in LINES:
        bench.refuses(line, "published-table-changed", change=containing("rewindow did not add foreign.parquet"))
    bench.done("republish counts", *LINES)
