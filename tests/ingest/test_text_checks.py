"""What Spark reads from CSV files, but not as it was written, is refused; the rest is read as Spark reads it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from rewindow.contracts.ingest import LogSpec, SourceSpec
from rewindow.engine.spark.text_checks import as_texts, as_written, checked

pytestmark = pytest.mark.spark

CORRUPT = "_corrupt"
SCHEMA = T.StructType(
    [T.StructField("id", T.LongType()), T.StructField("d", T.DecimalType(12, 2)), T.StructField("s", T.StringType())]
)
FITS = {
    None: [
        "0",
        "-1",
        "1.5",
        "1,234.50",
        "1,000,000",
        "12,34,567.5",
        "+7",
        ".5",
        "1.",
        "1E3",
        "",
        '""',
        " ",
        "x",
        "99999999999",
        "1 2",
    ],
    "en-US": ["1,234.50", "-1,000", "1e2", "3"],
    "de-DE": [
        "1.234,50",
        "4,5",
        "-4,50",
        "1.000.000,00",
        "1.000",
        "7",
        "",
        "abc",
        "99999999999",
        " 1,5",
        "1,5 ",
    ],
    "fr-FR": ["4,5", "1\u202f234,5", "7", "4.5"],
    "de-CH": ["4.5", "1\u2019234.50", "4,5", "7"],
    "ja-JP": ["1,234.5", "0.5"],
}
MISREAD = {
    None: ["39,302", "1,000", "-1,000", "0,302", "12,50", "1,2", "1234,567", ",5", "1,23.4", "0,5", "2.555"],
    "de-DE": ["12.50", "4.5", "1.5,00", "1234.567", ".5", "10.5", "1,255", "0.123", "0.1234", "1.2345", "12.3456"],
    "en-US": ["0,123", "0,1234", "1,2345", "12,3456"],
    "it-IT": ["12.50"],
    "en-IN": ["12,5"],
}


def spec_of(kind: str, options: Mapping[str, str]) -> LogSpec:
    return LogSpec("events", SourceSpec(kind, "raw", "raw", options, None), ("id",), True, None, False, "id")


def read(
    spark: SparkSession, folder: Path, texts: list[str], locale: str | None, *, is_checked: bool
) -> dict[int, tuple]:
    folder.mkdir(exist_ok=True)
    (folder / "a.csv").write_text("id;d;s\n" + "".join(f"{at};{text};s\n" for at, text in enumerate(texts)))
    options = {"sep": ";", "header": "true", **({"locale": locale} if locale else {})}
    schema = T.StructType(
        [*(as_texts(SCHEMA, options) if is_checked else SCHEMA), T.StructField(CORRUPT, T.StringType())]
    )
    reader = spark.read.options(**options, mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT)
    frame = reader.schema(schema).format("csv").load(str(folder))
    if is_checked:
        frame = checked(frame, SCHEMA, spec_of("csv", options), CORRUPT)
    return {row["id"]: (row["d"], row[CORRUPT] is not None) for row in frame.collect()}


@pytest.mark.parametrize("locale", FITS)
def test_decimals_whose_groups_fit_are_read_as_spark_reads_them(
    spark: SparkSession, tmp_path: Path, locale: str | None
) -> None:
    ours = read(spark, tmp_path / "a", FITS[locale], locale, is_checked=True)
    assert ours == read(spark, tmp_path / "a", FITS[locale], locale, is_checked=False)


@pytest.mark.parametrize("locale", MISREAD)
def test_decimals_whose_groups_do_not_fit_are_not_read(spark: SparkSession, tmp_path: Path, locale: str | None) -> None:
    theirs = read(spark, tmp_path / "a", MISREAD[locale], locale, is_checked=False)
    assert all(number is not None for number, _ in theirs.values()), "Spark reads them, as other numbers"
    ours = read(spark, tmp_path / "a", MISREAD[locale], locale, is_checked=True)
    assert set(ours.values()) == {(None, True)}


@pytest.mark.parametrize(("encoding", "is_refused"), [(None, True), ("UTF-8", False)])
def test_texts_with_lost_characters_are_refused_unless_the_encoding_is_stated(
    spark: SparkSession, tmp_path: Path, encoding: str | None, *, is_refused: bool
) -> None:
    (tmp_path / "a.csv").write_bytes("id;d;s\n1;1;Müller\n2;1;ann\n".encode("iso-8859-1"))
    options = {"sep": ";", "header": "true", **({"encoding": encoding} if encoding else {})}
    schema = T.StructType([*as_texts(SCHEMA, options), T.StructField(CORRUPT, T.StringType())])
    frame = spark.read.options(**options).schema(schema).format("csv").load(str(tmp_path))
    found = {row["id"]: row[CORRUPT] for row in checked(frame, SCHEMA, spec_of("csv", options), CORRUPT).collect()}
    assert (found[1] is not None) is is_refused
    assert found[2] is None


@pytest.mark.parametrize(
    ("kind", "text", "number"),
    [
        (T.DecimalType(30, 2), "1.505", None),
        (T.DecimalType(30, 2), "1.50", "1.50"),
        (T.DecimalType(20, 19), "1.5", "1.5"),
        (T.DecimalType(38, 10), "1.12345678905", "1.1234567891"),
    ],
)
def test_a_decimal_is_exact_unless_it_has_all_digits_that_spark_has(spark, tmp_path, kind, text, number):
    schema = T.StructType([T.StructField("d", kind)])
    (tmp_path / "a.csv").write_text(f"d\n{text}\n")
    read = T.StructType([*as_texts(schema, {}), T.StructField(CORRUPT, T.StringType())])
    frame = spark.read.options(header="true", columnNameOfCorruptRecord=CORRUPT).schema(read).csv(str(tmp_path))
    (row,) = checked(frame, schema, spec_of("csv", {}), CORRUPT).collect()
    assert row["d"] == (None if number is None else Decimal(number))
    assert (row[CORRUPT] is not None) is (number is None)


def test_decimals_in_json_are_not_rounded(spark: SparkSession, tmp_path: Path) -> None:
    numbers = ["1", "1.5", "1.250", "1e2", "null", "1.255", "-1.245", "99999999999"]
    (tmp_path / "a.json").write_text("".join(f'{{"id": {at}, "d": {text}}}\n' for at, text in enumerate(numbers)))
    schema = T.StructType([field for field in SCHEMA if field.name != "s"])
    reader = spark.read.options(mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT)
    frame = reader.schema(T.StructType([*as_written(schema, {}), T.StructField(CORRUPT, T.StringType())])).json(
        str(tmp_path)
    )
    rows = {row["id"]: row for row in checked(frame, schema, spec_of("json", {}), CORRUPT).collect()}
    assert [str(rows[at]["d"]) for at in range(5)] == ["1.00", "1.50", "1.25", "100.00", "None"]
    assert [rows[at][CORRUPT] is not None for at in range(8)] == [False] * 5 + [True] * 3
