from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from rewindow.contracts.staged_files import StagedFile
from rewindow.errors import ConfigError
from rewindow.streams.serde.schema import Column
from rewindow.tables.delta import commit as tables_module
from rewindow.tables.delta.commit import commit_actions, commit_files
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.handle import Handle
from rewindow.tables.delta.open_table import open_table
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.paths import changelog_path, internal_path, log_path, output_path
from tests.refusals import containing, refused

COLUMNS = (Column("k", "string"), Column("v", "long"), Column("partition", "long"))
SCHEMA = arrow_schema(COLUMNS)
APP = "rewindow.pub/job/output/x/1"


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "a" / "b")
    create_table(path, SCHEMA, ("partition",))
    return path


def staged(path: str, name: str, rows: int = 3, partition: int = 0) -> StagedFile:
    file = f"partition={partition}/{name}.parquet"
    data = pa.table({"k": [name] * rows, "v": list(range(rows))}, schema=arrow_schema(COLUMNS[:2]))
    facts = Folder(path).write_table(file, data)
    stats = {"numRecords": rows, "minValues": {"v": 0}, "maxValues": {"v": rows - 1}, "nullCount": {"v": 0}}
    values = {"partition": str(partition)}
    return StagedFile(
        "output/x", partition, file, rows, facts.bytes, values, stats, "0" * 32, Folder(path).digest(file)
    )


def files_of(path: str) -> int:
    return len(DeltaTable(path).file_uris())


def test_places():
    assert output_path("alerts.low_activity") == "alerts/low_activity"
    assert output_path("alerts.low_activity", "trial") == "alerts/low_activity__trial"
    assert changelog_path("job", "store-1", [Column("k", "long")]) == "state/job/store-1/f6bb7f6b"
    assert changelog_path("job", "store-1", [Column("k", "string")]) != changelog_path(
        "job", "store-1", [Column("k", "long")]
    )
    assert log_path("feed", "events.v1") == "logs/feed/events.v1"
    assert internal_path("job", "0a", "by-user-repartition") == "internal/job/0a/by-user-repartition"
    assert len(output_path("alerts.counts", "b" * 247)) == len("alerts/") + 255
    with refused("name-too-long"):  # such as a branch that is named after a DAG run with a long id
        output_path("alerts.counts", "b" * 248)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "../a",
        "a/b",
        "a b",
        "a;drop",
        "`a`",
        "ä",
        "a\0",
        "_a",
        "state.x",
        "rewindow.runs",
        "logs",
    ],
)
def test_a_table_name_that_could_do_harm_is_refused(name):
    with pytest.raises(ConfigError):
        output_path(name)


def test_every_column_type_has_an_arrow_type():
    kinds = ["string", "long", "double", "boolean", "binary", "decimal(38,18)", "json"]
    schema = arrow_schema([Column(kind, kind) for kind in kinds])
    assert [str(kind) for kind in schema.types] == [
        *("string", "int64", "double", "bool", "binary"),
        *("decimal128(38, 18)", "string"),
    ]
    with refused("column-type-unknown"):
        arrow_schema([Column("x", "timestamp")])


def test_a_table_is_made_once_and_must_fit(path):
    version = DeltaTable(path).version()
    assert create_table(path, SCHEMA, ("partition",)).version() == version
    with refused("table-columns-differ"):
        create_table(path, arrow_schema([*COLUMNS, Column("more", "long")]), ("partition",))
    with refused("table-partitioned-otherwise"):
        create_table(path, SCHEMA)


def test_several_may_make_a_table_at_once(tmp_path):
    path = str(tmp_path / "table")
    barrier = threading.Barrier(4)
    failures = []

    def make():
        barrier.wait()
        try:
            create_table(path, SCHEMA, ("partition",))
        except Exception as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert DeltaTable(path).version() == 0


def test_a_commit_adds_its_files_once(path):
    file = staged(path, "one")
    assert commit_files(path, [file], app_id=APP, version=1)
    assert not commit_files(path, [file], app_id=APP, version=1)
    assert (files_of(path), DeltaTable(path).transaction_version(APP)) == (1, 1)
    added = pa.table(DeltaTable(path).get_add_actions(flatten=True)).to_pylist()[0]
    assert (added["num_records"], added["max.v"], added["partition.partition"]) == (3, 2, 0)


def test_a_commit_that_is_only_said_to_have_landed_is_made(path, monkeypatch):
    lies = iter([True, True, False])

    def says_it_did(*args):
        if not next(lies):
            commit_actions(*args)

    monkeypatch.setattr(tables_module, "commit_actions", says_it_did)
    assert commit_files(path, [staged(path, "one")], app_id=APP, version=1)
    assert (files_of(path), DeltaTable(path).transaction_version(APP)) == (1, 1)


