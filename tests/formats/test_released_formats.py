"""A warehouse of each released format: the current one is continued, an older one is refused (76) and left as it is."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from rewindow.control.plan.stored_rows import FORMAT
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.shared.paths import JOURNAL, METRICS, RUNS
from tests.bad_input.scene import TARGET, Bench, goes_on, make_template, without_spark
from tests.formats.__main__ import FOLDER

ADVICE = (
    r"written by rewindow 0\.1 \(format 1\).*choose another warehouse and land again, or read it with rewindow 0\.1"
)
COMMANDS = (
    "land activity",
    "plan counts",
    "run counts",
    "run counts --land",
    "show counts",
    "explain counts",
    "head counts",
    "resume counts",
    "republish counts",
    "verify counts",
    "rewind counts --to 1",
    "reset counts --yes",
    "backfill counts --from 1 --branch fix",
    "diff counts main fix",
    "promote counts fix",
    "branch list counts",
    "branch drop counts fix",
    "state list counts",
    "state show counts sums",
    "state diff counts sums 1 2",
    "why alerts.totals ann",
    "report counts",
    "gc",
    "gc counts",
    "gc activity",
    "gc --dry-run",
)


@pytest.fixture(scope="module", autouse=True)
def _in_this_process() -> Iterator[None]:
    with without_spark():
        yield


def written(number: int, root: Path) -> Bench:
    """Return the project that was written in a format."""
    with tarfile.open(FOLDER / f"format_{number}.tar.xz") as packed:
        packed.extractall(root, filter="data")
    return Bench(root / "project")


def test_an_archive_of_every_released_format_is_kept() -> None:
    kept = {int(number) for path in FOLDER.iterdir() for number in re.findall(r"format_(\d+)\.tar\.xz", path.name)}
    assert kept == set(range(1, FORMAT + 1)), "write it with `python -m tests.formats` before FORMAT grows"
    assert all(path.stat().st_size < 40_000 for path in FOLDER.glob("*.tar.xz"))


def test_every_command_refuses_format_1_and_leaves_it_as_it_is(tmp_path: Path) -> None:
    bench = written(1, tmp_path)
    before = bench.files()
    for command in COMMANDS:
        answer = bench.run(*command.split())
        assert answer.code == 76, (command, answer)
        assert re.search(ADVICE, answer.err.replace("\n", " ")), (command, answer)
        assert bench.files() == before, command


def test_ls_and_status_say_of_each_part_of_format_1_that_it_is_refused(tmp_path: Path) -> None:
    bench = written(1, tmp_path)
    listed = json.loads(bench.run("ls", "--json").out)
    assert [one["exit_code"] for one in (*listed["feeds"], *listed["jobs"])] == [76, 76]
    checked = bench.run("status", "--json")
    assert checked.code == 1
    found = json.loads(checked.out)
    assert all(one["findings"][0]["about"] == "refused" for one in (*found["feeds"], *found["jobs"]))


def test_upgrade_refuses_format_1_with_instructions_that_work(tmp_path: Path) -> None:
    bench = written(1, tmp_path)
    before = bench.files()
    for words in (("upgrade",), ("upgrade", "--dry-run")):
        answer = bench.run(*words)
        assert answer.code == 76
        assert "No version converts it" in answer.out
        assert "rewindow land FEED --target NEW" in answer.out
        found = json.loads(bench.run(*words, "--json").out)
        fits = {one["table"]: one["fit"] for one in found["tables"]}
        assert set(fits.values()) == {"refused: written by an older version"}
        assert (found["exit_code"], found["format"], found["converted"]) == (76, FORMAT, [])
        assert bench.files() == before
    bench.write(
        "conf/targets/new.yaml", TARGET.replace("local", "new").replace("warehouse: warehouse", "warehouse: w2")
    )
    for words in (("land", "activity"), ("run", "counts"), ("upgrade",)):
        assert bench.run(*words, "--target", "new").code == 0, words


def test_the_current_format_is_continued_and_gives_the_rows_of_a_project_that_was_never_stored(tmp_path: Path) -> None:
    bench, clean = written(FORMAT, tmp_path / "kept"), make_template(tmp_path / "clean")
    goes_on(clean)
    assert bench.run("status").code == 0
    for command in ("land activity", "run counts", "rewind counts --to 1", "run counts", "verify counts"):
        answer = bench.run(*command.split())
        assert answer.code == 0, (command, answer)
    assert bench.result() == clean.result()
    report = tmp_path / "report.html"
    assert bench.run("report", "counts", "--out", str(report)).code == 0
    assert "main/4" in report.read_text(encoding="utf-8"), "the rewound runs were main/2 and main/3"


def test_upgrade_has_nothing_to_convert_and_says_so(tmp_path: Path) -> None:
    bench = written(FORMAT, tmp_path)
    before = bench.files()
    for words in (("upgrade",), ("upgrade", "--dry-run")):
        answer = bench.run(*words)
        assert answer.code == 0
        assert (
            f"reads and writes format {FORMAT}, and the warehouse has no other. There is nothing to convert."
            in answer.out
        )
        assert bench.files() == before
    rows = {one["table"]: one["rows"] for one in json.loads(bench.run("upgrade", "--json").out)["tables"]}
    ledger = len(Ledger(str(bench.warehouse / RUNS), "counts").read())
    assert rows[RUNS] == [{"format": FORMAT, "rows": ledger}]
    assert rows[JOURNAL][0]["rows"] > 0
    shutil.rmtree(bench.warehouse)
    assert "The warehouse is empty." in bench.run("upgrade").out


def test_a_newer_format_is_named_with_the_jobs_that_have_it(tmp_path: Path) -> None:
    bench = written(FORMAT, tmp_path)
    path = bench.warehouse / RUNS
    rows = read_rows(str(path))
    texts = [json.dumps({**json.loads(text), "format": FORMAT + 1}) for text in rows["body"].to_pylist()]
    shutil.rmtree(path)
    at = rows.schema.get_field_index("body")
    write_deltalake(path, rows.set_column(at, "body", pa.array(texts)), partition_by=["name"])
    answer = bench.run("upgrade")
    assert answer.code == 76
    assert "A newer version of rewindow wrote here." in answer.out
    (found,) = [one for one in json.loads(bench.run("upgrade", "--json").out)["tables"] if one["table"] == RUNS]
    assert found["refused"] == ["counts"]


def test_metrics_state_no_format(tmp_path: Path) -> None:
    bench = written(FORMAT, tmp_path)
    tables = {one["table"]: one for one in json.loads(bench.run("upgrade", "--json").out)["tables"]}
    assert [row["format"] for row in tables[METRICS]["rows"]] == [None]
    assert "rows that state no format: told by the columns" in " ".join(bench.run("upgrade").out.split())


def test_a_damaged_row_is_an_error(tmp_path: Path) -> None:
    bench = written(FORMAT, tmp_path)
    path = bench.warehouse / RUNS
    rows = read_rows(str(path))
    shutil.rmtree(path)
    damaged = pa.array(["{"] * rows.num_rows)
    write_deltalake(path, rows.set_column(rows.schema.get_field_index("body"), "body", damaged), partition_by=["name"])
    assert bench.run("upgrade").code == 74
