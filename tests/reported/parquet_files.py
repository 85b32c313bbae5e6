"""Reports about Parquet files: types, units of time, nulls, and columns in the names of directories."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.refusals import refused
from tests.reported.report import Files, Landing, Report, github, parquet
from tests.text.odd_case import utc

TEN = datetime(2020, 9, 13, 12, 26, 40, tzinfo=UTC)
TEN_MS = utc("2020-09-13T12:26:40")


def two(kind: Any, *values: Any) -> dict[str, pa.Array]:
    """Return the columns `n`, which counts from 1, and `x` of an Arrow type."""
    return {"n": pa.array(range(1, len(values) + 1), pa.int64()), "x": pa.array(values, kind)}


def counted(*values: Any) -> tuple[tuple[Any, ...], ...]:
    """Return rows `(n, x)`."""
    return tuple(enumerate(values, start=1))


def written(columns: dict[str, Any], **options: Any) -> Files:
    """Return a function that writes one file with options of pyarrow's writer."""

    def write(root: Path) -> None:
        pq.write_table(pa.table(columns), root / "raw" / "a.parquet", **options)

    return write


def with_options(name: str, columns: dict[str, Any], *rows: tuple[Any, ...], **options: Any) -> Landing:
    """Return the landing of one file that is written with options of pyarrow's writer."""
    return Landing(name, "parquet", (written(columns, **options),), rows=rows)


def directories(name: str, form: str, *values: str, rows: tuple[tuple[Any, ...], ...], **more: Any) -> Landing:
    """Return the landing of a file in each directory `x=VALUE`, whose rows are numbered by directory."""
    files: dict[str, str | pa.Table] = {}
    for number, value in enumerate(values, start=1):
        table = pa.table({"n": [number], "y": ["a"]})
        text = f"n,y\n{number},a\n" if form == "csv" else f'{{"n": {number}, "y": "a"}}\n'
        files[f"x={value}/f.{form}"] = table if form == "parquet" else text
    return Landing(name, form, (files,), rows=rows, **more)


def typed_directory(kind: str) -> dict[str, str]:
    """Return a source that declares the column of the directories."""
    return {"schema": f"n BIGINT, y STRING, x {kind}"}


