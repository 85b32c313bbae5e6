"""What Spark by default reads otherwise from CSV files than it was written: doubled quotes, and times without a date."""

from __future__ import annotations

import csv

import pytest

from rewindow.control.ingest.land import land
from rewindow.errors import DataError
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import T0, log_rows, one_log

pytestmark = pytest.mark.spark
NAMES = [
    "plain",
    'the "best" one',
    'the "best", so far',
    '"quoted" first',
    '"',
    'all "quoted"',
    "C:\\temp\\",
    "a\\b",
    "a, b",
]


def write(folder, rows, header=("user", "t", "x")):
    (folder / "raw").mkdir(exist_ok=True)
    with (folder / "raw" / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def landed(engine_at, folder, *, options=None, schema=None, **log):
    source = {"format": "csv", "path": "raw", "options": options or {"inferSchema": "true"}}
    source |= {"schema": schema} if schema else {}
    tables = DeltaFeedTables(str(folder / "w"))
    land(one_log(source=source, **log), tables, engine_at(folder), now_ms=T0)
    return [(row["user"], row["x"]) for row in sorted(log_rows(tables), key=lambda row: row["timestamp"])]


def test_quotes_are_read_as_other_programs_write_them(engine_at, tmp_path):
    write(tmp_path, [(name, at, name) for at, name in enumerate(NAMES)])
    assert landed(engine_at, tmp_path) == [(name, name) for name in NAMES]


def test_quotes_behind_a_backslash_are_refused_until_the_source_says_so(engine_at, tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text('user,t,x\nann,1,"the \\"best\\" one"\n')
    with pytest.raises(DataError, match=r"a\.csv, line 2: a backslash is before a quote .* `options: \{escape: "):
        landed(engine_at, tmp_path)
    options = {"inferSchema": "true", "escape": "\\"}
    assert landed(engine_at, tmp_path, options=options) == [("ann", 'the "best" one')]


def test_the_case_of_an_option_does_not_matter(engine_at, tmp_path):
    write(tmp_path, [("ann", "2026-01-31T10:00:00Z", "01")])
    options = {"inferschema": "false", "encoding": "UTF-8"}
    assert landed(engine_at, tmp_path, options=options) == [("ann", "01")]


def test_times_of_day_are_texts(engine_at, tmp_path):
    """Spark takes them as times of the day on which it reads them: the same file would land other rows tomorrow."""
    write(tmp_path, [("ann", 1, "10:00"), ("bob", 2, "7:5:1")])
    assert landed(engine_at, tmp_path) == [("ann", "10:00"), ("bob", "7:5:1")]


@pytest.mark.parametrize("kind", ["inferred", "declared"])
def test_a_time_of_day_among_times_is_refused(engine_at, tmp_path, kind):
    times = ["2026-01-05T10:00:00Z", "2026-01-05 10:00", "T10:4"]
    write(tmp_path, [("ann", number, time) for number, time in enumerate(times)])
    if kind == "declared":
        with pytest.raises(DataError, match=r"a\.csv, line 4, column x: 'T10:4' is a time without a date"):
            landed(engine_at, tmp_path, schema="user STRING, t BIGINT, x TIMESTAMP", options={"header": "true"})
    else:
        assert [x for _, x in landed(engine_at, tmp_path)] == times


@pytest.mark.parametrize("role", ["timestamp", "arrived_at"])
def test_a_time_of_day_is_no_time_of_a_record(engine_at, tmp_path, role):
    write(tmp_path, [("ann", 1, "2026-01-05T10:00:00Z"), ("bob", 2, "08:20")])
    with pytest.raises(DataError, match=r"a\.csv, line 3.*'08:20'"):
        landed(engine_at, tmp_path, **{role: "x"})


CODES = [("7D", 1, "a"), ("30F", 2, "b"), ("7f", 3, "c"), ("0x1p3", 4, "d"), ("5", 5, "e")]


def test_codes_that_are_numbers_for_java_alone_are_texts(engine_at, tmp_path):
    write(tmp_path, CODES)
    assert landed(engine_at, tmp_path) == [(code, name) for code, _, name in CODES]


@pytest.mark.parametrize("code", ["7D", "1.5f", "0x1p3"])
def test_a_code_is_no_value_of_a_column_of_numbers(engine_at, tmp_path, code):
    write(tmp_path, [("ann", 1, code)])
    with pytest.raises(
        DataError, match=rf"a\.csv, line 2, column x: '{code}' is not a number. If such values are codes, declare"
    ):
        landed(engine_at, tmp_path, schema="user STRING, t BIGINT, x DOUBLE", options={"header": "true"})


def test_numbers_are_read_in_all_usual_forms(engine_at, tmp_path):
    texts = ["1", "-1.5", "+.5", "5.", " 1e3", "1E-3 ", "", "NaN"]
    write(tmp_path, [(f"u{at}", at, text) for at, text in enumerate(texts)])
    found = landed(engine_at, tmp_path, schema="user STRING, t BIGINT, x DOUBLE", options={"header": "true"})
    assert [str(value) for _, value in found] == ["1.0", "-1.5", "0.5", "5.0", "1000.0", "0.001", "None", "nan"]


@pytest.mark.parametrize("encoding", ["windows-1252", "ISO-8859-15", "utf-16"])
def test_a_file_has_the_encoding_that_its_source_names(engine_at, tmp_path, encoding):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_bytes("user,t,x\nann,1,5 €\n".encode(encoding))
    options = {"encoding": encoding, **({"multiLine": "true"} if encoding == "utf-16" else {})}
    assert landed(engine_at, tmp_path, options=options) == [("ann", "5 €")]


DAYS = "user STRING, t BIGINT, x DATE"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("2026-01-05T10:00:00Z", "is a time, and this column has dates"),
        ("2026-01-05 10:00 PM", "is not a date"),
        ("2026", ""),
        ("2026-01", ""),
        ("2026-02-30", "is no day of the calendar"),
    ],
)
def test_a_date_is_not_the_beginning_of_another_text(engine_at, tmp_path, value, said):
    write(tmp_path, [("ann", 1, "2026-01-05"), ("bob", 2, value)])
    with pytest.raises(DataError, match=rf"a\.csv.*{value}.*{said}" if said else r"a\.csv"):
        landed(engine_at, tmp_path, schema=DAYS, options={"header": "true"})
    assert landed(engine_at, tmp_path, schema=DAYS, options={"header": "true"}, unreadable="skip") == [
        ("ann", "2026-01-05")
    ]


