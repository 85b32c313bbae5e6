"""Cases that docs/guides/text-files.md did not decide at first: what a user would expect, which the reader gives."""

import bz2
import gzip
from decimal import Decimal

import pyarrow as pa

from tests.text.odd_case import (
    Case,
    Refused,
    csv_no_value,
    csv_refused,
    csv_rows,
    csv_value,
    inferred,
    json_no_value,
    json_refused,
    json_rows,
    json_value,
    not_configured,
    utc,
)

NX = "n BIGINT, x STRING"
MULTIPLE = {"lines": "multiple"}
ESCAPED = {"escape": "\\"}
EUROPE = {"thousands": ".", "decimal": ","}
TEN = utc("2026-01-05T10:00")
NO_HEADER = {"header": False}


def time(name, text, value):
    return csv_value(name, "TIMESTAMP", text, value)


def no_time(name, text):
    return csv_no_value(name, "TIMESTAMP", text)


def pattern(name, format_, text, value, kind="TIMESTAMP"):
    return csv_value(name, kind, text, value, options={"time_format": format_})


def no_pattern(name, format_):
    return not_configured(name, schema="n BIGINT, x TIMESTAMP", time_format=format_)


FILES = (
    csv_rows("the last line needs no end", "n,x\n1,a", NX, (1, "a")),
    json_rows("the last line of JSON needs no end", '{"n": 1}', "n BIGINT", (1,)),
    csv_refused(
        "a carriage return at the end of the file is alone",
        "n,x\n1,a\r",
        NX,
        2,
        differs="csv.reader takes a carriage return as the end of a line.",
    ),
    json_rows("a JSON file of no bytes has no rows", "", "n BIGINT"),
    json_rows(
        "empty lines of JSON are left out",
        '\n{"n": 1}\n\r\n{"n": 2}\n\n',
        "n BIGINT",
        (1,),
        (2,),
        differs="json.loads reads no empty line.",
    ),
    json_refused("a carriage return alone does not end a line of JSON", '{"n": 1}\r{"n": 2}\n', "n BIGINT", 1),
    csv_rows("empty lines before the header are left out", "\n\nn,x\n1,a\n", NX, (1, "a")),
    csv_rows("skip_rows counts empty lines", "Report\n\nn,x\n1,a\n", NX, (1, "a"), options={"skip_rows": 2}),
    csv_rows("skip_rows does not read quotes", 'Report "x\nn,x\n1,a\n', NX, (1, "a"), options={"skip_rows": 1}),
    csv_rows(
        "skip_rows without a header leaves lines out",
        "Report\n1,a\n",
        NX,
        (1, "a"),
        options={"skip_rows": 1, **NO_HEADER},
    ),
    csv_value(
        "a carriage return in a quoted value is kept with lines: multiple", "STRING", '"a\rb"', "a\rb", options=MULTIPLE
    ),
    csv_refused(
        "a carriage return in a quoted value is refused with lines: single",
        'n,x\n1,"a\rb"\n',
        NX,
        2,
        differs="csv.reader keeps it in the value.",
    ),
    csv_rows(
        "a mark of UTF-16LE is no character",
        b"\xff\xfe" + "n,x\n1,a\n".encode("utf-16-le"),
        NX,
        (1, "a"),
        options={"encoding": "UTF-16LE"},
    ),
    csv_refused(
        "UTF-16 without a mark is refused", "n,x\n1,a\n".encode("utf-16-le"), NX, None, options={"encoding": "UTF-16"}
    ),
    not_configured("an encoding of Python that is none of text is refused", encoding="base64"),
    csv_rows(
        "several streams of bz2 are one file",
        bz2.compress(b"n,x\n1,a\n") + bz2.compress(b"2,b\n"),
        NX,
        (1, "a"),
        (2, "b"),
        file="x.csv.bz2",
    ),
    csv_rows(
        "several frames of zst are one file",
        pa.compress(b"n,x\n1,a\n", codec="zstd", asbytes=True) + pa.compress(b"2,b\n", codec="zstd", asbytes=True),
        NX,
        (1, "a"),
        (2, "b"),
        file="x.csv.zst",
    ),
    csv_refused(
        "other bytes after the last member of gz are refused",
        gzip.compress(b"n,x\n1,a\n") + b"junk",
        NX,
        None,
        file="x.csv.gz",
    ),
    csv_rows("a suffix may be in capitals", gzip.compress(b"n,x\n1,a\n"), NX, (1, "a"), file="X.CSV.GZ"),
    csv_refused("a gz file of no bytes is cut off", b"", NX, None, file="x.csv.gz"),
)

