"""Reports about CSV files: quotes, lines, headers, dialects, numbers and times."""

from __future__ import annotations

import gzip
from decimal import Decimal

from tests.refusals import Refusal, containing, refused
from tests.reported.report import Landing, Report, csv, github
from tests.text.odd_case import utc

NX, NXY = "n BIGINT, x STRING", "n BIGINT, x STRING, y STRING"
SEVERAL = {"options": {"lines": "multiple"}}


def at_line(line: int, file: str = "a.csv") -> Refusal:
    """Expect that the row of this line cannot be read."""
    return refused("text-row-invalid", where=f"{file}, line {line}")


def in_header(line: int) -> Refusal:
    """Expect that the header cannot be read. `unreadable: skip` does not help, so it is not proposed."""
    return refused("text-row-invalid", where=f"a.csv, line {line}", fix="Nothing was landed. Fix the file")


def no_value(line: int, file: str = "a.csv") -> Refusal:
    """Expect that the value in this line is refused."""
    return refused("source-value-invalid", reason=containing(f"{file}, line {line}, "))


def typed(kind: str, **options):
    """Return a source with a column `x` of this type."""
    return {"schema": f"n BIGINT, x {kind}", **({"options": options} if options else {})}


STRAY = 'n,x,y\n1,a,val1\n2,abc",val2\n3,b,val3\n'
TWO_LINES = 'n,x\n1,"a\nb"\n2,c\n'
BIG = 1582218195625938945