def test_dates_are_read_with_short_parts_and_blanks_or_in_a_stated_form(engine_at, tmp_path):
    write(tmp_path, [("ann", 1, "2026-1-5"), ("bob", 2, " 2026-01-05 "), ("cyd", 3, "")])
    rows = landed(engine_at, tmp_path, schema=DAYS, options={"header": "true"})
    assert [day for _, day in rows] == ["2026-01-05", "2026-01-05", None]
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", [("ann", 1, "05.01.2026")])
    options = {"header": "true", "dateFormat": "dd.MM.yyyy"}
    assert landed(engine_at, tmp_path / "other", schema=DAYS, options=options) == [("ann", "2026-01-05")]


def test_a_year_is_no_time_and_a_number_close_to_zero_is_not_zero(engine_at, tmp_path):
    write(tmp_path, [("ann", 1, "2026")])
    with pytest.raises(DataError, match="2026"):
        landed(engine_at, tmp_path, schema="user STRING, t BIGINT, x TIMESTAMP", options={"header": "true"})
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", [("ann", 1, "0e-400"), ("bob", 2, "5e-324")])
    schema, options = "user STRING, t BIGINT, x DECIMAL(12,2)", {"header": "true"}
    rows = landed(engine_at, tmp_path / "other", schema=schema, options=options, unreadable="skip")
    assert [(user, str(value)) for user, value in rows] == [("ann", "0.00")]


def test_dates_in_json_are_whole_dates_too(engine_at, tmp_path):
    (tmp_path / "raw").mkdir()
    lines = [f'{{"user": "ann", "t": 1, "x": "{day}"}}' for day in ("2026-01-05", "2026-01-05T10:00:00Z")]
    (tmp_path / "raw" / "a.json").write_text("\n".join(lines))
    source = {"format": "json", "path": "raw", "schema": DAYS}
    tables = DeltaFeedTables(str(tmp_path / "w"))
    with pytest.raises(DataError, match=r"a\.json, line 2, field x.*is a time, and this column has dates"):
        land(one_log(source=source), tables, engine_at(tmp_path), now_ms=T0)
    assert land(one_log(source=source, unreadable="skip"), tables, engine_at(tmp_path), now_ms=T0).quarantined == 1


@pytest.mark.parametrize(("sep", "between"), [("||", "||"), ("\\t", "\t")])
def test_a_separator_may_have_several_characters(engine_at, tmp_path, sep, between):
    (tmp_path / "raw").mkdir()
    lines = [between.join(row) for row in (("user", "t", "x"), ("ann", "1", "a|b"))]
    (tmp_path / "raw" / "a.csv").write_text("\n".join(lines) + "\n")
    assert landed(engine_at, tmp_path, options={"inferSchema": "true", "sep": sep}) == [("ann", "a|b")]


@pytest.mark.parametrize(("encoding", "byte"), [("windows-1252", b"\x81"), ("US-ASCII", b"\xfc"), ("utf-8", b"\xfc")])
def test_bytes_that_are_no_characters_of_the_stated_encoding_are_refused(engine_at, tmp_path, encoding, byte):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_bytes(b"user,t,x\nann,1,a\nbob,2," + byte + b"\n")
    with pytest.raises(DataError, match=rf"a\.csv, line 3: it is not {encoding.upper()}"):
        landed(engine_at, tmp_path, options={"encoding": encoding})


def test_a_source_that_says_utf_8_may_have_the_character_for_lost_ones(engine_at, tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("user,t,x\nann,1,\ufffd\n")
    with pytest.raises(DataError, match=r"has the character U\+FFFD"):
        landed(engine_at, tmp_path)
    assert landed(engine_at, tmp_path, options={"encoding": "UTF-8"}) == [("ann", "\ufffd")]


def test_a_csv_file_may_have_more_columns_than_spark_reads_by_default(engine_at, tmp_path):
    (tmp_path / "raw").mkdir()
    names = ["user", "t", "x", *(f"c{n}" for n in range(21_000))]
    rows = [names, ["ann", "1", "5", *["1"] * 21_000]]
    (tmp_path / "raw" / "a.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    assert landed(engine_at, tmp_path, value=["x"]) == [("ann", 5)]