COLUMNS = (
    csv_refused(
        "a column of the schema that the header lacks is refused",
        "n\n1\n",
        NX,
        None,
        differs="csv.reader knows no schema.",
    ),
    csv_rows(
        "a column that the schema lacks is left out",
        "n,z,x\n1,b,a\n",
        NX,
        (1, "a"),
        differs="csv.reader knows no schema.",
    ),
    json_rows("a field that the schema lacks is left out at the top, too", '{"n": 1, "z": 2}\n', "n BIGINT", (1,)),
    csv_rows(
        "a column may be called _line", "n,_line,_wrong\n1,7,b\n", "n BIGINT, _line BIGINT, _wrong STRING", (1, 7, "b")
    ),
    json_rows("a field may be called _line", '{"n": 1, "_line": 7}\n', "n BIGINT, _line BIGINT", (1, 7)),
    csv_rows("a header may mix capitals", "N,CamelCase\n1,a\n", "n BIGINT, camelcase STRING", (1, "a")),
    csv_rows("names that differ in capitals only are numbered", "x,X\na,b\n", "x0 STRING, X1 STRING", ("a", "b")),
    csv_refused(
        "a number that makes a third name is refused",
        "x,x,x1\na,b,c\n",
        "x0 STRING, x1 STRING",
        1,
        differs="csv.reader gives no names.",
    ),
    csv_rows("a quoted empty name is no name", 'n,""\n1,a\n', "n BIGINT, _c1 STRING", (1, "a")),
    csv_rows("blanks of a name belong to it", "n, x\n1,a\n", "n BIGINT, ` x` STRING", (1, "a")),
    not_configured("JSON in the schema of CSV is refused", schema="n BIGINT, x JSON"),
    not_configured("a list in the schema of CSV is refused", schema="n BIGINT, x ARRAY<STRING>"),
    not_configured("an option of CSV is refused for JSON", form="json", delimiter=";"),
)

QUOTES = (
    csv_value("an escape takes nothing from a letter", "STRING", '"a\\nb"', "anb", options=ESCAPED),
    csv_refused("an escape at the end of the file is refused", 'n,x\n1,"a\\', NX, 2, options=ESCAPED),
    csv_value(
        "a quote that is its own escape is doubled",
        "STRING",
        '"a ""b"""',
        'a "b"',
        options={"escape": '"'},
        differs="csv.reader takes the quote as an escape only.",
    ),
    not_configured("a delimiter that is the quote is refused", delimiter="'", quote="'"),
    not_configured("a delimiter that ends lines is refused", delimiter="\n"),
    csv_value("null: may be in quotes if quotes are none", "STRING", '""', None, options={"quote": "", "null": '""'}),
)

NUMBERS = (
    csv_value("a negative number may have leading zeros", "BIGINT", "-007", -7),
    csv_value("a DOUBLE may have leading zeros", "DOUBLE", "007", 7.0),
    csv_value("a DOUBLE may have leading zeros before a fraction", "DOUBLE", "00.5", 0.5),
    csv_value("a negative DOUBLE may begin with a point", "DOUBLE", "-.5", -0.5),
    csv_value("a negative zero of a whole number is a DOUBLE with its sign", "DOUBLE", "-0", -0.0),
    csv_no_value("a FLOAT is limited to 2^24 in whole numbers", "FLOAT", "16777217"),
    csv_no_value("a FLOAT beyond 32 bits is refused", "FLOAT", "1e39"),
    csv_value("leading zeros are no digits of a DECIMAL", "DECIMAL(5,2)", "000123.45", Decimal("123.45")),
    csv_value("leading zeros are accepted in groups", "DECIMAL(9,2)", '"001.234"', Decimal(1234), options=EUROPE),
    csv_no_value("groups after the point are refused", "DOUBLE", '"1,234.567.8"', options=EUROPE),
    csv_value("locale: de-DE groups", "DECIMAL(9,2)", '"1.234,56"', Decimal("1234.56"), options={"locale": "de-DE"}),
    csv_value(
        "locale: fr-FR groups by the narrow no-break space of Java",
        "DECIMAL(9,2)",
        '"1\u202f234,56"',
        Decimal("1234.56"),
        options={"locale": "fr-FR"},
    ),
    not_configured("one sign for fractions and groups is refused", decimal=",", thousands=","),
    csv_value("a truth value may begin with a capital", "BOOLEAN", "True", True),
    json_no_value("base64 without its padding is refused", "BINARY", '"AP8"'),
    json_no_value("base64 of addresses is refused", "BINARY", '"_-8="'),
)