REPORTS: tuple[Report, ...] = (
    github(
        "pola-rs/polars",
        21519,
        "A quote inside a value made all later rows disappear, if another column was selected.",
        'The line is refused, whichever columns are landed; `quote: ""` lands the quote as it stands.',
        csv("the stray quote is refused with its line", STRAY, refused=at_line(3)),
        csv("also if the column is not landed", STRAY, refused=at_line(3), log={"value": ["y"]}),
        csv(
            "the other rows are landed if such rows are skipped",
            STRAY,
            (1, "a", "val1"),
            (3, "b", "val3"),
            columns=("n", "x", "y"),
            quarantined=1,
            log={"unreadable": "skip"},
        ),
        csv(
            "without quotes it is a character",
            STRAY,
            (1, "val1"),
            (2, "val2"),
            (3, "val3"),
            columns=("n", "y"),
            log={"value": ["y"]},
            source={"options": {"quote": ""}},
        ),
    ),
    github(
        "pola-rs/polars",
        19078,
        "A value over two lines was cut into two rows where the file was divided.",
        "`lines: multiple` keeps it whole; otherwise it is refused.",
        csv("one row over two lines", TWO_LINES, (1, "a\nb"), (2, "c"), source=SEVERAL),
        csv(
            "the same, compressed",
            gzip.compress(TWO_LINES.encode()),
            (1, "a\nb"),
            (2, "c"),
            file="a.csv.gz",
            source=SEVERAL,
        ),
        csv(
            "with the ends of lines of Windows",
            TWO_LINES.replace("\n", "\r\n"),
            (1, "a\r\nb"),
            (2, "c"),
            source=SEVERAL,
        ),
        csv("refused where a row is a line", TWO_LINES, refused=at_line(2)),
    ),
    github(
        "pola-rs/polars",
        19432,
        "Text after a closing quote was an error that proposed null values and longer samples.",
        "The line is refused with the forms that are accepted; without quotes it is landed.",
        csv("refused", 'n,x\n1,"test test" test\n2,b\n', refused=at_line(2)),
        csv(
            "landed without quotes",
            'n,x\n1,"test test" test\n2,b\n',
            (1, '"test test" test'),
            (2, "b"),
            source={"options": {"quote": ""}},
        ),
        csv("as it should be written", 'n,x\n1,"""test test"" test"\n', (1, '"test test" test')),
    ),
    github(
        "pola-rs/polars",
        8402,
        "A header with a line break inside a name could be neither written nor read.",
        "`lines: multiple` reads it, and `columns:` gives the column a name.",
        csv("read", 'n,"x\ny"\n1,a\n', (1, "a"), source=SEVERAL, log={"columns": {"x": "x\ny"}}),
        csv(
            "with the ends of lines of Windows",
            'n,"x\r\ny"\r\n1,a\r\n',
            (1, "a"),
            source=SEVERAL,
            log={"columns": {"x": "x\r\ny"}},
        ),
        csv("refused where a row is a line", 'n,"x\ny"\n1,a\n', refused=in_header(1)),
        csv("also with the policy for lines", 'n,"x\ny"\n1,a\n', refused=in_header(1), log={"unreadable": "skip"}),
        csv(
            "without a name it is refused",
            'n,"x\ny"\n1,a\n',
            refused=refused("column-name-unusable", quoted='"x\\ny"'),
            source=SEVERAL,
        ),
        csv("a no-break space in a name", "n,x\xa0y\n1,a\n", (1, "a"), log={"columns": {"x": "x\xa0y"}}),
        csv(
            "such a column is left out",
            'n,"x\ny",z\n1,a,b\n',
            (1, "b"),
            columns=("n", "z"),
            source=SEVERAL,
            log={"ignore": ["x\ny"]},
        ),
    ),
    github(
        "pola-rs/polars",
        19535,
        "Lines to skip were counted by line breaks, also those within quotes.",
        "`skip_rows` counts lines, quotes or not.",
        csv("two lines", 'Report of "two\nlines"\nn,x\n1,a\n', (1, "a"), source={"options": {"skip_rows": 2}}),
        csv(
            "the header would be a line of the report",
            'Report of "two\nlines"\nn,x\n1,a\n',
            refused=in_header(2),
            source=typed("STRING", skip_rows=1),
        ),
    ),
    github(
        "duckdb/duckdb",
        25827,
        "A file of one column with a semicolon in its last value had no rows: the lines before it counted as a preamble.",
        "The separator is configured, never guessed; a row of another width is refused.",
        csv("a semicolon is text", "n,x\n1,v0\n2,a;b\n", (1, "v0"), (2, "a;b")),
        csv("the width grows", "n,x\n1,a\n2,b\n3,c,d\n4,e,f\n", refused=at_line(4)),
        csv("the width shrinks", "n,x,y\n1,a,b\n2,c\n", refused=at_line(3)),
        csv(
            "another separator is configured",
            "n;x\n1;v0\n2;a,b\n",
            (1, "v0"),
            (2, "a,b"),
            source={"options": {"delimiter": ";"}},
        ),
    ),
    github(
        "duckdb/duckdb",
        9343,
        "Rows of several widths made a file one column, or five, without a header.",
        "The first row of another width is refused; empty lines count.",
        csv("too many values", "\n\nn,x,y\n1,2,3,4\n1,2,3\n", refused=at_line(4)),
        csv("after an empty line", "n,x,y\n1,2,3\n\n2,2,3,4,5\n", refused=at_line(4)),
    ),
    github(
        "duckdb/duckdb",
        14117,
        "A missing quote made the whole file one column.",
        "The line is refused.",
        csv(
            "the quote is missing at the end",
            'n,x,y\n2,"Alice,Doe",30\n1,"John, Doe,25\n3,"Bob",35\n',
            refused=at_line(3),
        ),
        csv("in the last line", 'n,x\n1,a\n4,"45\n', refused=at_line(3)),
        csv("where rows may have several lines", 'n,x\n1,a\n4,"45\n', refused=at_line(3), source=SEVERAL),
    ),
    github(
        "duckdb/duckdb",
        6011,
        "With `header=false`, the types were guessed without the first line, which then did not fit them.",
        "The types are those of all lines.",
        csv(
            "the header is a row",
            "category_id|last_update\n1|2006-02-15 04:46:27\n",
            ("1", utc("2006-02-15T04:46:27")),
            columns=("n", "timestamp"),
            quarantined=1,
            source={"options": {"header": False, "delimiter": "|"}},
            log={"columns": {"n": "_c0", "t": "_c1"}, "timestamp": "t", "units": None, "invalid_timestamp": "skip"},
        ),
        csv(
            "with declared types it is refused",
            "0|x\n1|5\n",
            refused=no_value(1),
            source=typed("BIGINT", header=False, delimiter="|"),
        ),
    ),
    github(
        "duckdb/duckdb",
        17705,
        "`2022/01/27 11:04:57 PM` was read as a time in the zone PM.",
        "It is text, unless `time_format` declares it.",
        csv("text", "n,x\n1,2022/01/27 11:04:57 PM\n", (1, "2022/01/27 11:04:57 PM")),
        csv(
            "a declared time",
            "n,x\n1,2022/01/27 11:04:57 PM\n2,2022/01/27 12:00:00 AM\n3,2022/01/27 12:30:00 PM\n",
            (1, utc("2022-01-27T23:04:57")),
            (2, utc("2022-01-27T00:00")),
            (3, utc("2022-01-27T12:30")),
            source=typed("TIMESTAMP", time_format="yyyy/MM/dd hh:mm:ss a"),
        ),
        csv(
            "hours after noon without AM or PM",
            "n,x\n1,2022/01/27 23:04:57 PM\n",
            refused=no_value(2),
            source=typed("TIMESTAMP", time_format="yyyy/MM/dd hh:mm:ss a"),
        ),
    ),
    github(
        "duckdb/duckdb",
        24820,
        "A time without seconds, `2021-08-06T13:18Z`, became null.",
        "It is a form of TIMESTAMP, inferred or declared.",
        csv(
            "inferred",
            "n,x\n1,2021-08-06T13:18Z\n2,2021-08-06T13:18:21Z\n",
            (1, utc("2021-08-06T13:18")),
            (2, utc("2021-08-06T13:18:21")),
        ),
        csv(
            "with a pattern, in another zone",
            "n,x\n1,2021-08-06T13:18Z\n",
            (1, utc("2021-08-06T13:18")),
            source=typed("TIMESTAMP", time_format="yyyy-MM-dd'T'HH:mmXXX"),
            feed={"zone": "America/Denver"},
        ),
        csv(
            "a pattern that takes the Z for a letter reads the zone's time",
            "n,x\n1,2021-08-06T13:18Z\n",
            (1, utc("2021-08-06T19:18")),
            source=typed("TIMESTAMP", time_format="yyyy-MM-dd'T'HH:mm'Z'"),
            feed={"zone": "America/Denver"},
        ),
    ),
    github(
        "duckdb/duckdb",
        18180,
        "Times in UTC were shown an hour later from the end of March on.",
        "They are landed as they are, rounded down to milliseconds, whatever the feed's zone.",
        csv(
            "before and after the clocks go forward",
            "n,x\n1,2025-01-01T23:00:00.020643808Z\n2,2025-04-01T00:00:00.069866160Z\n",
            (1, utc("2025-01-01T23:00:00.020")),
            (2, utc("2025-04-01T00:00:00.069")),
            feed={"zone": "Europe/London"},
        ),
        csv(
            "times without a zone are the zone's",
            "n,x\n1,2025-01-01T23:00:00\n2,2025-04-01T00:00:00\n",
            (1, utc("2025-01-01T23:00")),
            (2, utc("2025-03-31T23:00")),
            feed={"zone": "Europe/London"},
        ),
    ),
    github(
        "duckdb/duckdb",
        18767,
        "`2025-01-01T08:00:00+08` was midnight as a local time.",
        "An offset always counts: it is midnight in UTC, in any zone.",
        csv(
            "offsets",
            "n,x\n1,2025-01-01T08:00:00+08\n2,2025-01-01 05:30:00 +0530\n3,2024-12-31T21:30:00-02:30\n",
            *((n, utc("2025-01-01")) for n in (1, 2, 3)),
        ),
        csv(
            "in the zone of the offset",
            "n,x\n1,2025-01-01T08:00:00+08\n",
            (1, utc("2025-01-01")),
            feed={"zone": "Asia/Shanghai"},
        ),
        csv(
            "with and without an offset in one column",
            "n,x\n1,2025-01-01T08:00:00+08\n2,2025-01-01T08:00:00\n",
            (1, utc("2025-01-01")),
            (2, utc("2025-01-01")),
            feed={"zone": "Asia/Shanghai"},
        ),
    ),
    github(
        "pandas-dev/pandas",
        56135,
        "A missing value made a column of whole numbers lose digits: 1582218195625938945 became ...688.",
        "Whole numbers are exact, with missing values or not.",
        csv("inferred", f"n,x\n1,123\n2,\n3,{BIG}\n", (1, 123), (2, None), (3, BIG)),
        csv("declared", f"n,x\n1,123\n2,\n3,{BIG}\n", (1, 123), (2, None), (3, BIG), source=typed("BIGINT")),
        csv(
            "beside a fraction it is refused", f"n,x\n1,1.5\n2,\n3,{BIG}\n", refused=no_value(4), source=typed("DOUBLE")
        ),
        csv(
            "beside a fraction it is text",
            f"n,x\n1,1.5\n2,\n3,{BIG}\n",
            (1, "1.5"),
            (2, None),
            (3, str(BIG)),
            warned=("numbers-as-text",),
        ),
    ),
    github(
        "pandas-dev/pandas",
        52505,
        "Ids of 19 digits were rounded in a column that is empty in other rows.",
        "They are exact; as a key, too.",
        csv(
            "two ids that differ in the last digit",
            "n,x\n1,\n2,2023552585717263358\n3,2023552585717263359\n4,2023552585717263360\n",
            (1, None),
            (2, 2023552585717263358),
            (3, 2023552585717263359),
            (4, 2023552585717263360),
        ),
        csv(
            "as a key",
            "n,x\n2,2023552585717263358\n3,2023552585717263359\n",
            (2023552585717263358, 2),
            (2023552585717263359, 3),
            log={"key": "x", "value": ["n"]},
            columns=("x", "n"),
        ),
    ),
    github(
        "pandas-dev/pandas",
        30320,
        "A number of 20 digits beside a word overflowed.",
        "It is text; as DECIMAL it is exact, and as BIGINT refused.",
        csv("beside a word", "n,x\n1,31900441201190696999\n2,Text\n", (1, "31900441201190696999"), (2, "Text")),
        csv("alone", "n,x\n1,31900441201190696999\n", (1, "31900441201190696999"), warned=("numbers-as-text",)),
        csv(
            "as a DECIMAL",
            "n,x\n1,31900441201190696999\n",
            (1, Decimal(31900441201190696999)),
            source=typed("DECIMAL(38,0)"),
        ),
        csv("as a BIGINT", "n,x\n1,31900441201190696999\n", refused=no_value(2), source=typed("BIGINT")),
    ),
    github(
        "apache/arrow",
        46013,
        "A column with whole numbers in the first file did not take the fractions of the next.",
        "In one landing it is DOUBLE. Landed as BIGINT, it keeps its type, and the line is refused.",
        Landing(
            "in one landing", "csv", ({"a.csv": "n,x\n1,15\n", "b.csv": "n,x\n2,23.4\n"},), rows=((1, 15.0), (2, 23.4))
        ),
        Landing(
            "in a later landing",
            "csv",
            ({"a.csv": "n,x\n1,15\n"}, {"b.csv": "n,x\n2,24\n3,23.4\n"}),
            rows=((1, 15),),
            refused=no_value(3, "b.csv"),
        ),
        Landing(
            "declared from the beginning",
            "csv",
            ({"a.csv": "n,x\n1,15\n"}, {"b.csv": "n,x\n3,23.4\n"}),
            rows=((1, 15.0), (3, 23.4)),
            source=typed("DOUBLE"),
        ),
    ),
    github(
        "dlt-hub/dlt",
        1807,
        "A number in one run and a word in the next made another column, which formats wrote in different ways.",
        "A log keeps the type of each column: the word is refused in each format, and a declared text takes both.",
        Landing(
            "csv",
            "csv",
            ({"a.csv": "n,x\n1,1\n"}, {"b.csv": "n,x\n2,foo\n"}),
            rows=((1, 1),),
            refused=no_value(2, "b.csv"),
        ),
        Landing(
            "json",
            "json",
            ({"a.json": '{"n": 1, "x": 1}\n'}, {"b.json": '{"n": 2, "x": "foo"}\n'}),
            rows=((1, 1),),
            refused=no_value(1, "b.json"),
        ),
        Landing(
            "csv as text",
            "csv",
            ({"a.csv": "n,x\n1,1\n"}, {"b.csv": "n,x\n2,foo\n"}),
            rows=((1, "1"), (2, "foo")),
            source=typed("STRING"),
        ),
        Landing(
            "json as JSON",
            "json",
            ({"a.json": '{"n": 1, "x": 1}\n'}, {"b.json": '{"n": 2, "x": "foo"}\n'}),
            rows=((1, "1"), (2, '"foo"')),
            source=typed("JSON"),
        ),
    ),
)