SECONDS = pa.timestamp("s")
REPORTS: tuple[Report, ...] = (
    github(
        "pola-rs/polars",
        2543,
        "Times in seconds from pyarrow were read as milliseconds: the year 52671.",
        "Each unit of time is landed as milliseconds.",
        *(
            parquet(f"times in {unit}", two(pa.timestamp(unit, tz="UTC"), TEN, None), *counted(TEN_MS, None))
            for unit in ("s", "ms", "us", "ns")
        ),
        parquet("without a zone", two(SECONDS, datetime.fromisoformat("2020-09-13T12:26:40")), (1, TEN_MS)),
        with_options(
            "in the old version of the format",
            two(SECONDS, datetime.fromisoformat("2020-09-13T12:26:40")),
            (1, TEN_MS),
            version="1.0",
        ),
    ),
    github(
        "pola-rs/polars",
        28609,
        "A column whose schema says seconds, stored in milliseconds, had no rows under a condition on it.",
        "It is landed, also as event time and arrival.",
        parquet(
            "as the event time",
            {"n": pa.array([1, 2]), "t": pa.array([TEN, TEN.replace(hour=13)], pa.timestamp("s", tz="UTC"))},
            (1, TEN_MS),
            (2, TEN_MS + 3_600_000),
            columns=("n", "timestamp"),
            log={"timestamp": "t", "units": None},
        ),
        parquet(
            "as the arrival, in intervals",
            {"n": pa.array([1, 2]), "t": pa.array([TEN, TEN.replace(hour=13)], pa.timestamp("s", tz="UTC"))},
            (1, TEN_MS),
            (2, TEN_MS + 3_600_000),
            columns=("n", "arrived_at"),
            log={"arrived_at": "t"},
            feed={"landing": {"every": "1h"}},
        ),
    ),
    github(
        "pola-rs/polars",
        20863,
        "Times of Spark (INT96) were nanoseconds, whatever the schema said.",
        "They are milliseconds, before 1970 and after 2262, too.",
        Landing(
            "INT96, after 1970 and before",
            "parquet",
            (
                written(
                    two(
                        pa.timestamp("us"),
                        datetime.fromisoformat("2023-11-30T01:02:03.004999"),
                        datetime.fromisoformat("1969-12-31T23:59:59.999500"),
                    ),
                    use_deprecated_int96_timestamps=True,
                ),
            ),
            rows=counted(utc("2023-11-30T01:02:03.004"), -1),
            needs_spark=True,
        ),
        parquet(
            "a time after 2262",
            two(pa.timestamp("us"), datetime.fromisoformat("9999-12-31T23:59:59")),
            (1, utc("9999-12-31T23:59:59")),
        ),
    ),
    Report(
        "texera #8512",
        "https://github.com/apache/texera/pull/8512",
        "A decimal that is stored as a whole number lost its point: 12.34 became 1234.",
        "It is that decimal, in each way of storing it.",
        (
            with_options(
                "DECIMAL(9,2) in 32 bits",
                two(pa.decimal128(9, 2), Decimal("12.34"), None),
                *counted(Decimal("12.34"), None),
                store_decimal_as_integer=True,
            ),
            with_options(
                "DECIMAL(18,4) in 64 bits",
                two(pa.decimal128(18, 4), Decimal("-0.0001")),
                (1, Decimal("-0.0001")),
                store_decimal_as_integer=True,
            ),
            parquet(
                "DECIMAL(38,18) in bytes",
                two(pa.decimal128(38, 18), Decimal("1.000000000000000001")),
                (1, Decimal("1.000000000000000001")),
            ),
            parquet(
                "DECIMAL with more digits than are landed",
                two(pa.decimal256(50, 2), Decimal("12.34")),
                refused=refused("parquet-type-unreadable", column="x"),
            ),
        ),
    ),
    github(
        "pandas-dev/pandas",
        31896,
        "Numbers of 32 bits without a sign came back in other rows, if one was missing.",
        "They are landed as they are.",
        parquet("INT32 with a null", two(pa.int32(), None, 1, -2, 2**31 - 1), *counted(None, 1, -2, 2**31 - 1)),
        with_options(
            "UINT32 in the old version of the format",
            two(pa.uint32(), None, 1, 2, 2**32 - 1),
            *counted(None, 1, 2, 2**32 - 1),
            version="1.0",
        ),
    ),
    github(
        "apache/arrow-rs",
        7040,
        "Numbers of 8 and 16 bits without a sign in the upper half of their range became null.",
        "They are landed as they are; numbers above 2^63 keep all digits.",
        parquet("with a sign", two(pa.int8(), -128, None, 127), *counted(-128, None, 127)),
        parquet(
            "all lengths, beside nulls",
            {
                "n": pa.array([1, 2, 3]),
                "a": pa.array([255, None, 128], pa.uint8()),
                "b": pa.array([65_535, None, 40_000], pa.uint16()),
                "c": pa.array([4_294_967_295, None, 3_000_000_000], pa.uint32()),
                "d": pa.array([2**64 - 1, None, 2**63], pa.uint64()),
            },
            (1, 255, 65_535, 4_294_967_295, Decimal(2**64 - 1)),
            (2, None, None, None, None),
            (3, 128, 40_000, 3_000_000_000, Decimal(2**63)),
            columns=("n", "a", "b", "c", "d"),
            needs_spark=True,
        ),
    ),
    github(
        "apache/arrow",
        12416,
        "A number of 19 digits in a partitioned data set was rounded, because others are null.",
        "It is exact.",
        Landing(
            "in directories",
            "parquet",
            (
                {
                    "year=2015/a.parquet": pa.table(two(pa.int64(), 7753285015841556620, None)),
                    "year=2020/a.parquet": pa.table({"n": [3], "x": pa.array([None], pa.int64())}),
                },
            ),
            columns=("n", "year", "x"),
            rows=((1, 2015, 7753285015841556620), (2, 2015, None), (3, 2020, None)),
        ),
        parquet(
            "in one file",
            two(pa.int64(), None, 7753285015841556620, 2**63 - 1),
            *counted(None, 7753285015841556620, 2**63 - 1),
        ),
    ),
    github(
        "apache/arrow",
        39660,
        "Directories `test=04` and `test=01` became the numbers 4 and 1.",
        "Above text files, codes with zeros at the beginning are texts, and `schema:` may declare another type. Above Parquet "
        "files they are numbers, as in Spark; the page of feeds says so.",
        directories("of csv files", "csv", "04", "11", rows=((1, "04"), (2, "11")), warned=("numbers-as-text",)),
        directories(
            "of csv files, declared", "csv", "04", "11", rows=((1, 4), (2, 11)), source=typed_directory("BIGINT")
        ),
        directories("only numbers", "csv", "4", "11", rows=((1, 4), (2, 11))),
        directories(
            "only numbers, declared as texts",
            "csv",
            "4",
            "11",
            rows=((1, "4"), (2, "11")),
            source=typed_directory("STRING"),
        ),
        directories(
            "not of the declared type",
            "csv",
            "4",
            "abc",
            rows=(),
            source=typed_directory("BIGINT"),
            refused=refused("source-value-invalid"),
        ),
        directories("declared as a list", "json", "4", rows=((1, 4),), source=typed_directory("ARRAY<BIGINT>")),
        directories("of parquet files", "parquet", "04", "11", rows=((1, 4), (2, 11))),
    ),
    github(
        "pola-rs/polars",
        13892,
        "Directories `float=1` and `float=2.5` were a number and a text.",
        "Above Parquet files both are numbers, above text files both are texts unless they are declared.",
        directories("parquet", "parquet", "1", "2.5", rows=((1, 1.0), (2, 2.5)), needs_spark=True),
        directories("csv", "csv", "1", "2.5", rows=((1, "1"), (2, "2.5"))),
        directories("csv, declared", "csv", "1", "2.5", rows=((1, 1.0), (2, 2.5)), source=typed_directory("DOUBLE")),
    ),
    github(
        "apache/arrow",
        47592,
        "A directory with a day was taken for a number, or for a dictionary.",
        "It is a day, as text like each DATE; other texts beside it make all of them texts.",
        directories("days", "parquet", "2025-09-17", "2025-09-18", rows=((1, "2025-09-17"), (2, "2025-09-18"))),
        directories(
            "a day and no value",
            "parquet",
            "2025-09-17",
            "__HIVE_DEFAULT_PARTITION__",
            rows=((1, "2025-09-17"), (2, None)),
        ),
        directories(
            "a day and a text, of csv files", "csv", "2025-09-17", "abc123", rows=((1, "2025-09-17"), (2, "abc123"))
        ),
        directories("a day that does not exist, of csv files", "csv", "2025-02-30", rows=((1, "2025-02-30"),)),
    ),
    github(
        "pola-rs/polars",
        15747,
        "A file without rows made the types of the others an error.",
        "Its types count only where they fit; its rows are none.",
        Landing(
            "of the same type",
            "parquet",
            (
                {
                    "a.parquet": pa.table(two(pa.decimal128(28, 9), Decimal("1.5"))),
                    "b.parquet": pa.table(two(pa.decimal128(28, 9))),
                },
            ),
            rows=((1, Decimal("1.500000000")),),
        ),
        Landing(
            "of type null",
            "parquet",
            ({"a.parquet": pa.table(two(pa.null())), "b.parquet": pa.table(two(pa.string(), "a"))},),
            rows=((1, "a"),),
        ),
        Landing(
            "in a later landing than a file of nulls, which are numbers",
            "parquet",
            ({"a.parquet": pa.table(two(pa.null(), None, None))}, {"b.parquet": pa.table({"n": [3], "x": ["a"]})}),
            rows=((1, None), (2, None)),
            warned=("column-all-null",),
            refused=refused("file-column-type-differs", column="x"),
        ),
    ),
    github(
        "duckdb/duckdb",
        17126,
        "A column with nulls only became a column of JSON.",
        "It is null in all rows, and `land` says so.",
        parquet("of type null", two(pa.null(), None, None), *counted(None, None), warned=("column-all-null",)),
        parquet("of type text", two(pa.string(), None, None), *counted(None, None), warned=("column-all-null",)),
        Landing(
            "beside texts in another file",
            "parquet",
            ({"a.parquet": pa.table(two(pa.null(), None)), "b.parquet": pa.table({"n": [2], "x": ["a"]})},),
            rows=((1, None), (2, "a")),
        ),
    ),
    github(
        "duckdb/duckdb",
        9280,
        "A time of day was shown as nonsense.",
        "The column is refused by name, unless it is left out.",
        parquet("refused", two(pa.time64("us"), None), refused=refused("parquet-type-unreadable", column="x")),
        parquet("left out", two(pa.time64("us"), None), (1,), columns=("n",), log={"ignore": ["x"]}),
        parquet("in milliseconds", two(pa.time32("ms"), None), refused=refused("parquet-type-unreadable", column="x")),
    ),
    github(
        "duckdb/duckdb",
        15192,
        "A time without a zone was moved by the zone of the machine.",
        "In a feed in UTC it stays; a day stays a day.",
        parquet(
            "a time", two(pa.timestamp("us"), datetime.fromisoformat("2024-12-06T00:00:00")), (1, utc("2024-12-06"))
        ),
        parquet("a day", two(pa.date32(), date(2024, 12, 6), date(1, 1, 1)), *counted("2024-12-06", "0001-01-01")),
        parquet("a day in milliseconds", two(pa.date64(), date(2024, 12, 6)), (1, "2024-12-06")),
    ),
    github(
        "apache/arrow-rs",
        7243,
        "Texts in a dictionary with many nulls could not be read.",
        "Dictionaries are texts, nulls included.",
        parquet(
            "a long text and 600 nulls",
            two(pa.dictionary(pa.int32(), pa.string()), "a" * 400_000, *[None] * 600),
            *counted("a" * 400_000, *[None] * 600),
        ),
        parquet(
            "codes of 8 bits",
            two(pa.dictionary(pa.int8(), pa.string()), "b", None, "a", "b"),
            *counted("b", None, "a", "b"),
        ),
        parquet("numbers", two(pa.dictionary(pa.int8(), pa.int64()), 5, None, 7), *counted(5, None, 7)),
        parquet("large texts", two(pa.large_string(), "a", None), *counted("a", None)),
        parquet(
            "views of texts",
            two(pa.string_view(), "a long text that is not inlined", None),
            *counted("a long text that is not inlined", None),
        ),
        parquet(
            "as a key",
            {"n": pa.array([1, 2]), "k": pa.array(["b", "a"], pa.dictionary(pa.int8(), pa.string()))},
            ("b", 1),
            ("a", 2),
            columns=("k", "timestamp"),
            log={"key": "k"},
        ),
    ),
    github(
        "apache/arrow",
        43584,
        "Binary values of fixed length were written with a wrong dictionary.",
        "They are landed as bytes, with a dictionary or not.",
        parquet(
            "of equal length",
            two(pa.binary(3), b"abc", b"\x00\xff\x00", None, b"abc"),
            *counted(b"abc", b"\x00\xff\x00", None, b"abc"),
            needs_spark=True,
        ),
        parquet("of any length", two(pa.binary(), b"abc", b"", None, b"abc"), *counted(b"abc", b"", None, b"abc")),
        with_options(
            "without a dictionary",
            two(pa.binary(), b"abc", b"\x00", None),
            *counted(b"abc", b"\x00", None),
            use_dictionary=False,
        ),
    ),
)