def test_no_files_are_a_commit_that_counts(path):
    assert commit_files(path, [], app_id=APP, version=1)
    assert commit_files(path, [staged(path, "two")], app_id=APP, version=2)
    assert not commit_files(path, [], app_id=APP, version=1)
    assert (DeltaTable(path).version(), files_of(path)) == (2, 1)


def test_a_gap_is_refused(path):
    with refused("commit-leaves-gap", path=containing("gap")):
        commit_files(path, [staged(path, "x")], app_id=APP, version=2)
    assert commit_files(path, [staged(path, "x")], app_id=APP, version=5, after=4)
    with refused("commit-leaves-gap", last=5):
        commit_files(path, [], app_id=APP, version=7, after=4)


def test_a_stale_handle_does_not_double(path):
    stale = open_table(path)
    assert commit_files(path, [staged(path, "one")], app_id=APP, version=1)
    commit_files(path, [staged(path, "again")], app_id=APP, version=1, table=stale)
    assert files_of(path) == 1
    assert commit_files(path, [staged(path, "two")], app_id=APP, version=2, table=stale)
    assert files_of(path) == 2


def test_a_lost_answer_does_not_double(path, monkeypatch):
    def lands_and_raises(*args):
        commit_actions(*args)
        raise CommitFailedError("the answer was lost")

    monkeypatch.setattr(tables_module, "commit_actions", lands_and_raises)
    assert commit_files(path, [staged(path, "one")], app_id=APP, version=1)
    assert files_of(path) == 1


def test_what_never_lands_is_an_error(path, monkeypatch):
    monkeypatch.setattr(tables_module, "commit_actions", lambda *_args: (_ for _ in ()).throw(OSError("disk full")))
    with refused("not-committed", why=containing("disk full")):
        commit_files(path, [], app_id=APP, version=1)


def test_several_publishers_give_each_version_once(path):
    files = [staged(path, f"f{number}") for number in range(12)]
    barrier = threading.Barrier(3)
    did = []

    def publish():
        barrier.wait()
        did.extend(
            number for number, file in enumerate(files, 1) if commit_files(path, [file], app_id=APP, version=number)
        )

    threads = [threading.Thread(target=publish) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files_of(path) == 12
    assert DeltaTable(path).transaction_version(APP) == 12
    assert set(did) == set(range(1, 13))


def test_a_staged_file_that_is_gone_or_cut_short_stops_the_commit(path):
    file = staged(path, "one")
    with refused("staged-file-altered", path=containing("one.parquet"), bytes=containing("744"), fault="has 743 bytes"):
        commit_files(path, [replace(file, bytes=file.bytes + 1)], app_id=APP, version=1)
    (Path(path) / file.path).unlink()
    with refused("staged-file-altered", fault="is gone", path=containing("one.parquet"), bytes=containing("743")):
        commit_files(path, [file], app_id=APP, version=1)
    assert DeltaTable(path).version() == 0


def test_files_that_another_published_and_took_away_since_the_look_are_no_error(path):
    """While a run is paused between open and commit, others may publish its files, rewrite the table and clean up."""
    file, before = staged(path, "one"), open_table(path)
    assert commit_files(path, [file], app_id=APP, version=1)
    (Path(path) / file.path).unlink()
    assert not commit_files(path, [file], app_id=APP, version=1, table=before)


def test_a_table_that_is_gone_is_an_error(tmp_path):
    with refused("table-gone"):
        commit_files(str(tmp_path / "nothing"), [], app_id=APP, version=1)


def test_a_log_that_cannot_be_read_is_an_error(path):
    (Path(path) / "_delta_log" / f"{0:020}.json").write_text("{not json")
    with refused("delta-log-commit-broken", fix=containing("_delta_log")):
        open_table(path)


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ((3, ["columnMapping"]), (7, ["columnMapping", "appendOnly"])),
        ((1, None), (7, ["rowTracking", "domainMetadata", "appendOnly"])),
        ((1, None), (7, ["inCommitTimestamp"])),
        ((1, None), (7, ["clustering", "domainMetadata"])),
        ((2, None), (5, None)),
        ((1, None), (6, None)),
    ],
    ids=str,
)
def test_a_table_with_features_that_a_direct_commit_would_break_is_refused(path, reader, writer, monkeypatch):
    class Protocol:
        min_reader_version, reader_features = reader
        min_writer_version, writer_features = writer

    monkeypatch.setattr(Handle, "protocol", lambda _self: Protocol)
    with refused("table-feature-refused", path=containing("features")):
        commit_files(path, [staged(path, "one")], app_id=APP, version=1)


def test_a_table_with_a_constraint_is_refused(path):
    DeltaTable(path).alter.add_constraint({"positive": "v > 0"})
    with refused("table-feature-refused", features=containing("constraints.positive")):
        commit_files(path, [staged(path, "one")], app_id=APP, version=1)
