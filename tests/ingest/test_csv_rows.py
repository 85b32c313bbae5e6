"""Arrow reads CSV files as Spark reads them, or leaves them to Spark."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

from rewindow.contracts.ingest import Piece, SourceSpec
from rewindow.engine.worker.landing.csv_rows import check_csv, csv_rows, csv_schema
from rewindow.engine.worker.landing.source_types import NotANumberError, UnsuitableError, arrow_type, fields_of

pytestmark = pytest.mark.spark

TEXTS = [
    *("", "ann", "B ob", "7", "-7", "007", "+7", "2147483647", "2147483648", "-2147483648", "-2147483649", "1" * 18),
    *("1" * 19, "1" * 25, "1.5", "-0.0", "0.1", ".5", "5.", "1e5", "1E-7", "1d", "0x1p3", "123456789012345678.5"),
    *("9" * 17 + "." + "9" * 17, "NaN", "nan", "Inf", "-Infinity", "null", "true", "False", "TRUE", "t", "T1:2"),
    *("2026-01-05", "2026-1-5", "2026-02-30", "0001-01-01", "1582-10-10", "9999-12-31", "12026-01-05", "2026-01"),
    *("2026-01-05T10:00:00Z", "2026-01-05 10:00:00", "2026-01-05T10:00:00.123456", "2026-01-05T10:00:00.1234567"),
    *("2026-01-05T10:00:00+02:00", "2026-01-05T10:00:00-0330", "2026-01-05T24:00:00", "2026-01-05T10:00", "10:00:00"),
    *("2026-03-29T02:30:00", "2026-01-05T10:00:00 Z", "2026-01-05T10:00:00Europe/Paris", "2026-01-05T10:00:00+15:30"),
    *(
        " ann",
        "ann ",
        " ",
        " 7",
        "7 ",
        "\u00e4",
        "\U0001f600",
        "\u00a0",
        "\ufeff",
        "a\tb",
        "epoch",
        "now",
        "today",
        "1,5",
        "/",
        "/a",
        "@ann",
        "#1",
        "\u00d6l",
        "\u0661\u0662",
        "T",
    ),
]
"""Values of a column, each in a usual or an awkward form."""
KINDS = ("string", "byte", "short", "integer", "long", "double", "boolean", "date", "timestamp", "decimal(9,2)")


def source(folder: Path, **options: str) -> SourceSpec:
    return SourceSpec("csv", str(folder), "raw", options)


def write(folder: Path, text: str | bytes, name: str = "a.csv") -> str:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def arrow_schema(spec: SourceSpec, path: str) -> str | None:
    """Return the names and types that Arrow finds; None if it leaves the file to Spark."""
    try:
        check_csv(spec, [Piece(path)])
        return [(field["name"], field["type"]) for field in json.loads(csv_schema(spec, [Piece(path)]))["fields"]]
    except UnsuitableError:
        return None


def spark_fields(schema) -> list[tuple[str, str]]:
    return [(field["name"], field["type"]) for field in json.loads(schema.json())["fields"]]


def columns_of(rng: random.Random, count: int) -> list[list[str]]:
    """Return columns of four values that are mostly alike."""
    found = [[text] * 4 for text in TEXTS]
    while len(found) < count:
        some = rng.sample(TEXTS, rng.choice([2, 2, 3]))
        found.append([rng.choice(some) for _ in range(4)])
    return found[:count]


def numbers_of_times(column: pa.Array | pa.ChunkedArray) -> list[object]:
    """Return values, and integers for times: Spark has some beyond Python's."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())
    return column.to_pylist()


def quoted(text: str) -> str:
    return f'"{text}"' if "," in text else text


@pytest.mark.parametrize("seed", [1, 2])
def test_types_are_inferred_as_spark_does(spark, tmp_path, seed):
    columns = columns_of(random.Random(seed), 400)
    names = [f"c{number}" for number in range(len(columns))]
    rows = [names, *([*map(quoted, row)] for row in zip(*columns, strict=True))]
    wide = write(tmp_path / "wide", "".join(",".join(row) + "\n" for row in rows))
    expected = dict(spark_fields(spark.read.options(timeZone="UTC").csv(wide, header=True, inferSchema=True).schema))
    accepted = 0
    for name, values in zip(names, columns, strict=True):
        # A second column, because a line with no value at all is no row.
        text = "".join(f"x,{quoted(value)}\n" for value in [name, *values])
        found = arrow_schema(source(tmp_path), write(tmp_path / "narrow", text))
        if found is not None:
            accepted += 1
            assert found[1] == (name, expected[name]), (seed, values)
    assert accepted > 100


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_read_as_spark_does(spark, tmp_path, kind, zone):
    options = {"header": True, "enforceSchema": False, "timeZone": zone, "columnNameOfCorruptRecord": "bad"}
    wide = write(tmp_path / "wide", "".join(f"x,{quoted(text)}\n" for text in ["c", *TEXTS]))
    frame = spark.read.schema(f"x string, c {kind}, bad string").options(**options).csv(wide)
    expected = frame.select("c", "bad").toArrow()
    assert expected.num_rows == len(TEXTS)
    accepted, refused = 0, set[str]()
    values = numbers_of_times(expected["c"].cast(arrow_type(kind)))
    for text, value, bad in zip(TEXTS, values, expected["bad"], strict=True):
        path = write(tmp_path / "narrow", f"x,c\nx,{quoted(text)}\n")
        try:
            (found,) = numbers_of_times(csv_rows(source(tmp_path), path, {"x": "string", "c": kind}, zone).column(1))
        except NotANumberError:
            assert (value, bad.as_py() is None) == (None, False), (kind, text)
            refused.add(text)
            continue
        except UnsuitableError:
            continue
        accepted += 1
        assert bad.as_py() is None
        assert repr(found) == repr(value), (kind, text)
    assert accepted >= 3
    assert ("ann" in refused) == (kind not in {"string", "boolean", "date", "timestamp"})


