"""Files are read whose paths would match others as patterns, and no others."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.contracts.ingest import Piece
from rewindow.control.ingest.land import land
from rewindow.engine.spark.ingest_frames import exact_paths
from rewindow.engine.spark.spark_landing import SparkLandingEngine
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.land_by_arrow import arrow_at
from tests.ingest.local_engine import T0, log_rows, one_log
from tests.refusals import refused

NAMES = (
    "x1",
    "x[1]",
    "x[!2]",
    "a{b}",
    "a{b,c}",
    "ab",
    "cc",
    "c*",
    "d?",
    "dd",
    "e\\f",
    "ef",
    "g\\[1]",
    "h%5B1",
    "sub[1]/i",
    "sub1/i",
)
DIRECTORIES = ("u=a[1]/p", "u=a1/p", "u=b*/q[1]", "u=bc/q1")


def write(folder, kind, names, first=0):
    """Write a file for each name, with one row: the name is the user, and the first one is that of row ``first``."""
    for at, name in enumerate(names, first):
        file = folder / "raw" / f"{name}.{kind}"
        file.parent.mkdir(parents=True, exist_ok=True)
        row = {"user": name, "t": T0 + at, "x": at}
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist([row]), file)
        elif kind == "json":
            file.write_text(json.dumps(row))
        else:
            file.write_text(f'user,t,x\n"{name}",{row["t"]},{at}\n')


def rows(tables, *columns):
    return sorted(tuple(row[name] for name in ("x", "user", *columns)) for row in log_rows(tables))


@pytest.fixture(params=["csv", "json", pytest.param("parquet", marks=pytest.mark.spark)])
def engine(request, tmp_path):
    """The engine of users for text, which Spark does not read; for Parquet, Spark's."""
    if request.param != "parquet":
        return request.param, arrow_at(tmp_path)
    return request.param, SparkLandingEngine(request.getfixturevalue("spark"), project_root=str(tmp_path))


def test_each_file_is_landed_once_whatever_its_name(engine, tmp_path):
    folder, (kind, engine) = tmp_path / "p[1]", engine
    tables = DeltaFeedTables(str(tmp_path / "w"))
    feed = one_log(source={"format": kind, "path": str(folder / "raw").replace("[", "[[]")})
    write(tmp_path / "p1", kind, ["of a sibling"])
    for first, names in ((0, NAMES[:1]), (1, NAMES[1:])):
        write(folder, kind, names, first)
        land(feed, tables, engine, now_ms=T0)
    assert rows(tables) == [*enumerate(NAMES)]


def test_columns_of_directories_are_landed_whatever_their_names(engine, tmp_path):
    tables, (kind, engine) = DeltaFeedTables(str(tmp_path / "w")), engine
    write(tmp_path, kind, DIRECTORIES)
    land(one_log(source={"format": kind, "path": str(tmp_path / "raw")}), tables, engine, now_ms=T0)
    assert rows(tables, "u") == [(at, name, name[2:].partition("/")[0]) for at, name in enumerate(DIRECTORIES)]


def test_paths_become_patterns_that_match_only_them():
    assert exact_paths([Piece("/a/x[1].csv"), Piece("s3://a/e\\f {b}*?"), Piece("/a:b/c")]) == [
        "/a/x\\[1\\].csv",
        "s3://a/e\\\\f \\{b\\}\\*\\?",
        "/a:b/c",
    ]


@pytest.mark.parametrize("path", ["/raw/a:b[1].csv", "/a:b/c*.csv", "s3://a/b:c?"])
def test_a_path_that_no_pattern_can_name_is_refused(path):
    with refused("path-with-wildcard-and-colon", characters="* ? [ ] { } or \\") as caught:
        exact_paths([Piece("/raw/x.csv"), Piece(path, name="named")])
    assert str(caught.value).startswith("named: ")
    assert caught.value.exit_code == 66
