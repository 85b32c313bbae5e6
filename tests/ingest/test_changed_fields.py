"""A file whose fields are not those that are landed is refused before anything is landed, with the choices."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pydantic import ValidationError

from rewindow.config.feed import feed_spec
from rewindow.contracts.ingest import LogColumns, Piece, SourceSpec
from rewindow.contracts.source_fields import FileFields, SourceFields, fields_of_schema
from rewindow.control.ingest.landed_fields import LandedFields, check_fields
from rewindow.engine.worker.file_fields import csv_columns, csv_fields, parquet_fields
from rewindow.streams.serde.schema import Column
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import HOUR, T0, land_locally, log_rows, one_log
from tests.refusals import containing, fixes, refused

COLUMNS = LogColumns((Column("user", "string"),), (Column("amount", "long"), Column("address", "json")), True, False)
ADDRESS = {"type": "struct", "fields": [{"name": "zip", "type": "long"}, {"name": "city", "type": "string"}]}
SCHEMA = {
    "type": "struct",
    "fields": [
        *({"name": name, "type": "string"} for name in ("user", "t", "amount", "coupon")),
        {"name": "address", "type": ADDRESS},
        {"name": "scores", "type": {"type": "map", "keyType": "string", "valueType": "long"}},
        {"name": "items", "type": {"type": "array", "elementType": ADDRESS}},
    ],
}
ALL = ["user", "t", "amount", "address", "address.zip", "address.city"]


def spec_of(**log):
    given = one_log(**{"source": {"path": "raw", "format": "json"}, **log})
    return feed_spec(given, project_root="/p", warehouse="/w").logs[0]


def checked(*files, before=None, **log):
    known, structs, _ = fields_of_schema(SCHEMA)
    return check_fields(spec_of(**log), COLUMNS, SourceFields(known, structs, files), before)


def file(name, *fields, empty=()):
    return FileFields(name, frozenset(fields), frozenset(empty))


def first():
    return checked(file("d1.json", *ALL, "coupon"), file("d2.json", *ALL))


def test_a_renamed_field_is_refused_with_its_new_name():
    renamed = [name for name in ALL if name != "amount"]
    with refused(
        "file-field-missing",
        file="d3.json",
        field="amount",
        reason="which all landed files have",
        fix=containing("It has amt, which no landed file has: was amount renamed?"),
    ):
        checked(file("d3.json", *renamed, "amt"), before=first())


def test_a_csv_file_with_another_separator_is_told_so_and_not_that_a_column_was_renamed(tmp_path):
    columns = LogColumns((Column("user", "string"),), (Column("amount", "long"),), True, False)
    given = one_log(source={"path": "raw", "format": "csv"})
    spec = feed_spec(given, project_root="/p", warehouse="/w").logs[0]
    known = SourceFields(frozenset({"user", "t", "amount"}), frozenset(), (file("d2.csv", "user;t;amount"),))
    with refused(
        "file-field-missing",
        file="d2.csv",
        field="t",
        reason="which is landed",
        fix=containing("Its header is one column: does ';' separate its col"),
    ) as told:
        check_fields(spec, columns, known, LandedFields(("user", "t", "amount")))
    assert "optional" not in str(told.value)
    without_header = replace(known, files=(file("d2.csv", "ann", "17", "4"),))
    with refused(
        "file-field-missing",
        file="d2.csv",
        field="t",
        reason="which is landed",
        fix=containing("Its first line names no landed column: does the file lack its header"),
    ):
        check_fields(spec, columns, without_header, LandedFields(("user", "t", "amount")))


def test_a_csv_file_that_names_a_landed_column_twice_is_told_so(tmp_path):
    (tmp_path / "d2.csv").write_text("user,Amount,t,amount\nann,1,2,3\n")
    spec = spec_of(source={"path": "raw", "format": "csv"})
    columns = LogColumns((Column("user", "string"),), (Column("amount", "long"),), True, False)
    files = csv_fields(spec.source, [Piece(f"{tmp_path}/d2.csv")])
    known = SourceFields(frozenset({"user", "t", "amount"}), frozenset(), tuple(files), ignores_case=True)
    with refused(
        "file-field-missing",
        field="amount",
        fix=containing("Its header names amount twice"),
    ):
        check_fields(spec, columns, known, LandedFields(("user", "t", "amount")))


def test_a_missing_csv_column_is_named_as_the_files_write_it():
    spec = spec_of(source={"path": "raw", "format": "csv"}, key="Member", timestamp="Taken")
    columns = LogColumns((Column("Member", "string"),), (Column("LoanNo", "long"),), True, False)
    before = LandedFields(("LoanNo", "Member", "Taken"))

    def told_of(*header):
        files = (file("d2.csv", *header),)
        known = SourceFields(frozenset(before.always), frozenset(), files, ignores_case=True)
        with refused("file-field-missing", file="d2.csv", reason="which is landed") as told:
            check_fields(spec, columns, known, before)
        return str(told.value.facts["field"]), str(told.value.facts["fix"])

    field, fix = told_of("loanno", "MemberId", "taken")
    assert (field, "MemberId" in fix, "the log's key" in fix) == ("Member", True, True)
    field, fix = told_of("member", "Taken", "LoanNr")
    assert (field, "LoanNr" in fix) == ("LoanNo", True)
    assert re.findall(r"`(\w+): \[(\w+)\]`", fix) == [("optional", "LoanNo"), ("ignore", "LoanNr")]


def test_a_renamed_key_is_refused():
    with refused(
        "file-field-missing",
        file="d3.json",
        field="user",
        reason="which all landed files have",
        fix=containing("It has uid, which no landed file has: was user renamed? user is the log's key"),
    ):
        checked(file("d3.json", "uid", *ALL[1:]), before=first())


def test_optional_cannot_name_the_times_of_a_log_but_its_key():
    assert one_log(optional=["user"])
    with pytest.raises(ValidationError, match=r"t has the log's `timestamp`, without which no row can be landed"):
        one_log(optional=["t"])
    with pytest.raises(ValidationError, match=r"got has the log's `arrived_at`"):
        one_log(optional=["got"], arrived_at="got")
    with pytest.raises(ValidationError, match=r"meta has the log's `timestamp`"):
        one_log(optional=["meta"], columns={"t": "meta.at"})
    assert one_log(optional=["t"], invalid_timestamp="partition_time"), "its rows get the time of their partition"


def test_a_renamed_nested_field_is_refused():
    renamed = [name for name in ALL if name != "address.zip"]
    with refused(
        "file-field-missing",
        field="address.zip",
        reason="which all landed files have",
        fix=containing("It has address.plz"),
    ):
        checked(file("d3.json", *renamed, "address.plz"), before=first())


def test_an_unknown_field_is_refused_unless_it_is_ignored():
    new = file("d3.json", *ALL, "cuopon")
    with refused(
        "file-field-unknown",
        field="cuopon",
        reason="no landed file has",
        hint=" Is it coupon?",
        fix=containing("Set `ignore: [cuopon]`"),
    ):
        checked(new, before=first())
    assert checked(new, before=first(), ignore=["cuopon"]) == first()
    with refused("file-field-unknown", field="address.street"):
        checked(file("d3.json", *ALL, "address.street"), before=first())
    assert checked(file("d3.json", *ALL, "items", "items.sku"), before=first()), "items is not landed"
    assert checked(file("d3.json", *ALL, "extra", "extra.a"), before=first(), ignore=["extra"])


def test_a_field_that_some_landed_files_lack_may_be_missing():
    assert checked(file("d3.json", *ALL), before=first()) == first()
    assert "coupon" not in first().always


def test_a_field_declared_optional_may_be_missing_from_then_on():
    rest = [name for name in ALL if name != "amount"]
    after = checked(file("d3.json", *rest), before=first(), optional=["amount"])
    assert after == LandedFields(tuple(sorted(rest)))
    assert checked(file("d4.json", *rest), before=after) == after


def test_a_field_without_a_value_hides_those_nested_in_it():
    assert checked(file("d3.json", *ALL[:4], empty=["address"]), before=first()) == first()


def test_a_field_that_is_not_landed_may_go():
    assert checked(file("d3.json", *ALL), before=LandedFields((*first().always, "coupon"))) == first()


def test_names_below_a_map_are_data():
    assert checked(file("d3.json", *ALL, "scores", "scores.ann", "scores.bob"), before=first()) == first()


def test_each_file_of_a_first_landing_needs_the_columns_that_the_feed_names():
    with refused("file-field-missing", file="d2.json", field="user", reason="which the configuration names"):
        checked(file("d1.json", *ALL), file("d2.json", *ALL[1:]))
    with refused("file-field-missing", file="d2.json", field="amount"):
        checked(file("d1.json", *ALL), file("d2.json", "user", "t"), value=["amount"])


def test_a_declared_schema_selects_fields_so_that_others_may_come_and_go():
    log = {"source": {"path": "raw", "format": "json", "schema": "user STRING"}}
    known, structs, _ = fields_of_schema(SCHEMA)
    spec = feed_spec(one_log(**log), project_root="/p", warehouse="/w").logs[0]
    before = check_fields(spec, COLUMNS, SourceFields(known, structs, (file("d1.json", *ALL, "note"),)), None)
    assert before.others == ("note",)
    second = file("d2.json", *ALL, "address.street", "remark")
    after = check_fields(spec, COLUMNS, SourceFields(known, structs, (second,)), before)
    assert after == LandedFields(before.always, ("address.street", "note", "remark"))


def test_a_new_field_that_value_does_not_list_does_not_matter():
    log = {"value": ["amount"]}
    before = checked(file("d1.json", *ALL), **log)
    assert checked(file("d2.json", *ALL, "extra", "extra.a"), before=before, **log).others == ("extra",)


def test_a_new_field_that_may_be_the_new_name_of_a_landed_one_is_refused():
    log = {"value": ["amount"], "optional": ["amount"]}
    rest = [name for name in ALL if name != "amount"]
    before = checked(file("d1.json", *ALL), **log)
    with refused("file-field-renamed", file="d2.json", field="amt", missing="amount"):
        checked(file("d2.json", *rest, "amt"), before=before, **log)
    assert checked(file("d2.json", *rest, "amt"), before=before, **log, ignore=["amt"])
    seen = checked(file("d2.json", *ALL, "amt"), before=before, **log)
    assert checked(file("d3.json", *rest, "amt"), before=seen, **log)


def test_a_new_field_that_would_be_landed_is_refused_with_both_ways_on():
    known, structs, _ = fields_of_schema(SCHEMA)
    found = SourceFields(known, structs, (file("d3.json", *ALL, "note"),))
    with refused("file-field-unknown", file="d3.json", field="note") as caught:
        check_fields(spec_of(), COLUMNS, found, first(), landings=7)
    fix = str(caught.value.facts["fix"])
    assert re.findall(r"`(\w+): \[note\]`", fix) == ["ignore", "optional"]
    assert fixes(fix) == ["land FEED --new-generation --keep 7"]


def _pieces(folder):
    return [Piece(str(path)) for path in sorted(folder.iterdir())]


def write(tmp_path, name, **columns):
    path = tmp_path / "raw" / f"{name}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_a_parquet_file_with_a_renamed_column_is_refused_and_nothing_is_landed(tmp_path):
    tables = DeltaFeedTables(f"{tmp_path}/w")
    write(tmp_path, "a", user=["ann"], t=[1], x=[1])
    land_locally(one_log(), tables, tmp_path, T0)
    write(tmp_path, "b", user=["ann"], t=[2], y=[1])
    with refused(
        "file-field-missing",
        file="b.parquet",
        field="x",
        reason="which all landed files have",
        fix=containing("It has y"),
    ):
        land_locally(one_log(), tables, tmp_path, T0)
    write(tmp_path, "b", user=["ann"], t=[2], X=[1], y=[1])
    with refused("file-field-unknown", file="b.parquet", field="y"):
        land_locally(one_log(), tables, tmp_path, T0)
    assert len(log_rows(tables)) == 1


def test_nested_fields_of_parquet_files_are_compared_too(tmp_path):
    write(
        tmp_path, "a", user=["ann"], address=[[{"zip": 1}]], by=pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))
    )
    (found,) = parquet_fields(SourceSpec("parquet", str(tmp_path / "raw"), "raw", {}), _pieces(tmp_path / "raw"))
    assert (found.name, found.present) == ("a.parquet", {"user", "address", "address.zip", "by"})


def test_a_new_column_of_a_table_is_refused_unless_it_is_ignored(tmp_path):
    tables, path = DeltaFeedTables(f"{tmp_path}/w"), f"{tmp_path}/w/raw/events"
    write_deltalake(path, pa.table({"user": ["a"], "t": [1], "x": [1]}))
    feed = {"source": {"table": "raw.events"}}
    land_locally(one_log(**feed), tables, tmp_path, T0)
    write_deltalake(path, pa.table({"user": ["a"], "t": [1], "y": [1]}), mode="append", schema_mode="merge")
    with refused("file-field-unknown", topic="events", file="raw.events", field="y", reason="is not landed"):
        land_locally(one_log(**feed), tables, tmp_path, T0)
    write_deltalake(f"{tmp_path}/w/raw/events", pa.table({"user": ["a"], "t": [1], "x": [1], "y": [1]}), mode="append")
    assert land_locally(one_log(**feed, ignore=["y"]), tables, tmp_path, T0).landings == (2,)


def test_csv_without_a_header_takes_neither_ignore_nor_optional():
    source = {"path": "raw", "format": "csv"}
    assert one_log(source=source, ignore=["x"], optional=["y"])
    with pytest.raises(ValidationError, match="without a header"):
        one_log(source={**source, "options": {"header": "false"}}, ignore=["x"])
    with pytest.raises(ValidationError, match="is not a list of fields"):
        one_log(ignore="x")


def test_columns_of_a_header_without_a_name_or_with_that_of_another_get_numbers(tmp_path):
    write_text = (tmp_path / "a.csv").write_text
    source = SourceSpec("csv", str(tmp_path), "raw", {"skip_rows": 1})
    write_text('# no header\n\n"a, b", c ,,x,X\n')
    assert csv_columns(source, f"{tmp_path}/a.csv") == ("a, b", " c ", "_c2", "x3", "X4")
    (found,) = csv_fields(source, _pieces(tmp_path))
    assert (found.name, found.present) == ("a.csv", {"a, b", " c ", "_c2", "x3", "X4"})
    write_text("")
    assert csv_columns(source, f"{tmp_path}/a.csv") is None
    assert csv_fields(SourceSpec("csv", str(tmp_path), "raw", {"HEADER": "false"}), _pieces(tmp_path)) == []


def test_directories_above_the_source_name_no_columns(tmp_path):
    base = tmp_path / "env=prod" / "raw"
    (base / "year=2026").mkdir(parents=True)
    pq.write_table(pa.table({"user": ["ann"]}), base / "year=2026" / "a.parquet")
    pieces = [Piece(str(base / "year=2026" / "a.parquet"))]
    (found,) = parquet_fields(SourceSpec("parquet", str(base), "raw", {}), pieces, str(base))
    assert found.present == {"user", "year"}


def test_a_new_generation_that_keeps_landings_compares_the_rewritten_files(tmp_path):
    tables = DeltaFeedTables(f"{tmp_path}/w")
    feed = one_log(every="1h", arrived_at="got")
    for hour in range(2):
        write(tmp_path, f"h{hour}", user=["ann"], t=[T0], got=[T0 + hour * HOUR], x=[hour])
    land_locally(feed, tables, tmp_path, T0 + 2 * HOUR)
    write(tmp_path, "h1", user=["ann"], t=[T0], got=[T0 + HOUR], y=[1])
    with refused("file-field-missing", file="h1.parquet", field="x"):
        land_locally(feed, tables, tmp_path, T0 + 2 * HOUR, new_generation=True, keep=1)