FILES = {
    "nothing but a header": "a,b\n",
    "no end of line": "a,b\n1,x",
    "quoted values": 'a,b\n1,"x, y"\n"2",z\n"3","q"\n',
    "Windows lines": "a,b\r\n1,x\r\n2,\r\n",
    "empty lines": "a,b\n1,x\n\n2,y\n\n",
    "values that are not there": "a,b\n,\n1,\n,x\n",
    "spaces": "a,b\n1, x \n2,y y\n",
    "one column": "a\nx\n\ny\n",
    "a row like the header": "a,b\nx,y\na,b\n",
    "semicolons": "a;b\n1;x,y\n",
    "a comma in a quoted header": '"a, b",c\n1,2\n',
    "a quoted header": '"a","b"\n1,x\n',
    "spaces in the header": "a a,b\n1,x\n",
    "signs in the header": "days (n),share [%],a/b & c+d,no #1: why?!,cost €$,at 5°,it's,x-y*\n1,0.5,x,y,2,3,z,\n",
    "signs in a quoted header": '"days (n)","b"\n1,x\n',
    "letters of other scripts first": "Öl,年,_x\n1,x,2\n",
    "a point in the header": "a.b,c\n1,x\n",
    "spaces around the header": "a, b\n1,x\n",
    "the same name twice": "a,a\n1,x\n",
    "no name": "a,\n1,x\n",
    "a byte order mark": b"\xef\xbb\xbfa,b\n1,x\n",
    "UTF-16": "a,b\n1,x\n".encode("utf-16"),
    "Latin-1": "a,b\n1,\u00e4\n".encode("latin-1"),
    "too few values": "a,b\n1\n2,x\n",
    "too many values": "a,b\n1,x,3\n2,y\n",
    "a line of spaces": "a,b\n1,x\n   \n2,y\n",
    "lines of old Macs": b"a,b\r1,x\r2,y\r",
    "a carriage return in a line": b"a,b\n1,x\ry\n2,z\n",
    "an empty quoted value": 'a,b\n1,""\n2,x\n',
    "doubled quotes": 'a,b\n1,"x ""y"" z"\n',
    "a quote in a value": 'a,b\n1,x"y\n2,z\n',
    "a quote after a space": 'a,b\n1, "x"\n2,z\n',
    "an open quote": 'a,b\n1,"x\n2,y\n',
    "a line in a value": 'a,b\n1,"x\ny"\n2,z\n',
    "a backslash": "a,b\n1,x\\,y\n2,z\\n\n",
    "a backslash before a quote": 'a,b\n1,"x\\"y"\n',
    "a zero byte": b"a,b\n1,x\x00y\n",
    "a next-line sign": "a,b\n1,x\u0085y\n2,\u2028z\n",
    "a comment": "a,b\n#1,x\n2,y\n",
    "an empty line first": "\na,b\n1,x\n",
    "nothing": "",
    "a header of numbers": "1,2\n3,4\n",
}


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_as_spark_does(spark, tmp_path, name):
    path = write(tmp_path / "raw", FILES[name])
    spec = source(tmp_path, **({"sep": ";"} if name == "semicolons" else {}))
    found = arrow_schema(spec, path)
    if found is None:
        return
    frame = spark.read.options(timeZone="UTC", **spec.options).csv(path, header=True, inferSchema=True)
    assert found == spark_fields(frame.schema)
    rows = csv_rows(spec, path, fields_of(frame.schema.json()), "UTC")
    assert sorted(map(str, rows.to_pylist())) == sorted(map(str, frame.toArrow().to_pylist()))


def test_most_usual_files_are_read_with_arrow(tmp_path):
    taken = [name for name, text in FILES.items() if _is_taken(tmp_path, name, text)]
    headers = [
        "spaces in the header",
        "signs in the header",
        "signs in a quoted header",
        "letters of other scripts first",
    ]
    assert taken == [*list(FILES)[:8], "semicolons", "a quoted header", *headers, "a next-line sign", "a comment"]


def _is_taken(folder: Path, name: str, text: str | bytes) -> bool:
    spec = source(folder, **({"sep": ";"} if name == "semicolons" else {}))
    return arrow_schema(spec, write(folder / "raw", text)) is not None