TIMES = (
    time("a fraction of one digit is accepted", "2026-01-05T10:00:00.5", TEN + 500),
    time("a fraction of two digits is accepted", "2026-01-05T10:00:00.12", TEN + 120),
    no_time("a fraction of ten digits is refused", "2026-01-05T10:00:00.1234567890"),
    no_time("hour 24 is refused", "2026-01-05T24:00"),
    no_time("minute 60 is refused", "2026-01-05T10:60"),
    no_time("second 60 is refused", "2016-12-31T23:59:60Z"),
    no_time("UTC without a blank is refused", "2026-01-05T10:00UTC"),
    no_time("two blanks before an offset are refused", "2026-01-05T10:00  +01:00"),
    no_time("a date alone with Z is refused", "2026-01-05Z"),
    no_time("an offset beyond 18 hours is refused", "2026-01-05T10:00+19:00"),
    no_time("an offset of 60 minutes is refused", "2026-01-05T10:00+01:60"),
    time("an offset of -00:00 is UTC", "2026-01-05T10:00-00:00", TEN),
    csv_value(
        "a date alone begins after a gap at midnight",
        "TIMESTAMP",
        "2018-11-04",
        utc("2018-11-04T03:00"),
        zone="America/Sao_Paulo",
    ),
    csv_value(
        "a gap of half an hour moves by it",
        "TIMESTAMP",
        "2026-10-04T02:15",
        utc("2026-10-03T15:45"),
        zone="Australia/Lord_Howe",
    ),
    not_configured("a zone that does not exist is refused", zone="Europe/Nowhere"),
)

PATTERNS = (
    csv_rows(
        "a pattern with hours leaves DATE as it is",
        "d,t\n2026-01-05,05.01.2026 10:00\n",
        "d DATE, t TIMESTAMP",
        ("2026-01-05", TEN),
        options={"time_format": "dd.MM.yyyy HH:mm"},
    ),
    csv_no_value(
        "one S is one digit", "TIMESTAMP", "2026-01-05 10:00:00.12", options={"time_format": "yyyy-MM-dd HH:mm:ss.S"}
    ),
    csv_no_value(
        "minute 60 of a pattern is refused",
        "TIMESTAMP",
        "2026-01-05 10:60",
        options={"time_format": "yyyy-MM-dd HH:mm"},
    ),
    pattern("two apostrophes are one", "yyyy-MM-dd HH''mm", "2026-01-05 10'00", TEN),
    no_pattern("hours to 23 with AM are refused", "yyyy-MM-dd HH:mm a"),
    no_pattern("one letter beside another is refused", "yyyyMd HH:mm"),
    no_pattern("quotes without an end in a pattern are refused", "yyyy-MM-dd'T HH:mm"),
    csv_rows(
        "dateFormat and timestampFormat may stand together",
        "d,t\n05.01.2026,05.01.2026 10:00\n",
        "d DATE, t TIMESTAMP",
        ("2026-01-05", TEN),
        options={"dateFormat": "dd.MM.yyyy", "timestampFormat": "dd.MM.yyyy HH:mm"},
    ),
    not_configured("an option by both names is refused", sep=";", delimiter=";"),
)

OBJECTS = (
    json_refused(
        "an object over several lines is named by its first line",
        '{"n": 1}\n{\n"n": "a"\n}\n',
        "n BIGINT",
        2,
        "n",
        options=MULTIPLE,
    ),
    json_value("a number beyond all doubles in a JSON column has its text", "JSON", "1e400", "1e400"),
    json_value("a negative zero of JSON is a DOUBLE with its sign", "DOUBLE", "-0", -0.0),
    not_configured(
        "columns of JSON that differ in capitals only are refused", form="json", schema="x STRING, X STRING"
    ),
)

TYPES = (
    inferred(
        "NaN beside fractions is a DOUBLE",
        "n,x\n1,NaN\n2,1.5\n",
        {"n": "BIGINT", "x": "DOUBLE"},
        (1, float("nan")),
        (2, 1.5),
    ),
    inferred(
        "a field of nulls only is STRING",
        '{"n": 1, "x": null}\n',
        {"n": "BIGINT", "x": "STRING"},
        (1, None),
        form="json",
    ),
    inferred(
        "a list without elements is of STRING",
        '{"n": 1, "x": []}\n',
        {"n": "BIGINT", "x": "ARRAY<STRING>"},
        (1, []),
        form="json",
    ),
    inferred(
        "an object without fields beside one with fields has them",
        '{"x": {}}\n{"x": {"a": 1}}\n',
        {"x": "STRUCT<a: BIGINT>"},
        ({"a": None},),
        ({"a": 1},),
        form="json",
    ),
    Case(
        "a whole number beyond 64 bits is refused",
        "json",
        {"x.json": b'{"x": 9223372036854775808}\n'},
        refused=Refused("x.json", 1, "x"),
    ),
    Case(
        "fractions beside 2^53 and one are refused",
        "json",
        {"x.json": b'{"x": 1.5}\n{"x": 9007199254740993}\n'},
        refused=Refused("x.json", 2, "x"),
    ),
    inferred(
        "a pattern in a map leaves other columns as they are",
        "x,y\n05.01.2026,2026-01-05\n",
        {"x": "DATE", "y": "DATE"},
        ("2026-01-05", "2026-01-05"),
        options={"time_format": {"x": "dd.MM.yyyy"}},
    ),
)

DECIDED_LATER = (*FILES, *COLUMNS, *QUOTES, *NUMBERS, *TIMES, *PATTERNS, *OBJECTS, *TYPES)
