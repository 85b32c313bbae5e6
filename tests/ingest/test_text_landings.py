"""Text files through `land`: rows, refusals with their location, the quarantine, and the options of a source. Without Spark."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from rewindow.config.feed import FeedConfig
from rewindow.contracts.ingest import FAIL, SKIP, TimestampPolicy
from rewindow.contracts.row_faults import UNREADABLE
from rewindow.control.ingest.land import land
from rewindow.engine.worker.timestamps import InvalidTimestampError, judge
from rewindow.errors import DataError
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.table_rows import read_rows
from tests.ingest.land_by_arrow import arrow_at
from tests.ingest.local_engine import HOUR, T0, landings, log_rows, one_log
from tests.ingest.text_files import Files
from tests.refusals import containing, refused

SCHEMA = "user STRING, t BIGINT, x "
BAD = {
    "BIGINT": ["abc", "1.5", "1.0", "1e3", " 7", "9223372036854775808"],
    "DOUBLE": ["7D", "1.5f", "0x1p3", "1e400", "Inf", "9007199254740993"],
    "DECIMAL(10,2)": ["1.505", "123456789", "NaN", "1e400", "1,50"],
    "BOOLEAN": ["yes", "t", "1"],
    "DATE": ["2026-1-5", "2026-01-05T10:00:00Z", "2026-02-30", "2026", "05.01.2026"],
    "TIMESTAMP": ["now", "2026", "10:00", "2026-01-05T24:00", "1772613530"],
}


def feed_at(tmp_path, text, kind="csv", **source):
    feed = Files(tmp_path, arrow_at(tmp_path), kind, **source)
    feed.write(f"d1.{kind}", text)
    return feed


def landed(feed, **log):
    feed.land(**log)
    return [(row["user"], row["x"]) for row in sorted(log_rows(feed.tables), key=lambda row: row["timestamp"])]


def quarantined(feed):
    return [row["reason"] for row in read_rows(f"{feed.root}/w/rewindow/quarantine").to_pylist()]


def in_csv(value):
    return f'"{value}"' if "," in value else value


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_the_key_can_be_a_value_too_under_another_name(tmp_path, kind):
    text = {"csv": "user,t,x\nann,1,5\n", "json": '{"user": "ann", "t": 1, "x": 5}\n'}[kind]
    feed = feed_at(tmp_path, text, kind)
    feed.land(columns={"owner": "user"})
    assert [(row["user"], row["owner"], row["x"]) for row in log_rows(feed.tables)] == [("ann", "ann", 5)]


def test_names_that_columns_exchanges_are_not_copied(tmp_path):
    feed = feed_at(tmp_path, "user,t,x\nann,1,bob\n")
    feed.land(columns={"x": "user", "user": "x"})
    assert [(row["user"], row["x"]) for row in log_rows(feed.tables)] == [("bob", "ann")]


@pytest.mark.parametrize("kind", BAD)
def test_bad_values_in_csv_are_named_or_quarantined_with_their_lines_and_columns(tmp_path, kind):
    rows = "".join(f"bob,{number},{in_csv(value)}\n" for number, value in enumerate(BAD[kind]))
    feed = feed_at(tmp_path, f"user,t,x\nann,1,\n\n{rows}", schema=SCHEMA + kind)
    locations = [
        f"d1.csv, line {line}, column x: '{value}' is not a valid {kind}"
        for line, value in enumerate(BAD[kind], start=4)
    ]
    with pytest.raises(DataError) as caught:
        feed.land()
    assert locations[0] in str(caught.value)
    assert "accepted: " in str(caught.value)
    assert landings(feed.tables) == []
    assert feed.land(unreadable="skip").quarantined == len(locations)
    reasons = "\n".join(quarantined(feed))
    assert [location for location in locations if location not in reasons] == []
    assert [row["user"] for row in log_rows(feed.tables)] == ["ann"]


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("csv", "user,t,x\nann,1,a\0b\n", "NUL"),
        ("csv", 'user,t,"x\nann,1,a\n', "lines: multiple"),
        ("csv", "user,t,x,x,x2\nann,1,a,b,c\n", "numbered"),
        ("json", '{"user": "ann", "t": 1, "x": "a\0"}\n', "NUL"),
    ],
)
def test_the_policy_for_single_rows_is_not_proposed_for_what_it_does_not_skip(tmp_path, kind, text, reason):
    feed = feed_at(tmp_path, text, kind)
    for policy in ({}, {"unreadable": "skip"}):
        with refused("text-row-invalid", reason=containing(reason), fix="Nothing was landed. Fix the file"):
            feed.land(**policy)


def test_an_object_over_several_lines_names_its_option(tmp_path):
    feed = feed_at(tmp_path, '{\n  "user": "ann",\n  "t": 1,\n  "x": "a"\n}\n', "json")
    with refused("text-row-invalid", where="d1.json, line 1", reason=containing("lines: multiple")):
        feed.land()
    feed.options["options"] = {"lines": "multiple"}
    assert landed(feed) == [("ann", "a")]


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        ("BIGINT", '"abc"', "x"),
        ("BIGINT", "1.5", "x"),
        ("BIGINT", "2.0", "x"),
        ("DECIMAL(10,2)", "1.505", "x"),
        ("BOOLEAN", '"yes"', "x"),
        ("STRING", "5", "x"),
        ("DATE", '"2026-01-05T10:00:00Z"', "x"),
        ("TIMESTAMP", "1767607200", "x"),
        ("ARRAY<STRUCT<y: DOUBLE>>", '[{"y": 1}, {"y": "z"}]', "x[1].y"),
        ("ARRAY<STRUCT<y: DOUBLE>>", "[3]", "x[0]"),
        ("STRUCT<d: DATE, ts: ARRAY<TIMESTAMP>>", '{"d": "2026"}', "x.d"),
        ("STRUCT<d: DATE, ts: ARRAY<TIMESTAMP>>", '{"ts": ["10:00"]}', "x.ts[0]"),
        ("MAP<STRING, STRUCT<d: DATE>>", '{"a": {"d": "2026-01-05T10:00:00Z"}}', "x.a.d"),
    ],
)
def test_a_bad_value_in_json_is_named_or_quarantined_with_its_line_and_field(tmp_path, kind, value, path):
    lines = f'{{"user": "ann", "t": 1, "x": null}}\n\n{{"user": "bob", "t": 2, "x": {value}}}\n'
    feed = feed_at(tmp_path, lines, "json", schema=SCHEMA + kind)
    with pytest.raises(DataError) as caught:
        feed.land()
    assert f"d1.json, line 3, field {path}: " in str(caught.value)
    assert feed.land(unreadable="skip").quarantined == 1
    (reason,) = quarantined(feed)
    assert f"d1.json, line 3, field {path}: " in reason
    assert [row["user"] for row in log_rows(feed.tables)] == ["ann"]


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("bob,2", "csv"),
        ("bob,2,3,4", "csv"),
        ('bob,2,"a"b', "csv"),
        ('bob,2,a"b', "csv"),
        ('bob,2, "a"', "csv"),
        ('{"user": bob}', "json"),
        ('{"user": "bob"', "json"),
        ('{"user": "bob", "t": 2, "x": "a"} {"user": "cid", "t": 3}', "json"),
        ('{"user": "bob", "t": 2, "x": "\\ud83d"}', "json"),
        ("42", "json"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_or_quarantined_with_its_line(tmp_path, row, kind):
    first = {"csv": "user,t,x\nann,1,a\n\n", "json": '{"user": "ann", "t": 1, "x": "a"}\n\n\n'}[kind]
    feed = feed_at(tmp_path, first + row + "\n", kind, schema=SCHEMA + "STRING")
    with pytest.raises(DataError, match=rf"d1\.{kind}, line 4: .*`unreadable: skip`"):
        feed.land()
    report = feed.land(unreadable="skip")
    assert (report.rows, report.quarantined) == (1, 1)
    (reason,) = quarantined(feed)
    assert f"d1.{kind}, line 4: " in reason
    assert row in reason


@pytest.mark.parametrize(("encoding", "byte"), [("windows-1252", b"\x81"), ("US-ASCII", b"\xfc"), ("utf-8", b"\xfc")])
@pytest.mark.parametrize("unreadable", [FAIL, SKIP])
def test_bytes_that_are_no_characters_of_the_encoding_are_refused(tmp_path, encoding, byte, unreadable):
    feed = feed_at(tmp_path, "", options={"encoding": encoding})
    (tmp_path / "raw" / "d1.csv").write_bytes(b"user,t,x\nann,1,a\nbob,2," + byte + b"\n")
    with refused("text-row-invalid", where="d1.csv, line 3"):
        feed.land(unreadable=unreadable)


@pytest.mark.parametrize("encoding", ["windows-1252", "ISO-8859-15", "utf-16", "utf-16-le", "cp500"])
def test_a_file_has_the_encoding_that_its_source_names(tmp_path, encoding):
    value = "5 \u20ac" if encoding != "cp500" else "5 \u00fc"
    feed = feed_at(tmp_path, "", options={"encoding": encoding})
    (tmp_path / "raw" / "d1.csv").write_bytes(f"user,t,x\nann,1,{value}\n".encode(encoding))
    assert landed(feed) == [("ann", value)]


def test_json_has_the_encoding_that_its_source_names(tmp_path):
    feed = feed_at(tmp_path, "", "json", options={"encoding": "ISO-8859-1"})
    text = '{"user": "J\u00fcrgen", "t": 1, "x": 1}\r\n{"user": "ann", "t": 2, "x": 1}\r\n'
    (tmp_path / "raw" / "d1.json").write_bytes(text.encode("latin-1"))
    assert landed(feed) == [("J\u00fcrgen", 1), ("ann", 1)]


def test_quotes_are_read_as_other_programs_write_them(tmp_path):
    names = [
        "plain",
        'the "best" one',
        'the "best", so far',
        '"quoted" first',
        '"',
        'all "quoted"',
        "C:\\temp\\",
        "a, b",
    ]
    feed = feed_at(tmp_path, "")
    with (tmp_path / "raw" / "d1.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("user", "t", "x"), *((name, at, name) for at, name in enumerate(names))])
    assert landed(feed) == [(name, name) for name in names]


@pytest.mark.parametrize(
    ("options", "text", "value"),
    [
        ({"lines": "multiple"}, 'user,t,x\nann,1,"call me\nback"\n', "call me\nback"),
        ({"multiLine": "true"}, 'user,t,x\nann,1,"call me\nback"\n', "call me\nback"),
        ({"quote": ""}, 'user,t,x\nann,1,"call\n', '"call'),
        ({"quote": "'"}, "user,t,x\nann,1,'it''s \"so'\n", "it's \"so"),
        ({"escape": "\\", "delimiter": ";"}, 'user;t;x\nann;1;"say \\"so\\";"\n', 'say "so";'),
        ({"delimiter": "\t"}, "user\tt\tx\nann\t1\ta|b\n", "a|b"),
        ({"skip_rows": 2}, '# an "open\n\nuser,t,x\nann,1,y\n', "y"),
        ({"null": "NA"}, "user,t,x\nann,1,NA\n", None),
        ({"InferSchema": "false", "Encoding": "UTF-8"}, "user,t,x\nann,1,01\n", "01"),
    ],
)
def test_the_options_of_the_source_are_applied(tmp_path, options, text, value):
    feed = feed_at(tmp_path, text, options=options, schema=SCHEMA + "STRING")
    assert landed(feed) == [("ann", value)]


@pytest.mark.parametrize(
    "text", ['ann,1,"call me\nback"\n', 'ann,"1\n",x\n', 'ann,1,"call\nbob,2,me"\n', 'ann,1,"call\r\nme"\r\n']
)
def test_a_value_that_does_not_end_in_its_line_is_refused_with_the_option_that_reads_it(tmp_path, text):
    feed = feed_at(tmp_path, f"user,t,x\n{text}", schema=SCHEMA + "STRING")
    with refused(
        "text-row-invalid",
        where="d1.csv, line 2",
        reason="its quoted value does not end in its line, which needs `lines: multiple`",
    ):
        feed.land()


@pytest.mark.parametrize("option", ["comment", "ignoreLeadingWhiteSpace", "mode", "allowComments", "pathGlobFilter"])
def test_other_options_of_spark_are_refused_by_name_with_the_way_out(tmp_path, option):
    with pytest.raises(ValueError, match=rf"{option} is not an option of csv files.*Parquet or Delta"):
        feed_at(tmp_path, "user,t,x\n", options={option: "x"}).land()


@pytest.mark.parametrize(
    ("options", "amounts"),
    [
        ({"decimal": ",", "thousands": ".", "delimiter": ";"}, ["1.234,50", "-4,5", "1.234.567", "7"]),
        ({"locale": "de-DE", "sep": ";"}, ["1.234,50", "-4,5", "1.234.567", "7"]),
        ({"thousands": ",", "sep": ";"}, ["1,234.50", "-4.5", "1,234,567", "7"]),
    ],
)
def test_decimals_are_read_as_the_source_says_and_other_groups_are_refused(tmp_path, options, amounts):
    schema = SCHEMA + "DECIMAL(12,2)"
    rows = "".join(f"u;{number};{amount}\n" for number, amount in enumerate(amounts))
    feed = feed_at(tmp_path, f"user;t;x\n{rows}", options=options, schema=schema)
    assert [x for _, x in landed(feed)] == [Decimal(text) for text in ("1234.50", "-4.50", "1234567.00", "7.00")]
    for wrong in ("1.5,00", "1,5,0", "12.34.567", "4 5"):
        feed.write("d2.csv", f"user;t;x\nann;9;{wrong}\n")
        with refused("source-value-invalid", reason=containing("d2.csv, line 2, column x: ")):
            feed.land()


@pytest.mark.parametrize(
    ("pattern", "texts", "zone"),
    [
        ("dd.MM.yyyy HH:mm:ss", ["05.01.2026 08:15:00", "06.01.2026 00:05:00", "31.02.2026 12:00:00"], "Europe/Berlin"),
        ("dd/MM/yyyy HH:mm XXX", ["05/01/2026 08:15 +01:00", "06/01/2026 00:05 +01:00", "soon"], "America/New_York"),
    ],
)
def test_a_bad_time_in_a_stated_pattern_is_quarantined_or_named(tmp_path, pattern, texts, zone):
    rows = "".join(f"u{number};{text}\n" for number, text in enumerate(texts))
    source = {"path": "raw", "format": "csv", "options": {"delimiter": ";", "time_format": pattern}}
    feed = feed_at(tmp_path, "user;t\n" + rows)
    log = {"source": source, "key": "user", "timestamp": "t", "invalid_timestamp": "skip"}
    base = {"feed": "activity", "partitions": 1, "zone": zone, "landing": {"max_ahead": "none"}}
    config = FeedConfig.model_validate({**base, "logs": {"events": log}})
    assert land(config, feed.tables, feed.engine, now_ms=2 * T0).quarantined == 1
    times = {row["user"]: datetime.fromtimestamp(row["timestamp"] / 1000, UTC) for row in log_rows(feed.tables)}
    assert times == {"u0": datetime(2026, 1, 5, 7, 15, tzinfo=UTC), "u1": datetime(2026, 1, 5, 23, 5, tzinfo=UTC)}
    (reason,) = quarantined(feed)
    assert texts[-1] in reason
    strict = FeedConfig.model_validate({**base, "logs": {"events": {**log, "invalid_timestamp": "fail"}}})
    with pytest.raises(DataError) as caught:
        land(strict, DeltaFeedTables(f"{tmp_path}/w2"), feed.engine, now_ms=2 * T0)
    for fact in ("d1.csv, line 4", texts[-1], pattern):
        assert fact in str(caught.value)


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("every", [None, "1h"])
def test_a_declared_time_in_another_form_names_file_line_and_column(tmp_path, kind, every):
    rows = ["2026-01-05T08:15:00Z", "05.01.2026 08:16"]
    texts = {
        "csv": "user,t\n" + "".join(f"ann,{text}\n" for text in rows),
        "json": "".join(f'{{"user": "ann", "t": "{text}"}}\n' for text in rows),
    }
    feed = feed_at(tmp_path, texts[kind], kind)
    source = {"path": "raw", "format": kind, "schema": "user STRING, t TIMESTAMP"}
    line = {"csv": 2, "json": 1}[kind]
    for options, bad, at in (({}, rows[1], line + 1), ({"time_format": "dd.MM.yyyy HH:mm"}, rows[0], line)):
        given = one_log(source={**source, "options": options}, every=every, arrived_at="t")
        with pytest.raises(DataError) as caught:
            land(given, DeltaFeedTables(f"{tmp_path}/w1"), feed.engine, now_ms=1_767_700_000_000)
        for fact in (f"d1.{kind}, line {at}", bad, "in t", "time_format"):
            assert fact in str(caught.value)


@pytest.mark.parametrize("role", ["timestamp", "arrived_at"])
def test_a_time_of_day_is_no_time_of_a_record(tmp_path, role):
    feed = feed_at(tmp_path, "user,t,x\nann,1,2026-01-05T10:00:00Z\nbob,2,08:20\n")
    with refused("rows-without-valid-time", rows=containing(f"d1.csv, line 3: the {role} '08:20'")):
        feed.land(**{role: "x"})


@pytest.mark.parametrize("number", [T0 // 1000, T0 * 1000, T0 * 1_000_000])
@pytest.mark.parametrize("role", ["timestamp", "arrived_at"])
def test_a_number_in_another_unit_is_no_time_and_its_unit_is_named(tmp_path, number, role):
    feed = feed_at(tmp_path, f"user,t,x\nann,{T0},{T0}\nbob,{T0},{number}\n")
    with pytest.raises(DataError, match=rf"{number} is in .*`units:"):
        feed.land(**{role: "x"})


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_what_is_no_value_of_another_column_is_no_matter_of_invalid_timestamp(tmp_path, kind):
    text = {
        "csv": "user,t,x\nann,1,1\nbob,never,2\ncid,3,many\n",
        "json": '{"user": "ann", "t": 1, "x": 1}\n{"user": "bob", "t": "never", "x": 2}\n{"user": "cid", "t": 3, "x": "many"}\n',
    }[kind]
    feed = feed_at(tmp_path, text, kind, schema=SCHEMA + "BIGINT")
    with pytest.raises(DataError, match=r"line [34], \w+ x: .*many"):
        feed.land(invalid_timestamp="skip")
    with pytest.raises(DataError, match=r"line [23]: .*never.*`invalid_timestamp: skip`"):
        feed.land(unreadable="skip")
    assert feed.land(invalid_timestamp="skip", unreadable="skip").quarantined == 2
    assert [row["user"] for row in log_rows(feed.tables)] == ["ann"]
    never, many = sorted(quarantined(feed), key=lambda reason: "many" in reason)
    assert "never" in never
    assert f"d1.{kind}, line {4 if kind == 'csv' else 3}" in many


@pytest.mark.parametrize("invalid", [FAIL, SKIP])
@pytest.mark.parametrize("unreadable", [FAIL, SKIP])
def test_unreadable_rows_have_a_policy_of_their_own(invalid, unreadable):
    policy = TimestampPolicy(invalid, None, unreadable)
    rows = pa.array([1, 2, None], pa.int64())
    for faults, fails in (([None, UNREADABLE, None], unreadable), ([None, None, "other"], invalid)):
        times = rows if faults[2] else pa.array([1, 2, 3], pa.int64())
        if fails == FAIL:
            with pytest.raises(InvalidTimestampError):
                judge(times, 10, faults, policy, -1)
        else:
            assert int(np.sum(judge(times, 10, faults, policy, -1).keep)) == 2


def test_codes_stay_texts_without_a_schema(tmp_path):
    codes = ["7D", "30F", "007", "1E5", "0x1p3", "5"]
    feed = feed_at(tmp_path, "user,t,x\n" + "".join(f"u{at},{at},{code}\n" for at, code in enumerate(codes)))
    assert [x for _, x in landed(feed)] == codes


def test_a_frozen_type_of_numbers_refuses_a_new_text_and_a_frozen_text_keeps_numbers(tmp_path):
    feed = feed_at(tmp_path, "user,t,x,y\nann,1,5,a\n")
    assert landed(feed) == [("ann", 5)]
    feed.write("d2.csv", "user,t,x,y\nbob,2,n/a,7\n")
    with refused("source-value-invalid", reason=containing("d2.csv, line 2, column x: 'n/a' is not a valid BIGINT")):
        feed.land()
    feed.write("d2.csv", "user,t,x,y\nbob,2,6,7\n")
    feed.land()
    assert sorted(row["y"] for row in log_rows(feed.tables)) == ["7", "a"]


def test_a_csv_file_may_have_many_columns(tmp_path):
    names = ["user", "t", "x", *(f"c{n}" for n in range(3_000))]
    rows = [names, ["ann", "1", "5", *["1"] * 3_000]]
    feed = feed_at(tmp_path, "".join(",".join(row) + "\n" for row in rows))
    assert landed(feed, value=["x"]) == [("ann", 5)]


def test_a_very_long_value_is_landed(tmp_path):
    feed = feed_at(tmp_path, f'user,t,x\nann,1,"{"x" * 3_000_000}""y"\n')
    assert landed(feed) == [("ann", "x" * 3_000_000 + '"y')]


def test_logs_of_one_feed_may_read_the_same_files_with_other_options(tmp_path):
    feed = feed_at(tmp_path, "# note\nuser,t,x\nann,1,NA\n")
    source = {"path": "raw", "format": "csv"}
    logs = {
        "one": {"source": {**source, "options": {"skip_rows": 1, "null": "NA"}}, "key": "user", "timestamp": "t"},
        "two": {"source": {**source, "options": {"skip_rows": 1}}, "key": "user", "timestamp": "t"},
        "three": {
            "source": {
                **source,
                "schema": "a STRING, t BIGINT, c STRING",
                "options": {"skip_rows": 2, "header": "false"},
            },
            "key": "a",
            "timestamp": "t",
        },
    }
    config = FeedConfig.model_validate(
        {"feed": "activity", "partitions": 1, "landing": {"max_ahead": "none"}, "logs": logs}
    )
    assert land(config, feed.tables, feed.engine, now_ms=T0).rows == 3
    rows = {topic: log_rows(feed.tables, topic) for topic in logs}
    assert [rows["one"][0]["x"], rows["two"][0]["x"], rows["three"][0]["c"]] == [None, "NA", "NA"]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_directory_that_is_a_column_in_other_capitals_is_refused(tmp_path, kind):
    feed = Files(tmp_path, arrow_at(tmp_path), kind)
    (tmp_path / "raw" / "USER=zed").mkdir()
    feed.write(f"USER=zed/d1.{kind}", {"csv": "user,t\nann,1\n", "json": '{"user": "ann", "t": 1}\n'}[kind])
    with refused("directory-columns-mixed", columns="USER"):
        feed.land()


def test_columns_are_found_by_the_names_of_each_header_in_any_order_and_capitals(tmp_path):
    feed = feed_at(tmp_path, "\ufeffuser,t,x\nann,1,5\n")
    feed.write("d2.csv", "X,USER,note,T\n6,bob,n,2\n")
    assert landed(feed, value=["x"]) == [("ann", 5), ("bob", 6)]


def test_columns_without_a_header_are_found_by_position(tmp_path):
    source = {"options": {"header": "false"}}
    feed = feed_at(tmp_path, "ann,1,5\n", **source, schema=SCHEMA + "BIGINT")
    assert landed(feed) == [("ann", 5)]
    feed.write("d2.csv", "bob,2\n")
    with refused("text-row-invalid", where="d2.csv, line 1"):
        feed.land()


def test_columns_without_a_header_or_a_schema_are_numbered(tmp_path):
    feed = feed_at(tmp_path, "ann,1,5\n", options={"header": "false"})
    assert landed(feed, columns={"user": "_c0", "t": "_c1", "x": "_c2"}) == [("ann", 5)]


def test_a_name_that_occurs_twice_is_numbered_and_one_that_is_empty_too(tmp_path):
    feed = feed_at(tmp_path, "x,user,X,t,\n1,ann,2,3,4\n")
    feed.land(value=["first", "second", "last"], columns={"first": "x0", "second": "X2", "last": "_c4"})
    (row,) = log_rows(feed.tables)
    assert (row["first"], row["second"], row["last"]) == (1, 2, 4)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_columns_of_directories_are_landed_and_win(tmp_path, kind):
    feed = Files(tmp_path, arrow_at(tmp_path), kind)
    for number, (day, shop) in enumerate([("2026-01-05", "north"), ("2026-01-06", "__HIVE_DEFAULT_PARTITION__")]):
        folder = f"day={day}/x=7/shop={shop}"
        (tmp_path / "raw" / folder).mkdir(parents=True)
        lines = {
            "csv": f"user,t,x\nu{number},{number},5\n",
            "json": f'{{"user": "u{number}", "t": {number}, "x": 5}}\n',
        }
        feed.write(f"{folder}/d1.{kind}", lines[kind])
    assert landed(feed) == [("u0", 7), ("u1", 7)]
    rows = sorted(log_rows(feed.tables), key=lambda row: row["timestamp"])
    assert [(row["day"], row["shop"]) for row in rows] == [("2026-01-05", "north"), ("2026-01-06", None)]


def day_before(record, partition_time):
    """Use the day before the value as the timestamp."""
    return record.value.x - 86_400_000


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_an_extractor_gets_the_values_of_a_row(tmp_path, kind):
    text = {"csv": f"user,x\nann,{T0}\n", "json": f'{{"user": "ann", "x": {T0}}}\n'}[kind]
    feed = feed_at(tmp_path, text, kind)
    feed.land(timestamp=f"{__name__}:day_before", value=["x"], key="user")
    assert [row["timestamp"] for row in log_rows(feed.tables)] == [T0 - 86_400_000]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_rows_of_a_file_land_with_the_intervals_in_which_they_arrived(tmp_path, kind):
    arrivals = [T0, T0 + 2 * HOUR, T0 + HOUR]
    lines = {
        "csv": "user,t,x\n" + "".join(f"ann,{number},{at}\n" for number, at in enumerate(arrivals)),
        "json": "".join(f'{{"user": "ann", "t": {number}, "x": {at}}}\n' for number, at in enumerate(arrivals)),
    }
    feed = feed_at(tmp_path, lines[kind], kind)
    found = []
    for hour in range(1, 5):
        feed.land(T0 + hour * HOUR, arrived_at="x", every="1h")
        found.append(sorted(row["timestamp"] for row in log_rows(feed.tables)))
    assert found == [[0], [0, 2], [0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_the_order_of_rows_does_not_depend_on_the_files(tmp_path, kind):
    rows = [(f"u{number % 3}", number // 4, number % 5) for number in range(24)]
    found = []
    for name, files in (("one", [rows]), ("more", [rows[1::2], rows[::2][::-1]])):
        (tmp_path / name).mkdir()
        feed = Files(tmp_path / name, arrow_at(tmp_path / name), kind)
        for number, part in enumerate(files):
            csv_lines = "user,t,x\n" + "".join(f"{user},{t},{x}\n" for user, t, x in part)
            json_lines = "".join(f'{{"x": {x}, "t": {t}, "user": "{user}"}}\n' for user, t, x in part)
            feed.write(f"d{number}.{kind}", csv_lines if kind == "csv" else json_lines)
        feed.land(order=["x"])
        found.append(log_rows(feed.tables))
    names = ("partition", "offset", "user", "timestamp", "x")
    one, more = ([tuple(row[name] for name in names) for row in landed_rows] for landed_rows in found)
    assert len(one) == len(rows)
    assert one == more
