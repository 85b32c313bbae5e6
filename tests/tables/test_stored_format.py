"""Data stored by another version of rewindow is refused with exit code 76 and instructions, before anything is changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from rewindow.contracts.staged_files import METRICS as METRICS_COLUMNS
from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.stored_rows import FORMAT, check_layout, load_stored, stored_json
from rewindow.errors import CheckpointError
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.journal import Journal
from rewindow.tables.delta.ledger import Ledger, LedgerRow
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.paths import JOURNAL, LANDINGS, METRICS, RUNS
from tests.bad_input.scene import Bench, copy_of, without_spark

OLDER = r"written by rewindow 0\.1 \(format 1\).*choose another warehouse and land again, or read it with rewindow 0\.1"
NEWER = r"has rows of format 3, but this version reads format 2: upgrade rewindow"


@pytest.fixture(scope="module")
def template(two_hours: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with without_spark():
        yield copy_of(two_hours, tmp_path_factory.mktemp("bench") / "project")


def rewrite(path: Path, found: object) -> None:
    """Change the format that the rows of a ledger state. None removes it, as in 0.1."""
    rows = read_rows(str(path))
    bodies = [json.loads(text) for text in rows["body"].to_pylist()]
    assert all(body.pop("format") == FORMAT for body in bodies)
    stated = {} if found is None else {"format": found}
    texts = pa.array([json.dumps({**body, **stated}) for body in bodies])
    shutil.rmtree(path)
    write_deltalake(path, rows.set_column(rows.schema.get_field_index("body"), "body", texts), partition_by=["name"])


@pytest.mark.parametrize("command", ["land activity", "run counts", "show counts", "gc counts"])
@pytest.mark.parametrize(("found", "says"), [(None, "another warehouse"), (3, "upgrade rewindow")])
def test_every_command_refuses_ledgers_of_another_version(template, tmp_path, command, found, says):
    bench = copy_of(template, tmp_path / "project")
    for table in (RUNS, LANDINGS):
        rewrite(bench.warehouse / table, found)
    before = bench.files()
    answer = bench.run(*command.split())
    assert answer.code == 76, answer
    assert says in answer.err
    assert str(bench.warehouse / "rewindow") in answer.err, "the message names the table"
    assert bench.files() == before


def test_each_reading_of_a_ledger_says_that_it_is_of_another_version(tmp_path):
    path = tmp_path / "runs"
    Ledger(str(path), "old").append([LedgerRow(1, "NOTE", {})])
    known = Ledger(str(path), "old")
    assert len(known.read()) == 1
    rewrite(path, 3)
    for ledger in (known, Ledger(str(path), "old")):
        for _ in range(2):
            with pytest.raises(CheckpointError, match=NEWER):
                ledger.read()


def test_a_new_name_does_not_join_a_ledger_of_another_version(tmp_path):
    path = tmp_path / "runs"
    Ledger(str(path), "old").append([LedgerRow(1, "NOTE", {})])
    rewrite(path, None)
    with pytest.raises(CheckpointError, match=OLDER):
        Ledger(str(path), "new").read()
    with pytest.raises(CheckpointError, match=OLDER):
        Ledger(str(path), "new").append([LedgerRow(1, "NOTE", {})])


def test_every_row_of_ledgers_and_journal_states_its_format(template):
    for table, column in ((RUNS, "body"), (LANDINGS, "body"), (JOURNAL, "report")):
        texts = read_rows(str(template.warehouse / table))[column].to_pylist()
        assert {json.loads(text)["format"] for text in texts} == {FORMAT}


def test_reports_of_another_version_are_refused(tmp_path):
    journal = Journal(str(tmp_path / "journal"), "job")
    kept = journal.append("attempt", [TaskReport(0, 0, (), {}, (), {})])
    columns = read_rows(journal.path).drop_columns(["report"])
    text = json.dumps({**TaskReport(0, 0, (), {}, (), {}).as_json(), "format": 3})
    shutil.rmtree(journal.path)
    write_deltalake(journal.path, columns.append_column("report", [[text]]), partition_by=["job"])
    with pytest.raises(CheckpointError, match=NEWER):
        journal.read(kept, "attempt")


@pytest.mark.parametrize(
    ("table", "old", "new"), [(JOURNAL, "stage", "sub_topology"), (METRICS, "former_branch", "branch")]
)
def test_an_old_table_that_merely_exists_is_refused(tmp_path, table, old, new):
    path = str(tmp_path / table)
    schema = arrow_schema(METRICS_COLUMNS)
    if table == JOURNAL:
        names = ("job", "attempt", "sub_topology", "partition", "report")
        schema = pa.schema([(name, pa.int64() if name in names[2:4] else pa.string()) for name in names])
    renamed = schema.set(schema.get_field_index(new), schema.field(new).with_name(old))
    create_table(path, renamed)
    with pytest.raises(CheckpointError, match=OLDER):
        create_table(path, schema)


def test_a_users_own_table_may_have_these_columns():
    check_layout("warehouse/out/metrics", ["stage"])
    check_layout("main.rewindow_journals", ["stage"])
    with pytest.raises(CheckpointError):
        check_layout("main.default.rewindow_journal", ["stage"])


@pytest.mark.parametrize("found", [0, 1, 3, "2", None, 2.5, [2]])
def test_only_this_format_is_read(found):
    assert load_stored(stored_json({"a": 1}), "t") == {"a": 1}
    with pytest.raises(CheckpointError):
        load_stored(json.dumps({"format": found}), "t")
